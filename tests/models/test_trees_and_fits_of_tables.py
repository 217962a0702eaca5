"""Trees are walked as their estimator decides; fits to tables are continued, and refused in time."""

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor

import pertinent
from pertinent.errors import SettingError

DIABETES = load_diabetes()


def both(estimator, background, row):
    model = pertinent.wrap(estimator, background=background)
    removal = f"background:rows={len(background)}"
    return [pertinent.explain(model, row, method, removal=removal) for method in ("shapley", "exact-shapley")]


@pytest.mark.parametrize(
    "estimator",
    [
        RandomForestRegressor(5, random_state=0),
        DecisionTreeRegressor(random_state=0),
        HistGradientBoostingRegressor(max_iter=20),
    ],
)
def test_trees_compare_with_thresholds_as_the_estimator_does(estimator):
    estimator.fit(DIABETES.data, DIABETES.target)
    walked, exact = both(estimator, DIABETES.data[:150], DIABETES.data[3])
    assert walked.evaluations == 1
    np.testing.assert_allclose(walked.scores, exact.scores, atol=1e-4)


def test_values_that_float32_cannot_tell_apart():
    rows = 1e9 + np.arange(40.0)[:, None] * [1, 0] + np.random.default_rng(0).random((40, 2))
    estimator = HistGradientBoostingRegressor(max_iter=5, min_samples_leaf=2).fit(rows, rows[:, 0] % 2 > 1)
    walked, exact = both(estimator, rows, rows[3])
    assert walked.evaluations == 1
    np.testing.assert_allclose(walked.scores, exact.scores, atol=1e-6)


def test_missing_values_take_their_own_branch():
    rows = DIABETES.data[:150].copy()
    rows[::3, 2] = np.nan
    estimator = HistGradientBoostingRegressor(max_iter=10).fit(rows, DIABETES.target[:150])
    walked, exact = both(estimator, rows, rows[3])
    assert walked.evaluations == 1
    np.testing.assert_allclose(walked.scores, exact.scores, atol=1e-4)


def test_a_tree_of_many_nodes():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(20_000, 2))
    estimator = DecisionTreeRegressor(random_state=0).fit(rows, rng.normal(size=20_000))
    assert estimator.tree_.node_count > 2**15
    walked, exact = both(estimator, rows[:10], rows[20])
    assert walked.evaluations == 1
    np.testing.assert_allclose(walked.scores, exact.scores)


@pytest.fixture
def linear():
    rows = DIABETES.data[:40]
    return pertinent.wrap(LinearRegression().fit(rows, DIABETES.target[:40]), background=rows)


@pytest.mark.parametrize("removal", [None, "mean", "background:rows=5"])
def test_a_fit_to_a_table_continues_in_another_process(linear, tmp_path, removal):
    rows = DIABETES.data[:20]
    for _ in range(2):
        again = pertinent.wrap(linear.estimator, background=DIABETES.data[:40])
        fitted = pertinent.fit(again, rows, out=tmp_path, removal=removal, samples=2, epochs=1)
    assert "0x" not in Path(tmp_path, "pertinent.json").read_text()
    with pytest.raises(SettingError, match=f"'{removal or 'background'}'.*'median-mode'"):
        pertinent.explain(linear, rows[0], fitted, removal="median-mode")


def test_a_damaged_removal_in_the_card(linear, tmp_path):
    pertinent.fit(linear, DIABETES.data[:10], "cxplain", out=tmp_path, epochs=1)
    path = Path(tmp_path, "pertinent.json")
    card = json.loads(path.read_text())
    del card["removal"]["settings"]
    path.write_text(json.dumps(card))
    with pytest.raises(pertinent.errors.FileError, match="settings"):
        pertinent.load_explainer(tmp_path)


@pytest.mark.parametrize("method", ["amortized-shapley", "fastshap"])
def test_a_constant_model_is_explained_by_nothing(method):
    rows = DIABETES.data[:12]
    model = pertinent.wrap(lambda given: np.tile([0.3, 0.7], (len(given), 1)), background=rows)
    fitted = pertinent.fit(model, rows, method, epochs=1)
    assert np.abs(pertinent.explain(model, rows[0], fitted).scores).max() < 1e-6


def test_labels_of_a_regressor_are_numbers(linear):
    rows = DIABETES.data[:10]
    for label in ("high", np.nan):
        with pytest.raises(SettingError, match="`labels` must be finite numbers"):
            pertinent.fit(linear, rows, "cxplain", labels=[label] * 10, epochs=1)


def test_what_the_device_cannot_do_is_said_before_the_model_is_asked():
    def never(rows):
        raise AssertionError

    model = pertinent.wrap(never, background=DIABETES.data)
    with pytest.raises(SettingError, match="needs CUDA"):
        pertinent.fit(model, DIABETES.data[:10], precision="float16")


def test_only_shapley_values_are_refined_by_permutations():
    model, rows = pertinent.load("diabetes"), list(DIABETES.data[:12])
    fitted = pertinent.fit(model, rows, teacher="leave-one-out", epochs=2, progress=False)
    assert pertinent.explain(model, rows[0], fitted, progress=False).evaluations == 1
    with pytest.raises(SettingError, match=r"`refine`.*leave-one-out"):
        pertinent.explain(model, rows[0], fitted, refine=2, progress=False)
