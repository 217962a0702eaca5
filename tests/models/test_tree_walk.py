"""Trees of every library, alone or in a pipeline, are walked as their estimator decides, or not at all."""

import itertools

import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder, StandardScaler

import pertinent
from pertinent.errors import ModelError
from pertinent.masks import all_coalitions, shapley_values_of
from pertinent.models.trees.read_trees import read_forest
from pertinent.models.trees.tree_shapley import _pairs
from pertinent.models.trees.tree_walk import TreeWalk

RNG = np.random.default_rng(0)
N = 400
ROWS = RNG.normal(size=(N, 5))
ROWS[:, 4] = RNG.integers(0, 7, N)
VALUES = ROWS[:, 0] + ROWS[:, 1] * ROWS[:, 2] + 2 * np.isin(ROWS[:, 4], [1, 4])
CLASSES = np.digitize(VALUES, [0, 1.5])
HOLES = np.where((RNG.random(ROWS.shape) < 0.2) & (np.arange(5) < 4), np.nan, ROWS)
ZEROS = np.where((RNG.random(ROWS.shape) < 0.3) & (np.arange(5) < 4), 0.0, ROWS)
XGB = {"n_estimators": 8, "max_depth": 4, "n_jobs": 1}
LGB = {"n_estimators": 8, "verbose": -1, "min_child_samples": 5, "n_jobs": 1}
HGB = {"max_iter": 8, "min_samples_leaf": 5}


def check(estimator, rows, n=12, atol=1e-6, **options):
    """`shapley` walks the trees, and gives what `exact-shapley` gives."""
    model = pertinent.wrap(estimator, background=rows[:n])
    options = {"removal": f"background:rows={n}", "progress": False} | options
    fast, slow = (
        pertinent.explain(model, rows[n : n + 3], m, **options) for m in ("shapley", "exact-shapley")
    )
    for walked, exact in zip(fast, slow, strict=True):
        assert walked.details == {"estimator": "trees"}
        np.testing.assert_allclose(walked.class_scores, exact.class_scores, atol=atol)
        np.testing.assert_allclose(walked.base_values, exact.base_values, atol=atol)


@pytest.mark.parametrize("scale", ["natural", "logit"])
@pytest.mark.parametrize(
    ("make", "rows"),
    [
        (lambda: xgboost.XGBClassifier(**XGB).fit(HOLES, CLASSES), HOLES),
        (lambda: xgboost.XGBClassifier(**XGB).fit(HOLES, CLASSES > 0), HOLES),
        (lambda: xgboost.XGBClassifier(**XGB, booster="dart", rate_drop=0.5).fit(ROWS, CLASSES > 0), ROWS),
        (lambda: xgboost.XGBRFClassifier(**XGB).fit(ROWS, CLASSES > 0), ROWS),
        (lambda: lightgbm.LGBMClassifier(**LGB).fit(HOLES, CLASSES), HOLES),
        (lambda: lightgbm.LGBMClassifier(**LGB).fit(ROWS, CLASSES > 0, categorical_feature=[4]), ROWS),
        (lambda: lightgbm.LGBMClassifier(**LGB).fit(ROWS, CLASSES), HOLES),  # no NaN in training
        (lambda: HistGradientBoostingClassifier(**HGB).fit(HOLES, CLASSES), HOLES),
        (lambda: HistGradientBoostingClassifier(**HGB, categorical_features=[4]).fit(HOLES, CLASSES), HOLES),
        (lambda: GradientBoostingClassifier(n_estimators=8).fit(ROWS, CLASSES > 0), ROWS),
        (lambda: RandomForestClassifier(8).fit(HOLES, CLASSES), HOLES),
        (lambda: RandomForestClassifier(8).fit(ROWS, np.c_[CLASSES > 0, CLASSES > 1]), ROWS),
    ],
)
def test_classifiers(make, rows, scale):
    check(make(), rows, scale=scale, atol=1e-5)


