"""Scores of log-odds, log-probabilities and raw scores as well as of probabilities."""

import json

import numpy as np
import pytest
import torch

import pertinent
from pertinent.cli import main
from pertinent.errors import InputError, SettingError
from pertinent.outputs import Classes, Labels, softmax
from pertinent.rendering.wording import facts
from pertinent.results.explanation import Explanation
from pertinent.runs.request import Request

TEXT = "not bad at all"
WEIGHTS = {"not": -0.4, "bad": 1.5, "at": 0.1, "all": 0.3}
BY_VALUES = ["banzhaf", "exact-shapley", "kernel-shap", "leave-one-out", "lime", "shapley-sampling"]
OTHERS = sorted({entry.name for entry in pertinent.list_methods() if "search" in entry.name} | {"anchors"})


def logits(texts):
    """Two classes, whose logits are additive over the words."""
    sums = [sum(WEIGHTS.get(word, 0.0) for word in text.split()) for text in texts]
    return [[0.0, total + 0.2] for total in sums]


def probabilities(texts):
    weights = np.exp(logits(texts))
    return weights / weights.sum(axis=1, keepdims=True)


MODEL = pertinent.wrap(logits, output="logit")
CLASSIFIER = pertinent.wrap(probabilities)


@pytest.mark.parametrize("method", [m for m in BY_VALUES if m != "lime"])
@pytest.mark.parametrize(("scale", "other"), [("logit", -1.0), ("raw", 0.0)])
def test_additive_logits_are_found(method, scale, other):
    e = pertinent.explain(MODEL, TEXT, method, target=1, scale=scale)
    truth = np.array(list(WEIGHTS.values()))
    np.testing.assert_allclose(e.scores, truth, atol=1e-9)
    np.testing.assert_allclose(e.class_scores[0], other * truth, atol=1e-9)
    np.testing.assert_allclose(e.prediction.values, probabilities([TEXT])[0])
    if e.base_values is not None:
        np.testing.assert_allclose(e.base_values, [other * 0.2, 0.2], atol=1e-9)


@pytest.mark.parametrize("method", BY_VALUES)
@pytest.mark.parametrize(
    ("scale", "transform"),
    [("logit", lambda p: np.log(p) - np.log(1 - p)), ("log-probability", np.log)],
)
def test_probabilities_have_log_odds_and_logarithms(method, scale, transform):
    e = pertinent.explain(CLASSIFIER, TEXT, method, scale=scale, seed=3)
    transformed = pertinent.wrap(lambda texts: transform(probabilities(texts)), output="value")
    same = pertinent.explain(transformed, TEXT, method, target=e.target, seed=3)
    np.testing.assert_allclose(e.class_scores, same.class_scores, atol=1e-9)
    assert (e.request.scale, e.evaluations) == (scale, same.evaluations)
    natural = pertinent.explain(CLASSIFIER, TEXT, method, seed=3)
    assert natural.request.scale == "natural"
    assert not np.allclose(natural.scores, e.scores)


def test_one_meaning_for_models_of_logits_and_of_probabilities():
    own, other = (pertinent.explain(model, TEXT, scale="logit") for model in (MODEL, CLASSIFIER))
    np.testing.assert_allclose(own.class_scores, other.class_scores, atol=1e-9)


def test_raw_scores_of_probabilities_are_not_known():
    with pytest.raises(SettingError, match="The model returns probabilities, so its raw scores"):
        pertinent.explain(CLASSIFIER, TEXT, scale="raw")


LOGITS = np.array([[2.0, -1.0, 0.5], [40.0, -3.0, 0.0], [-800.0, 0.0, 1.0], [0.0, 0.0, 0.0]])


