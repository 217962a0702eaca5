"""`shapley` walks the trees of a model if this gives the values of its masks, and records it."""

import numpy as np
import pytest
from sklearn.ensemble import (
    AdaBoostClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression

import pertinent
from pertinent.explainers.early_stopping import EarlyStopping

D = 8
ROWS = np.random.default_rng(0).normal(size=(200, D))
VALUES = 3 * ROWS[:, 0] - 2 * ROWS[:, 1] ** 2 + ROWS[:, 2] * ROWS[:, 3]
CLASSES = (VALUES > 0).astype(int)
SMALL = {"n_estimators": 8, "max_depth": 3, "random_state": 0}


def explained(model, method="shapley", answers=CLASSES, **options):
    wrapped = pertinent.wrap(model.fit(ROWS, answers), background=ROWS, **options.pop("wrap", {}))
    options = {"removal": "background:rows=30", "progress": False} | options
    return pertinent.explain(wrapped, ROWS[3], method, **options)


@pytest.mark.parametrize("removal", ["background:rows=30", "background:rows=200", "mean", "constant"])
@pytest.mark.parametrize(
    ("model", "answers"),
    [(RandomForestClassifier(**SMALL), CLASSES), (RandomForestRegressor(**SMALL), VALUES)],
    ids=["classes", "values"],
)
def test_trees_give_the_exact_values_in_one_walk(model, answers, removal):
    fast = explained(model, answers=answers, removal=removal)
    slow = explained(model, "exact-shapley", answers=answers, removal=removal)
    assert fast.details == {"estimator": "trees"}
    assert fast.evaluations == 1
    np.testing.assert_allclose(fast.scores, slow.scores, atol=1e-6)
    np.testing.assert_allclose(fast.base_values, slow.base_values, atol=1e-6)
    assert (fast.standard_errors is None) == (slow.standard_errors is None)
    if fast.standard_errors is not None:
        np.testing.assert_allclose(fast.standard_errors, slow.standard_errors, atol=1e-6)


@pytest.mark.parametrize("scale", ["natural", "logit", "log-probability"])
@pytest.mark.parametrize("removal", ["background:rows=30", "background:rows=200"])
@pytest.mark.parametrize(
    "model",
    [GradientBoostingClassifier(**SMALL), RandomForestClassifier(**SMALL)],
    ids=["boosting", "forest"],
)
@pytest.mark.parametrize("answers", [CLASSES, np.digitize(VALUES, [-2, 1])], ids=["two", "three"])
def test_every_scale_of_trees_is_exact(model, answers, removal, scale):
    fast, slow = (
        explained(model, method, answers=answers, removal=removal, scale=scale)
        for method in ("shapley", "exact-shapley")
    )
    assert fast.details == {"estimator": "trees"}
    np.testing.assert_allclose(fast.class_scores, slow.class_scores, atol=1e-9)
    np.testing.assert_allclose(fast.base_values, slow.base_values, atol=1e-9)
    if slow.standard_errors is not None:
        np.testing.assert_allclose(fast.standard_errors, slow.standard_errors, atol=1e-9)


def test_a_group_of_columns_is_one_player():
    wrap = {"columns": list("abcdefgh"), "groups": {"ab": ["a", "b"], "ch": ["c", "h"]}}
    model = RandomForestRegressor(**SMALL)
    fast, slow = (explained(model, m, answers=VALUES, wrap=wrap) for m in ("shapley", "exact-shapley"))
    assert fast.details == {"estimator": "trees"}
    np.testing.assert_allclose(fast.scores, slow.scores, atol=1e-9)


@pytest.mark.parametrize(
    ("model", "options"),
    [
        (LogisticRegression(), {}),
        (AdaBoostClassifier(n_estimators=3, random_state=0), {}),
        (RandomForestClassifier(**SMALL), {"removal": "uniform-noise:samples=3"}),
        (RandomForestClassifier(**SMALL), {"estimator": "process"}),
    ],
    ids=["no trees", "not their sum", "random for each mask", "asked for"],
)
def test_other_estimators_where_trees_do_not_have_the_meaning(model, options):
    assert explained(model, budget=60, **options).details["estimator"] == "process"


def test_masks_too_many_to_try_all_say_the_faster_way(monkeypatch):
    monkeypatch.setattr("pertinent.models.trees.tree_shapley.MAX_SUMS", 100)
    model = GradientBoostingClassifier(**SMALL)
    e = explained(model, budget=60)
    assert e.details["estimator"] == "process"
    assert "choose scale='raw'" in e.details["no trees"]
    assert e.evaluations == 60  # the try is not paid for
    assert explained(model, scale="raw").details == {"estimator": "trees"}


def test_trees_are_exact_so_only_draws_leave_the_order_open():
    model = RandomForestRegressor(**SMALL)
    options = {"answers": VALUES, "early_stopping": EarlyStopping(top=1)}
    assert explained(model, removal="background:rows=200", **options).details["stopped"] == "stable"
    few = explained(model, removal="background:rows=2", **{**options, "early_stopping": EarlyStopping(top=D)})
    assert few.details["stopped"] == "all masks"