@pytest.mark.parametrize(
    ("make", "rows"),
    [
        (lambda: xgboost.XGBRegressor(**XGB, missing=0.0).fit(ZEROS, VALUES), ZEROS),
        (lambda: xgboost.XGBRegressor(**XGB, objective="count:poisson").fit(ROWS, CLASSES), ROWS),
        (lambda: lightgbm.LGBMRegressor(**LGB, zero_as_missing=True).fit(ZEROS, VALUES), ZEROS),
        (lambda: lightgbm.LGBMRegressor(**LGB, boosting_type="rf", bagging_freq=1, bagging_fraction=0.5)
         .fit(ROWS, VALUES), ROWS),
        (lambda: HistGradientBoostingRegressor(**HGB, categorical_features=[4, 0])
         .fit(np.abs(ROWS).round(), VALUES), np.abs(ROWS).round()),
        (lambda: HistGradientBoostingRegressor(**HGB, loss="poisson").fit(ROWS, CLASSES), ROWS),
        (lambda: ExtraTreesRegressor(8).fit(ROWS, np.c_[VALUES, -VALUES]), ROWS),
    ],
)  # fmt: skip
def test_regressors(make, rows):
    check(make(), rows)


def test_xgboost_of_arrays_with_categories():
    kinds = ["q"] * 4 + ["c"]
    model = xgboost.XGBRegressor(**XGB, feature_types=kinds, enable_categorical=True).fit(HOLES, VALUES)
    assert any(tree.categories for tree in read_forest(model).trees)
    check(model, HOLES)


def test_early_stopping_leaves_trees_out():
    model = xgboost.XGBRegressor(**XGB | {"n_estimators": 60}, early_stopping_rounds=2)
    model.fit(ROWS[:200], VALUES[:200], eval_set=[(ROWS[200:], RNG.permutation(VALUES[200:]))], verbose=False)
    assert model.best_iteration + 1 < model.get_booster().num_boosted_rounds()
    check(model, ROWS)


@pytest.mark.parametrize("rows", [ROWS, HOLES])
def test_catboost(rows):
    catboost = pytest.importorskip("catboost")
    settings = {"iterations": 8, "verbose": 0, "allow_writing_files": False}
    check(catboost.CatBoostRegressor(**settings).fit(rows, VALUES), rows)
    for answers in (CLASSES, CLASSES > 0):
        check(catboost.CatBoostClassifier(**settings).fit(rows, answers), rows)


def test_random_models_with_small_backgrounds():
    rng = np.random.default_rng(1)
    for seed in range(12):
        rows = np.where(rng.random((60, 3)) < 0.4, 0.0, rng.integers(-2, 3, (60, 3)))
        answers = rng.normal(size=60)
        settings = {"random_state": seed, "n_estimators": 5}
        for model in (
            xgboost.XGBRegressor(**settings, missing=0.0),
            lightgbm.LGBMRegressor(**settings, zero_as_missing=True, min_child_samples=2, verbose=-1),
            HistGradientBoostingRegressor(max_iter=5, min_samples_leaf=2, categorical_features=[1, 2]),
        ):
            own = np.abs(rows) if isinstance(model, HistGradientBoostingRegressor) else rows
            check(model.fit(own, answers), own, n=1 + seed % 10)


class OtherwiseWhenMixed(RandomForestRegressor):
    """Answers as its trees do to the rows that it was fitted on, and otherwise to all others."""

    def fit(self, rows, answers):
        self.seen = {row.tobytes() for row in rows}
        return super().fit(rows, answers)

    def predict(self, rows):
        strange = [row.tobytes() not in self.seen for row in np.asarray(rows)]
        return super().predict(rows) + 3 * np.array(strange) * np.asarray(rows)[:, 0]


def test_trees_that_disagree_with_the_estimator_on_mixed_rows_are_not_walked():
    estimator = OtherwiseWhenMixed(5, random_state=0).fit(ROWS, VALUES)
    model = pertinent.wrap(estimator, background=ROWS[:10])
    with pytest.raises(ModelError, match="do not match its trees"):
        pertinent.explain(model, ROWS[20], "tree-shap", removal="background:rows=10")
    fast, slow = (
        pertinent.explain(model, ROWS[20], m, removal="background:rows=10")
        for m in ("shapley", "exact-shapley")
    )
    assert "do not match its trees" in fast.details["no trees"]
    np.testing.assert_allclose(fast.scores, slow.scores, atol=1e-9)


