"""tree-shap gives the values of exact-shapley in one walk, or an error."""

import numpy as np
import pytest
from sklearn.ensemble import (
    AdaBoostClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import pertinent
from pertinent.errors import InputError, ModelError, SettingError

lightgbm = pytest.importorskip("lightgbm")
xgboost = pytest.importorskip("xgboost")

ROWS = np.random.default_rng(0).normal(size=(150, 4))
VALUES = 3 * ROWS[:, 0] - 2 * ROWS[:, 1] ** 2 + ROWS[:, 2] * ROWS[:, 3]
TWO = (VALUES > 0).astype(int)
THREE = np.digitize(VALUES, [-2.0, 1.0])
SMALL = {"n_estimators": 8, "max_depth": 3, "random_state": 0}
QUIET = {**SMALL, "n_jobs": 1, "verbose": -1}

SUMS = {
    "tree": (DecisionTreeClassifier(max_depth=4, random_state=0), THREE),
    "forest": (RandomForestClassifier(**SMALL), THREE),
    "forest of two classes": (ExtraTreesClassifier(**SMALL), TWO),
    "forest of values": (RandomForestRegressor(**SMALL), VALUES),
    "forest of two values": (RandomForestRegressor(**SMALL), np.stack([VALUES, ROWS[:, 0]], axis=1)),
    "boosting": (GradientBoostingRegressor(**SMALL), VALUES),
    "histogram boosting": (HistGradientBoostingRegressor(max_iter=8), VALUES),
    "xgboost": (xgboost.XGBRegressor(**SMALL, n_jobs=1), VALUES),
    "xgboost of two values": (
        xgboost.XGBRegressor(**SMALL, n_jobs=1),
        np.stack([VALUES, ROWS[:, 0]], axis=1),
    ),
    "lightgbm": (lightgbm.LGBMRegressor(**QUIET), VALUES),
}
LOGITS = {
    "boosting": (GradientBoostingClassifier(**SMALL), TWO),
    "histogram boosting": (HistGradientBoostingClassifier(max_iter=8), TWO),
    "histogram boosting of three": (HistGradientBoostingClassifier(max_iter=8), THREE),
    "xgboost": (xgboost.XGBClassifier(**SMALL, n_jobs=1), TWO),
    "xgboost of three": (xgboost.XGBClassifier(**SMALL, n_jobs=1), THREE),
    "lightgbm": (lightgbm.LGBMClassifier(**QUIET), TWO),
    "lightgbm of three": (lightgbm.LGBMClassifier(**QUIET), THREE),
}


def margins(model, rows):
    """Return the sums over the trees of a boosted classifier by its code; two log-odds for two classes."""
    if hasattr(model, "decision_function"):
        found = model.decision_function(rows)
    elif isinstance(model, xgboost.XGBModel):
        found = model.predict(rows, output_margin=True)
    else:
        found = model.booster_.predict(rows, raw_score=True)
    return np.stack([-found, found], axis=1) if found.ndim == 1 else found


@pytest.mark.parametrize("name", SUMS)
def test_equals_exact_shapley(name):
    model, answers = SUMS[name]
    wrapped = pertinent.wrap(model.fit(ROWS, answers), background=ROWS[:120])  # more than are drawn
    tree, exact = (
        pertinent.explain(wrapped, ROWS[130:133], method, seed=7) for method in ("tree-shap", "exact-shapley")
    )
    for fast, slow in zip(tree, exact, strict=True):
        np.testing.assert_allclose(fast.class_scores, slow.class_scores, atol=1e-6)
        np.testing.assert_allclose(fast.base_values, slow.base_values, atol=1e-6)
        np.testing.assert_allclose(fast.class_standard_errors, slow.class_standard_errors, atol=1e-6)
        assert fast.standard_errors.max() > 0
        assert (fast.evaluations, fast.cost.budget) == (1, 1)


@pytest.mark.parametrize("removal", ["background:rows=20", "mean", "median-mode", "constant"])
def test_has_the_meaning_of_the_removal(removal):
    model = RandomForestClassifier(**SMALL).fit(ROWS, THREE)
    wrapped = pertinent.wrap(model, background=ROWS)
    fast, slow = (
        pertinent.explain(wrapped, ROWS[3], method, removal=removal, seed=1)
        for method in ("tree-shap", "exact-shapley")
    )
    np.testing.assert_allclose(fast.class_scores, slow.class_scores, atol=1e-6)


@pytest.mark.parametrize("name", LOGITS)
def test_boosted_classifiers_are_explained_in_logits(name):
    model, answers = LOGITS[name]
    model.fit(ROWS, answers)
    wrapped = pertinent.wrap(model, background=ROWS[:20])
    fast = pertinent.explain(wrapped, ROWS[30], "tree-shap", scale="raw")
    plain = pertinent.wrap(lambda rows: margins(model, rows), background=ROWS[:20], output="value")
    slow = pertinent.explain(plain, ROWS[30], "exact-shapley")
    np.testing.assert_allclose(fast.class_scores, slow.class_scores, atol=1e-5)
    np.testing.assert_allclose(fast.base_values, slow.base_values, atol=1e-5)
    assert fast.request.scale == "raw"
    for scale in ("natural", "logit"):
        fast, slow = (
            pertinent.explain(wrapped, ROWS[30], m, scale=scale) for m in ("tree-shap", "exact-shapley")
        )
        np.testing.assert_allclose(fast.class_scores, slow.class_scores, atol=1e-5)


def test_a_forest_has_no_sum_of_logits():
    wrapped = pertinent.wrap(RandomForestClassifier(**SMALL).fit(ROWS, THREE), background=ROWS[:20])
    with pytest.raises(ModelError, match="logits of this RandomForestClassifier are not the sum"):
        pertinent.explain(wrapped, ROWS[0], "tree-shap", scale="raw")


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (LogisticRegression(), "LogisticRegression has no supported trees"),
        (AdaBoostClassifier(n_estimators=3), "answers of this AdaBoostClassifier do not match its trees"),
    ],
)
def test_what_is_no_sum_of_trees_is_refused(model, said):
    wrapped = pertinent.wrap(model.fit(ROWS, TWO), background=ROWS[:20])
    with pytest.raises(ModelError, match=said):
        pertinent.explain(wrapped, ROWS[0], "tree-shap")


