"""A request says all that is wanted, and can be saved, compared and made again."""

import json

import numpy as np
import pytest

import pertinent
from pertinent import Request
from pertinent.errors import FileError, SettingError
from pertinent.explainers.gradients import IntegratedGradients
from pertinent.inputs.background import Background
from pertinent.metrics.ablation import Sufficiency
from pertinent.removals import FromBackground, UniformNoise

FULL = Request.from_method(
    "kernel-shap",
    {"samples": 50},
    removal=UniformNoise(samples=3),
    target="positive",
    sparsity=[0.1, 0.5],
    budget=60,
    features="tokens",
    seed=7,
    metrics=["deletion", Sufficiency(sparsities=(0.2,))],
)


def test_a_request_survives_json():
    again = Request.from_dict(json.loads(json.dumps(FULL.to_dict())))
    assert again == FULL
    assert again.fingerprint == FULL.fingerprint
    assert again.metrics[1].sparsities == (0.2,)


@pytest.mark.parametrize(
    "change",
    [
        {"settings": {"samples": 51}},
        {"removal": "mean"},
        {"removal": UniformNoise(samples=4)},
        {"target": 1},
        {"sparsity": 0.1},
        {"budget": 61},
        {"features": None},
        {"seed": 8},
        {"metrics": ()},
    ],
    ids=str,
)
def test_everything_in_it_counts(change):
    words = {
        "method": "kernel-shap",
        "settings": {"samples": 50},
        "removal": UniformNoise(samples=3),
        "target": "positive",
        "sparsity": [0.1, 0.5],
        "budget": 60,
        "features": "tokens",
        "seed": 7,
        "metrics": ["deletion", Sufficiency(sparsities=(0.2,))],
    }
    assert Request.from_method(**words).fingerprint == FULL.fingerprint
    assert Request.from_method(**words | change).fingerprint != FULL.fingerprint


def test_what_json_cannot_hold_is_known_by_its_digest():
    one, same, other = (
        Request.from_method(IntegratedGradients(baseline=np.full((3, 500), value)))
        for value in (1.0, 1.0, 2.0)
    )
    assert one.fingerprint == same.fingerprint != other.fingerprint
    with pytest.raises(SettingError, match="`baseline` was not saved"):
        Request.from_dict(one.to_dict())


def test_a_background_of_its_own_is_part_of_it():
    requests = []
    for middle in (0.0, 1.0):
        rows = np.zeros((2001, 2))
        rows[1000] = middle
        requests.append(Request.from_method("lime", removal=FromBackground(background=Background(rows))))
    assert requests[0].fingerprint != requests[1].fingerprint


def test_words_are_checked():
    with pytest.raises(SettingError, match="Did you mean 'kernel-shap'"):
        Request.from_method("kernel-shop")
    with pytest.raises(SettingError, match="samplez"):
        Request.from_method("lime", {"samplez": 3})
    with pytest.raises(SettingError, match="`budget` must be at least 1"):
        Request.from_method("lime", budget=0)
    with pytest.raises(SettingError, match="above 0 and at most 1"):
        Request.from_method("lime", sparsity=1.5)


def test_a_fitted_method_travels_as_its_folder_and_digest(tmp_path):
    rows = np.random.default_rng(0).normal(size=(40, 3))
    model = pertinent.wrap(
        lambda x: np.asarray(x) @ np.array([[1.0], [2.0], [0.0]]), kind="table", output="value"
    )
    fitted = pertinent.fit(model, rows, epochs=2, progress=False)
    with pytest.raises(SettingError, match="was not saved with the request"):
        pertinent.Request.from_dict(pertinent.Request.from_method(fitted.refined(4)).to_dict())
    fitted.save(tmp_path / "fitted")
    request = pertinent.Request.from_method(fitted.refined(4), removal="constant")
    plain = json.loads(json.dumps(request.to_dict()))
    again = pertinent.Request.from_dict(plain)
    assert again.fingerprint == request.fingerprint and again.method.refine == 4
    one, other = (pertinent.explain(model, rows[0], each, progress=False) for each in (request, again))
    np.testing.assert_array_equal(one.scores, other.scores)
    plain["fitted"]["digest"] = "0" * 32
    with pytest.raises(FileError, match="`digest`"):
        pertinent.Request.from_dict(plain)


JUNK = [None, True, -1, 2**70, 0.5, float("nan"), "", "x", [], [[]], {}, [None], ["a"], {"a": 1}, [1, [2]]]


def test_damaged_data_gives_a_request_or_an_error_of_ours():
    plain = json.loads(json.dumps(FULL.to_dict() | {"early_stopping": {"top": 3, "confidence": 0.9}}))
    plain |= {"method": "shapley-sampling", "settings": {"samples": 50}}
    assert Request.from_dict(plain).early_stopping.top == 3
    n_refused = 0
    for name in plain:
        for junk in ("missing", *JUNK):
            damaged = {key: value for key, value in plain.items() if key != name}
            damaged |= {} if junk == "missing" else {name: junk}
            try:
                assert Request.from_dict(damaged).fingerprint
            except pertinent.PertinentError:
                n_refused += 1
    assert n_refused > 100
    for part in ("removal", "early_stopping"):
        for junk in JUNK:
            with pytest.raises(pertinent.PertinentError):
                Request.from_dict(plain | {part: {**plain[part], "settings": junk, "top": "x", "name": junk}})
    for junk in (5, "request", [], None):
        with pytest.raises(pertinent.PertinentError, match="request"):
            Request.from_dict(junk)