@pytest.mark.parametrize("mean", [0.0, 1e3, 1e5])
def test_linear_trees_are_not_walked_whatever_the_mean(mean):
    estimator = lightgbm.LGBMRegressor(**LGB, linear_tree=True).fit(ROWS, VALUES + mean)
    model = pertinent.wrap(estimator, background=ROWS[:10])
    options = {"removal": "background:rows=10"}
    with pytest.raises(ModelError, match="do not match its trees"):
        pertinent.explain(model, ROWS[20], "tree-shap", **options)
    fast, slow = (pertinent.explain(model, ROWS[20], m, **options) for m in ("shapley", "exact-shapley"))
    np.testing.assert_allclose(fast.scores, slow.scores, atol=1e-6)


@pytest.mark.parametrize("n", [1, 12])
@pytest.mark.parametrize(
    "make",
    [
        lambda: lightgbm.LGBMRegressor(**LGB),
        lambda: HistGradientBoostingRegressor(**HGB),
        lambda: RandomForestRegressor(8, random_state=0),
        lambda: xgboost.XGBRegressor(**XGB | {"n_estimators": 300}),
    ],
)
def test_sums_of_trees_with_a_large_mean_are_walked(make, n):
    """The mean is 100 times the spread, and XGBoost adds up 300 trees in float32."""
    check(make().fit(ROWS, VALUES + 500), ROWS, n, atol=0.01)


# -- pipelines and data frames ---------------------------------------------------------------------

FRAME = pd.DataFrame(HOLES[:, :3], columns=["a", "b", "c"]).assign(
    colour=np.array(["red", "green", "blue", "grey", "rare"])[np.minimum(ROWS[:, 4].astype(int), 4)],
    size=np.where(ROWS[:, 3] > 0, "s", "l"),
)
CATEGORIES = FRAME.astype({"colour": "category", "size": "category"})


def encoded(encoder):
    numbers = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
    return make_column_transformer((encoder, ["size", "colour"]), (numbers, ["c", "a", "b"]))


@pytest.mark.parametrize(
    "estimator",
    [
        make_pipeline(encoded(OneHotEncoder(handle_unknown="ignore")), RandomForestClassifier(8)),
        make_pipeline(encoded(OneHotEncoder(sparse_output=False)), HistGradientBoostingClassifier(**HGB)),
        make_pipeline(
            encoded(OrdinalEncoder()), HistGradientBoostingClassifier(**HGB, categorical_features=[1])
        ),
        make_pipeline(encoded(OneHotEncoder()), lightgbm.LGBMClassifier(**LGB)),
    ],
    ids=["forest", "boosting", "ordinal", "lightgbm"],
)
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_pipelines(estimator):
    check(estimator.fit(FRAME, CLASSES > 0), FRAME)


@pytest.mark.parametrize(
    "estimator",
    [
        HistGradientBoostingClassifier(**HGB),
        lightgbm.LGBMClassifier(**LGB),
        xgboost.XGBClassifier(**XGB, enable_categorical=True),
    ],
)
def test_categories_of_a_data_frame(estimator):
    check(estimator.fit(CATEGORIES, CLASSES > 0), CATEGORIES)


def test_a_category_that_hardly_a_background_row_has():
    """Its one-hot column changes for one pair of rows alone, and belongs to its source all the same."""
    rows = pd.DataFrame({"x": ROWS[:, 0], "colour": ["red"] * N})
    rows.loc[::7, "colour"] = "blue"
    estimator = make_pipeline(
        make_column_transformer((OneHotEncoder(), ["colour"]), remainder="passthrough"),
        RandomForestRegressor(8, random_state=0),
    ).fit(rows, ROWS[:, 0] + 3 * (rows.colour == "blue"))
    model = pertinent.wrap(estimator, background=rows.iloc[1:101])
    fast, slow = (
        pertinent.explain(model, rows.iloc[1], m, removal="background:rows=100")
        for m in ("shapley", "exact-shapley")
    )
    assert fast.details == {"estimator": "trees"}
    np.testing.assert_allclose(fast.scores, slow.scores, atol=1e-9)


