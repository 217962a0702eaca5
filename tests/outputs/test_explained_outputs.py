"""Regressors and labels that may be true together are explained as what they are."""

import numpy as np
import pytest
import torch

import pertinent
from pertinent.errors import SettingError
from tests import tiny

WEIGHTS = np.array([2.0, -3.0, 0.5])
ROW = np.array([1.0, 2.0, 4.0])


def transformer(**changes):
    return pertinent.wrap((tiny.model("bert", **changes), tiny.tokenizer(model_max_length=200)))


def logits(model, text):
    with torch.no_grad():
        return model.model(**model.tokenizer(text, return_tensors="pt")).logits[0].double().numpy()


def test_regression_heads_are_explained():
    model = transformer(num_labels=1)
    e = pertinent.explain(model, "w1 w2 w3", method="leave-one-out", removal="slice-out")
    assert (e.output.kind, e.classes, e.target) == ("value", ("value",), 0)
    whole = logits(model, "w1 w2 w3")[0]
    without = [logits(model, text)[0] for text in ("w2 w3", "w1 w3", "w1 w2")]
    assert e.prediction.values[0] == pytest.approx(whole, abs=1e-5)
    np.testing.assert_allclose(e.scores, whole - np.array(without), atol=1e-5)


def test_heads_of_several_labels_are_explained():
    model = transformer(problem_type="multi_label_classification")
    e = pertinent.explain(model, "w1 w2 w3", method="leave-one-out", removal="slice-out", target=1)
    assert (e.output.kind, len(e.classes)) == ("label", 3)
    texts = ("w1 w2 w3", "w2 w3", "w1 w3", "w1 w2")
    whole, *without = (1 / (1 + np.exp(-logits(model, text))) for text in texts)
    np.testing.assert_allclose(e.prediction.values, whole, atol=1e-5)
    np.testing.assert_allclose(e.scores, whole[1] - np.array(without)[:, 1], atol=1e-5)


def test_regressors_are_explained():
    from sklearn.linear_model import LinearRegression

    rows = np.random.default_rng(0).normal(size=(20, 3))
    targets = rows @ np.stack([WEIGHTS, -WEIGHTS], axis=1) + [7.0, 1.0]
    one, two = LinearRegression().fit(rows, targets[:, 0]), LinearRegression().fit(rows, targets)
    e = pertinent.explain(one, ROW, method="leave-one-out")
    assert (e.output.kind, e.classes) == ("value", ("value",))
    np.testing.assert_allclose(e.prediction.values, [ROW @ WEIGHTS + 7])
    np.testing.assert_allclose(e.scores, ROW * WEIGHTS)
    model = pertinent.wrap(two, names=["up", "down"])
    e = pertinent.explain(model, ROW, method="kernel-shap", target="down")
    np.testing.assert_allclose(e.scores, -ROW * WEIGHTS, atol=1e-9)
    np.testing.assert_allclose(e.base_values, [7.0, 1.0])


def test_classifiers_of_several_labels_are_explained():
    from sklearn.linear_model import LogisticRegression
    from sklearn.multioutput import MultiOutputClassifier

    rows = np.random.default_rng(0).normal(size=(60, 3))
    labels = np.stack([rows[:, 0] > 0, rows[:, 1] > rows[:, 2]], axis=1)
    fitted = MultiOutputClassifier(LogisticRegression()).fit(rows, labels)
    e = pertinent.explain(fitted, ROW, method="leave-one-out", target=0)
    assert e.output.kind == "label"
    one = fitted.estimators_[0]
    without = one.predict_proba(np.where(np.eye(3), 0, ROW))[:, 1]
    np.testing.assert_allclose(e.scores, one.predict_proba(ROW[None])[0, 1] - without)


def test_functions_of_values_are_explained():
    model = pertinent.wrap(
        lambda rows: np.asarray(rows) @ WEIGHTS, kind="table", output="value", names=["price"], unit="€"
    )
    e = pertinent.explain(model, ROW, method="leave-one-out")
    assert (e.output.kind, e.target_name) == ("value", "price")
    np.testing.assert_allclose(e.scores, ROW * WEIGHTS)
    assert e.output.describe(float(e.prediction.values[0])) == "-2 €"
    assert [e.features[i] for i in e.ranking] == [e.features[i] for i in (1, 0, 2)]  # by size: −6, 2, 2


def test_a_value_is_no_decision():
    model = pertinent.wrap(lambda rows: np.asarray(rows) @ WEIGHTS, kind="table", output="value")
    with pytest.raises(SettingError, match="a plain value is not a decision"):
        pertinent.explain(model, ROW, method="anchors")
    with pytest.raises(SettingError, match="must be a classifier"):
        pertinent.check_removal(model, np.stack([ROW, ROW]))
    e = pertinent.explain(model, ROW, method="leave-one-out")
    assert pertinent.evaluate(model, e, "sufficiency").rows
    from pertinent.metrics.ablation import Sufficiency

    with pytest.raises(SettingError, match="for a model of plain values"):
        pertinent.evaluate(model, e, Sufficiency(scale="weight-of-evidence"))


def test_sufficiency_of_a_value_is_its_distance():
    model = pertinent.wrap(lambda rows: np.asarray(rows) @ WEIGHTS, kind="table", output="value")
    e = pertinent.explain(model, ROW, method="leave-one-out", sparsity=0.3)
    measures = pertinent.evaluate(model, e).explanations[0].measures
    assert measures["sufficiency"] == pytest.approx({0.3: abs(-2 - -6)})
    assert measures["comprehensiveness"] == pytest.approx({0.3: abs(-2 - 4)})


def test_where_classes_must_sum_to_one_labels_need_not():
    answer = [[0.9, 0.8]]
    with pytest.raises(pertinent.PertinentError, match="output='label-probability'"):
        pertinent.explain(pertinent.wrap(lambda rows: answer * len(rows), kind="table"), ROW)
    model = pertinent.wrap(lambda rows: answer * len(rows), kind="table", output="label-probability")
    assert pertinent.explain(model, ROW).prediction.values.tolist() == [0.9, 0.8]


@pytest.mark.parametrize(
    "method",
    ["ordered-search", "random-search", "parallel-local-search", "thompson-search", "exhaustive-search"],
)
def test_searches_find_the_features_that_keep_a_value_near(method):
    """Two large negative weights: what matters is how near the value stays, not how high it is."""
    weights = np.array([-10.0, -8.0, *np.linspace(0.1, 0.5, 10)])
    model = pertinent.wrap(lambda rows: rows @ weights, kind="table", output="value")
    e = pertinent.explain(model, np.ones(12), method, removal="constant", sparsity=2 / 12, budget=150)
    assert np.flatnonzero(e.mask(2 / 12)).tolist() == [0, 1]


@pytest.mark.parametrize("output", ["multi-label", "regression"])
def test_only_classifiers_are_trained(output, tmp_path):
    from pertinent.errors import ModelError

    changes = {"num_labels": 1} if output == "regression" else {"problem_type": "multi_label_classification"}
    model, tokenizer = tiny.pair("bert", **changes)
    with pytest.raises(ModelError, match="single-label classifier"):
        pertinent.train((model, tokenizer), ["w1 w2"], [0], out=tmp_path / "out")