@pytest.mark.parametrize("from_logits", [True, False])
def test_log_odds_against_the_rest_of_the_classes(from_logits):
    output = Classes(from_logits)
    p = softmax(LOGITS)
    rest = np.stack([np.delete(LOGITS, c, axis=1) for c in range(3)], axis=1)
    exact = LOGITS - np.logaddexp.reduce(rest, axis=2)
    if from_logits:
        np.testing.assert_allclose(output.log_odds(LOGITS), exact, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(softmax(output.log_probabilities(LOGITS)), p, rtol=1e-12)
    else:
        np.testing.assert_allclose(output.log_odds(p)[[0, 3]], exact[[0, 3]], rtol=1e-9, atol=1e-12)
        assert np.isfinite(output.log_odds(p)).all()


@pytest.mark.parametrize("output", [Classes(True), Classes(), Labels(True), Labels()], ids=str)
@pytest.mark.parametrize("scale", ["logit", "log-probability", "raw"])
def test_the_scores_that_gradients_follow_are_those_of_the_scale(output, scale):
    rows = LOGITS[[0, 3]]
    rows = rows if output.from_logits else output.__class__(True).natural(rows)
    leaf = torch.tensor(rows, requires_grad=True)
    if scale not in output.scales:
        for unknown in (lambda: output.as_scale(rows, scale), lambda: output.followed_scores(leaf, scale)):
            with pytest.raises(SettingError, match="raw scores are unknown"):
                unknown()
        return
    followed = output.followed_scores(leaf, scale)
    np.testing.assert_allclose(followed.detach(), output.as_scale(rows, scale), rtol=1e-5, atol=1e-6)
    (gradient,) = torch.autograd.grad(followed[0, 0], leaf)
    assert torch.isfinite(gradient).all()


@pytest.mark.parametrize("scale", ["logit", "log-probability", "raw"])
def test_gradients_on_a_scale(scale):
    module = torch.nn.Linear(3, 4).double()
    model = pertinent.wrap(module.float(), kind="table")
    row, weights = np.array([0.3, -1.0, 2.0]), module.weight.detach().numpy().astype(float)
    p = pertinent.explain(model, row, "gradient").prediction.values
    for target in range(4):
        found = pertinent.explain(model, row, "gradient", target=target, scale=scale)
        others = weights - p @ weights
        wanted = {"log-probability": others[target], "raw": weights[target]}
        wanted["logit"] = others[target] / (1 - p[target])
        np.testing.assert_allclose(found.scores, wanted[scale], rtol=1e-4, atol=1e-5)


def test_a_gradient_of_a_saturated_class_does_not_vanish_on_the_scale_of_logits():
    module = torch.nn.Linear(2, 2)
    with torch.no_grad():
        module.weight[:] = torch.tensor([[30.0, 10.0], [0.0, 0.0]])
        module.bias[:] = 0
    model = pertinent.wrap(module, kind="table")
    natural, logit = (
        pertinent.explain(model, np.ones(2), "gradient", target=0, scale=scale).scores
        for scale in ("natural", "logit")
    )
    assert np.abs(natural).max() < 1e-12
    np.testing.assert_allclose(logit, [30, 10], rtol=1e-5)


@pytest.mark.parametrize("method", OTHERS)
def test_searches_are_of_probabilities(method):
    with pytest.raises(SettingError, match=f"`scale` must be 'natural' for {method}, but got 'logit'"):
        pertinent.explain(CLASSIFIER, TEXT, method, scale="logit")


def test_a_regressor_has_no_logits():
    model = pertinent.wrap(lambda texts: [[len(text)] for text in texts], output="value")
    with pytest.raises(SettingError, match="`scale` must be 'natural' for a model of plain values"):
        pertinent.explain(model, TEXT, scale="logit")


def test_an_unknown_scale_is_said():
    with pytest.raises(SettingError, match="scale"):
        pertinent.explain(CLASSIFIER, TEXT, scale="log-odds")


def test_all_verbs_know_the_scale():
    (found,) = pertinent.explain_iter(MODEL, [TEXT], "exact-shapley", scale="logit")
    assert found.request.scale == "logit"
    evaluation = pertinent.compare(MODEL, [TEXT], ["kernel-shap", "leave-one-out"], scale="logit")
    assert {e.request.scale for e in evaluation.explanations} == {"logit"}


def test_a_request_keeps_it():
    request = Request.from_method("kernel-shap", scale="logit")
    assert Request.from_dict(json.loads(json.dumps(request.to_dict()))) == request
    assert request.fingerprint != Request.from_method("kernel-shap").fingerprint


def test_an_explanation_keeps_and_says_it(tmp_path):
    e = pertinent.explain(MODEL, TEXT, "exact-shapley", scale="logit")
    e.save(tmp_path / "one.parquet")
    (read,) = pertinent.read(tmp_path / "one.parquet")
    assert read.request.scale == "logit"
    assert facts(read)["scale"] == "logit"
    with pytest.raises(InputError, match="scale"):
        Explanation.from_dict({**e.to_dict(), "scale": "other"})
    assert "scale" not in facts(pertinent.explain(MODEL, TEXT, "exact-shapley"))


def test_a_waterfall_ends_at_the_logit():
    pytest.importorskip("shap")
    e = pertinent.explain(CLASSIFIER, TEXT, "leave-one-out", scale="logit")
    found = e.to_shap()
    end = float(np.log(e.prediction.values[e.target] / (1 - e.prediction.values[e.target])))
    assert found.base_values + found.values.sum() == pytest.approx(end)


def test_the_command_line(capsys):
    words = ["explain", "a fine film", "--method", "leave-one-out", "--metrics", "none", "--json", "-"]
    assert main([*words, "--scale", "logit"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["explanations"]
    assert found["scale"] == "logit"
    assert main(["explain", "a fine film", "--method", "random-search", "--scale", "logit"]) == 2