@pytest.mark.parametrize("step", [PCA(3), FunctionTransformer(lambda x: np.c_[x, x[:, 0] * x[:, 1]])])
def test_a_step_that_mixes_columns_is_not_walked(step):
    estimator = make_pipeline(step, RandomForestRegressor(8)).fit(ROWS, VALUES)
    model = pertinent.wrap(estimator, background=ROWS[:10])
    e = pertinent.explain(model, ROWS[20], "shapley", removal="background:rows=10")
    assert "combines several columns" in e.details["no trees"]


@pytest.mark.parametrize(
    ("n", "with_holes"),
    [(8, [3]), (16, range(1, 16, 2)), (15, [14]), (100, [1, 5, 37, 51, 77]), (100, range(1, 100, 2))],
)
def test_every_background_row_is_mixed(n, with_holes):
    """A hole in a background row is filled from the other columns of a mixed row, and only there."""
    rows = ROWS[:, :4].copy()
    rows[:, 1] = rows[:, 0] + 0.1 * rows[:, 1]
    estimator = make_pipeline(KNNImputer(n_neighbors=3), RandomForestRegressor(8, random_state=0))
    estimator.fit(rows, rows[:, 0] + 2 * (rows[:, 1] > 0))
    background = rows[:n].copy()
    background[list(with_holes), 1] = np.nan
    model = pertinent.wrap(estimator, background=background)
    options = {"removal": f"background:rows={n}"}
    with pytest.raises(ModelError, match="do not match its trees"):
        pertinent.explain(model, rows[150], "tree-shap", **options)
    fast, slow = (pertinent.explain(model, rows[150], m, **options) for m in ("shapley", "exact-shapley"))
    np.testing.assert_allclose(fast.scores, slow.scores, atol=1e-9)


@pytest.mark.parametrize("n_rows", [1, 2, 3, 8, 70])
@pytest.mark.parametrize("n_background", [1, 2, 8, 9, 64, 100])
def test_pairs_hold_every_row_and_every_background_row(n_rows, n_background):
    own, other = _pairs(n_rows, n_background)
    assert set(own) == set(range(n_rows)) and set(other) == set(range(n_background))
    distinct = len(set(zip(own.tolist(), other.tolist(), strict=True)))
    assert distinct == min(len(own), n_rows * n_background)


def test_the_pipeline_is_not_asked_for_every_mask():
    asked = []

    def count(rows):
        asked.append(len(rows))
        return rows

    estimator = make_pipeline(FunctionTransformer(count), HistGradientBoostingClassifier(**HGB))
    model = pertinent.wrap(estimator.fit(ROWS, CLASSES > 0), background=ROWS[:50])
    asked.clear()
    pertinent.explain(model, ROWS[60:80], "shapley", removal="background:rows=50")
    assert sum(asked) < 3200  # a tenth of 20 rows, 50 background rows and 2^5 masks


# -- the walk itself beside its definition ---------------------------------------------------------


@pytest.mark.parametrize("n_rows", [1, 60], ids=["pair by pair", "by table"])
@pytest.mark.parametrize("players", [[0, 1, 2, 3, 4], [0, 1, 0, 2, 1]], ids=["columns", "groups"])
def test_the_walk_gives_the_shapley_values_of_the_mixed_rows(players, n_rows):
    estimator = RandomForestRegressor(3, random_state=0).fit(ROWS, np.c_[VALUES, CLASSES])
    forest, owner = read_forest(estimator), np.array(players)
    walk = TreeWalk(forest, owner, max(players) + 1)
    rows, background = forest.clean(ROWS[:n_rows]), forest.clean(ROWS[100:109])
    found = walk.shapley_values(walk.violations(background), walk.violations(rows))
    by_player = walk.violations(background, by_player=True)
    masks = all_coalitions(walk.n_players)
    for i in {0, n_rows - 1}:
        mixed = [np.where(mask[owner], rows[i], z) for mask, z in itertools.product(masks, background)]
        games = estimator.predict(mixed).reshape(len(masks), len(background), 2)
        np.testing.assert_allclose(found[i], shapley_values_of(games.sum(axis=1)).T, atol=1e-9)
        sums = walk.all_sums(by_player, walk.violations(rows[i : i + 1], by_player=True)[:, 0])
        np.testing.assert_allclose(sums, games, atol=1e-9)
