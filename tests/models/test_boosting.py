"""xgboost and lightgbm through their scikit-learn interface: classifiers, regressors, multi-label."""

import numpy as np
import pytest

import pertinent

lightgbm = pytest.importorskip("lightgbm")
xgboost = pytest.importorskip("xgboost")

ROWS = np.random.default_rng(0).normal(size=(200, 4))
VALUES = 3 * ROWS[:, 0] - 2 * ROWS[:, 1] ** 2
CLASSES = np.digitize(VALUES, [-2.0, 1.0])
SMALL = {"n_estimators": 20, "max_depth": 3, "random_state": 0, "n_jobs": 1}
QUIET = {"verbose": -1, "min_child_samples": 5}


def regressors():
    return [xgboost.XGBRegressor(**SMALL), lightgbm.LGBMRegressor(**SMALL, **QUIET)]


def classifiers():
    return [xgboost.XGBClassifier(**SMALL), lightgbm.LGBMClassifier(**SMALL, **QUIET)]


@pytest.mark.parametrize("number", [0, 1], ids=["xgboost", "lightgbm"])
def test_a_regressor_is_explained_in_its_own_values(number):
    model = regressors()[number].fit(ROWS, VALUES)
    wrapped = pertinent.wrap(model, background=ROWS[:20], names=["price"], unit="$")
    e = pertinent.explain(wrapped, ROWS[0], "exact-shapley")
    assert e.output.kind == "value"
    assert (e.classes, e.target_name) == (("price",), "price")
    assert e.prediction.values[0] == pytest.approx(float(model.predict(ROWS[:1])[0]), rel=1e-5)
    assert e.base_values[0] == pytest.approx(float(model.predict(ROWS[:20]).mean()), rel=1e-4)
    assert e.scores.sum() + e.base_values[0] == pytest.approx(e.prediction.values[0], rel=1e-5)
    assert set(e.ranking[:2].tolist()) == {0, 1}
    assert e.output.describe(12.5) == "12.5 $"


@pytest.mark.parametrize("number", [0, 1], ids=["xgboost", "lightgbm"])
def test_a_classifier_is_explained_in_probabilities(number):
    model = classifiers()[number].fit(ROWS, CLASSES)
    e = pertinent.explain(pertinent.wrap(model, background=ROWS[:20]), ROWS[0], "exact-shapley")
    assert e.output.kind == "class"
    assert e.classes == ("0", "1", "2")
    np.testing.assert_allclose(e.prediction.values, model.predict_proba(ROWS[:1])[0], rtol=1e-5)


def test_several_labels_are_not_classes():
    labels = np.stack([ROWS[:, 0] > 0, ROWS[:, 1] > 0], axis=1).astype(int)
    model = xgboost.XGBClassifier(**SMALL).fit(ROWS, labels)
    wrapped = pertinent.wrap(model, background=ROWS[:20], output="label-probability", classes=["a", "b"])
    e = pertinent.explain(wrapped, ROWS[0], "leave-one-out", target="b")
    assert e.output.kind == "label"
    np.testing.assert_allclose(e.prediction.values, model.predict_proba(ROWS[:1])[0], rtol=1e-5)
    assert e.ranking[0] == 1 or e.scores[1] < 0


@pytest.mark.parametrize("make", [xgboost.XGBRegressor, lightgbm.LGBMRegressor], ids=["xgboost", "lightgbm"])
def test_what_is_not_fitted_is_said(make):
    with pytest.raises(pertinent.PertinentError, match="is not fitted"):
        pertinent.wrap(make())