def test_other_models_have_no_trees():
    function = pertinent.wrap(lambda rows: np.full((len(rows), 2), 0.5), kind="table", background=ROWS[:5])
    with pytest.raises(ModelError, match="needs a forest"):
        pertinent.explain(function, ROWS[0], "tree-shap")
    with pytest.raises(InputError, match="explain only table rows, but the input is text"):
        pertinent.explain(lambda texts: [[0.5, 0.5]] * len(texts), "some text", "tree-shap")


def test_a_removal_that_draws_for_each_mask_is_refused():
    wrapped = pertinent.wrap(RandomForestClassifier(**SMALL).fit(ROWS, TWO), background=ROWS[:5])
    with pytest.raises(SettingError, match=r"'uniform-noise' fills columns differently"):
        pertinent.explain(wrapped, ROWS[0], "tree-shap", removal="uniform-noise")


def test_frames_are_read():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(ROWS, columns=list("abcd"))
    wrapped = pertinent.wrap(RandomForestClassifier(**SMALL).fit(frame, TWO), background=frame[:20])
    fast, slow = (
        pertinent.explain(wrapped, frame.iloc[3], method) for method in ("tree-shap", "exact-shapley")
    )
    np.testing.assert_allclose(fast.class_scores, slow.class_scores, atol=1e-6)
    assert fast.features == ("a", "b", "c", "d")


def test_a_row_that_fails_takes_no_other_with_it():
    wrapped = pertinent.wrap(GradientBoostingRegressor(**SMALL).fit(ROWS, VALUES), background=ROWS[:20])
    rows = ROWS[:3].copy()
    rows[1, 2] = np.nan
    found = pertinent.explain(wrapped, rows, "tree-shap")
    assert [e.index for e in found] == [0, 2]
    assert "no value (NaN)" in found.failures[0].reason


def test_many_rows_share_the_trees():
    """Count a walk for each batch, and one reading of the trees for a background."""
    wrapped = pertinent.wrap(RandomForestClassifier(**SMALL).fit(ROWS, TWO), background=ROWS)
    found = pertinent.explain(wrapped, ROWS, "tree-shap", batch_size=1000)
    alone = pertinent.explain(wrapped, ROWS[9], "tree-shap")
    assert len(wrapped.trees) == 1
    np.testing.assert_allclose(found[9].scores, alone.scores, rtol=1e-12)
