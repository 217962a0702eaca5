"""Scores of logits as well as of probabilities, for every method that asks for values."""

import json

import numpy as np
import pytest

import pertinent
from pertinent.api.request import Request
from pertinent.cli import main
from pertinent.errors import InputError, SettingError
from pertinent.report.wording import facts
from pertinent.results.explanation import Explanation

TEXT = "not bad at all"
WEIGHTS = {"not": -0.4, "bad": 1.5, "at": 0.1, "all": 0.3}
BY_VALUES = ["banzhaf", "exact-shapley", "kernel-shap", "leave-one-out", "lime", "shapley-sampling"]
OTHERS = sorted(
    {entry.name for entry in pertinent.methods() if "search" in entry.name or "gradient" in entry.name}
    | {"anchors"}
)


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
def test_additive_logits_are_found(method):
    e = pertinent.explain(MODEL, TEXT, method, target=1, scale="logit")
    np.testing.assert_allclose(e.scores, list(WEIGHTS.values()), atol=1e-9)
    np.testing.assert_allclose(e.class_scores[0], 0, atol=1e-9)
    np.testing.assert_allclose(e.prediction, probabilities([TEXT])[0])
    if e.base_values is not None:
        np.testing.assert_allclose(e.base_values, [0.0, 0.2], atol=1e-9)


@pytest.mark.parametrize("method", BY_VALUES)
def test_probabilities_have_logarithms(method):
    e = pertinent.explain(CLASSIFIER, TEXT, method, scale="logit", seed=3)
    logs = pertinent.wrap(lambda texts: np.log(probabilities(texts)), output="value")
    same = pertinent.explain(logs, TEXT, method, target=e.target, seed=3)
    np.testing.assert_allclose(e.class_scores, same.class_scores, atol=1e-9)
    assert (e.scale, e.evaluations) == ("logit", same.evaluations)
    natural = pertinent.explain(CLASSIFIER, TEXT, method, seed=3)
    assert natural.scale == "natural"
    assert not np.allclose(natural.scores, e.scores)


@pytest.mark.parametrize("method", OTHERS)
def test_searches_and_gradients_are_of_probabilities(method):
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
    assert found.scale == "logit"
    evaluation = pertinent.compare(MODEL, [TEXT], ["kernel-shap", "leave-one-out"], scale="logit")
    assert {e.scale for e in evaluation.explanations} == {"logit"}


def test_a_request_keeps_it():
    request = Request.of("kernel-shap", scale="logit")
    assert Request.from_dict(json.loads(json.dumps(request.to_dict()))) == request
    assert request.fingerprint != Request.of("kernel-shap").fingerprint
    older = {name: value for name, value in request.to_dict().items() if name != "scale"}
    assert Request.from_dict(older).scale == "natural"


def test_an_explanation_keeps_and_says_it(tmp_path):
    e = pertinent.explain(MODEL, TEXT, "exact-shapley", scale="logit")
    e.save(tmp_path / "one.parquet")
    (read,) = pertinent.read(tmp_path / "one.parquet")
    assert read.scale == "logit"
    assert facts(read)["scale"] == "logit"
    plain = e.to_dict()
    del plain["scale"]
    assert Explanation.from_dict(plain).scale == "natural"
    with pytest.raises(InputError, match="scale"):
        Explanation.from_dict({**plain, "scale": "other"})
    assert "scale" not in facts(pertinent.explain(MODEL, TEXT, "exact-shapley"))


def test_a_waterfall_ends_at_the_logit():
    pytest.importorskip("shap")
    e = pertinent.explain(CLASSIFIER, TEXT, "leave-one-out", scale="logit")
    found = e.to_shap()
    end = float(np.log(e.prediction[e.target]))
    assert found.base_values + found.values.sum() == pytest.approx(end)


def test_the_command_line(capsys):
    words = ["explain", "a fine film", "--method", "leave-one-out", "--no-measure", "--json", "-"]
    assert main([*words, "--scale", "logit"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["explanations"]
    assert found["scale"] == "logit"
    assert main(["explain", "a fine film", "--method", "random-search", "--scale", "logit"]) == 2
