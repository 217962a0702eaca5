"""Every setting of every method, metric and removal, and every argument of the verbs, is checked by type."""

from __future__ import annotations

import math
from dataclasses import fields

import numpy as np
import pytest
from tests.explanations import changed

import pertinent
from pertinent.errors import PertinentError, SettingError
from pertinent.explainers.base import explainers
from pertinent.metrics.base import metrics
from pertinent.removals.base import removals

ODD = [
    "0.5",
    None,
    1.5,
    math.nan,
    math.inf,
    -math.inf,
    -1,
    0,
    True,
    [],
    [0.5],
    (1, "a"),
    {},
    1 + 2j,
    object(),
]
ODD += [np.nan, np.int64(-3), np.array([0.5, 0.5]), "", 10**30, b"x"]

EVERY = [
    (registry, name, f.name)
    for registry in (explainers, metrics, removals)
    for name, cls in registry.all().items()
    for f in fields(cls)
    if f.init
]


@pytest.mark.parametrize(("registry", "name", "setting"), EVERY, ids=lambda part: getattr(part, "what", part))
def test_every_setting_is_used_or_refused_by_name(registry, name, setting):
    for value in ODD:
        try:
            made = registry.make(name, {setting: value})
        except SettingError as error:
            assert f"`{setting}`" in str(error) or f"Unknown {setting}" in str(error)  # noqa: PT017
        else:
            kept = getattr(made, setting)
            assert not (isinstance(kept, float) and not math.isfinite(kept))
            assert not isinstance(kept, np.generic)


def test_numbers_are_converted_to_the_declared_type():
    lime = explainers.make("lime", {"samples": np.int64(50), "alpha": 2, "kernel_width": np.float32(3.0)})
    assert (type(lime.samples), type(lime.alpha), type(lime.kernel_width)) == (int, float, float)
    assert explainers.make("lime", {"samples": 1e3}).samples == 1000
    assert metrics.make("sufficiency", {"sparsities": [0.1, 1]}).sparsities == (0.1, 1.0)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"budget": "100"}, "`budget` must be a whole number or None, but got '100'"),
        ({"budget": 0}, "`budget` must be at least 1, but got 0"),
        ({"seed": -1}, "`seed` must be at least 0, but got -1"),
        ({"seed": 1.5}, "`seed` must be a whole number, but got 1.5"),
        ({"sparsity": "0.5"}, "`sparsity` must be a number, several numbers or None, but got '0.5'"),
        ({"sparsity": math.nan}, "`sparsity` must be a number"),
        ({"sparsity": 1.5}, "`sparsity` must be above 0 and at most 1, but got 1.5"),
        ({"sparsity": []}, "`sparsity` must be at least one share"),
        ({"batch_size": 0.5}, "`batch_size` must be a whole number or None"),
        ({"removal": 5}, "`removal` must be a string, a Removal or None, but got 5"),
        ({"method": 3}, "`method` must be a string, an Explainer, a Request or None, but got 3"),
        ({"features": 5}, "`features` must be"),
        ({"progress": "yes"}, "`progress` must be"),
        ({"out": 5}, "`out` must be a string, a Path or None"),
        ({"alpha": math.inf}, "`alpha` must be a number, but got inf"),
        ({"samples": "25"}, "`samples` must be a whole number or None, but got '25'"),
        ({"check": "yes"}, "`check` must be a RemovalCheck or None"),
        ({"ids": "abc"}, "`ids` must be"),
        ({"ids": ["a", "b"]}, "`ids` must be as many as the 1 inputs, but got 2"),
        ({"target": ["class 0", "class 1"]}, "`target` must be as many as the 1 inputs, but got 2"),
    ],
)
def test_the_arguments_of_explain(settings, said):
    with pytest.raises(SettingError) as caught:
        pertinent.explain(_words, "not bad at all", **{"method": "lime", **settings})
    assert said in str(caught.value)


def test_no_sparsity_is_the_default_and_whole_floats_are_whole():
    e = pertinent.explain(_words, "not bad at all", "lime", sparsity=None, budget=1e2, seed=np.int64(3))
    assert (e.request.sparsities, e.cost.budget, e.seed) == ((0.05, 0.1, 0.2, 0.5), 100, 3)
    assert type(e.seed) is int


def test_a_target_for_each_input():
    texts = ["not bad", "so bad", "good"]
    found = pertinent.explain(_words, texts, "leave-one-out", target=["class 1", 0, None])
    assert [e.target for e in found] == [1, 0, 1]
    streamed = pertinent.explain_iter(_words, iter(texts), "leave-one-out", target=[1, 0])
    targets = {e.index: getattr(e, "target", str(getattr(e, "reason", ""))) for e in streamed}
    assert targets[0] == 1
    assert targets[1] == 0
    assert "input 2" in targets[2]


def test_ids_go_with_explanations_and_failures(tmp_path):
    texts, ids = ["not bad", "", "good"], ["a", 17, "c"]
    found = pertinent.explain(_words, texts, "leave-one-out", ids=ids)
    assert [(e.index, e.id) for e in found] == [(0, "a"), (2, "c")]
    assert [(f.index, f.id) for f in found.failures] == [(1, "17")]
    for path in ("saved.parquet", "run.parquet"):
        again = found
        if path == "run.parquet":
            again = pertinent.explain(_words, texts, "leave-one-out", ids=ids, out=tmp_path / path)
        else:
            found.save(tmp_path / path)
        again = pertinent.read(tmp_path / path)
        assert [(e.index, e.id) for e in again] == [(0, "a"), (2, "c")]
        assert [(f.index, f.id) for f in again.failures] == [(1, "17")]


def test_a_model_that_is_random_is_noticed():
    rng = np.random.default_rng(0)

    def moody(texts):
        p = rng.random(len(texts))
        return np.stack([p, 1 - p], axis=1)

    found = pertinent.explain(moody, ["", *["not bad at all"] * 30], "lime", budget=20)
    assert all("it is random" in e.warnings[0] for e in found)
    steady = pertinent.explain(_words, "not bad at all", "lime", budget=20)
    assert steady.warnings == ()


@pytest.mark.parametrize("breaks", ["inputs", "callback", "Ctrl-C"])
def test_what_is_finished_is_kept_when_a_run_breaks_off(breaks):
    def stream():
        for i in range(100):
            yield f"not bad {i}"
        if breaks == "inputs":
            raise OSError("the network is gone")

    def tell(now):
        if now.done > 50 and breaks != "inputs":
            raise KeyboardInterrupt if breaks == "Ctrl-C" else RuntimeError("of the callback's own")

    kind = {"inputs": OSError, "callback": RuntimeError, "Ctrl-C": KeyboardInterrupt}[breaks]
    with pytest.raises(kind) as caught:
        pertinent.explain(_words, stream(), "leave-one-out", progress=tell, batch_size=10)
    kept = caught.value.finished
    assert 20 < len(kept) <= 100
    assert [e.index for e in kept] == sorted(e.index for e in kept)


def test_a_name_with_no_near_match_suggests_nothing():
    for name, hint in {
        "kernal-shap": "'kernel-shap'",
        "shap": "'shapley'",
        "zzz": None,
        "": None,
    }.items():
        with pytest.raises(SettingError) as caught:
            pertinent.explain(_words, "not bad", name)
        assert ("Did you mean" in str(caught.value)) == (hint is not None)
        assert hint is None or hint in str(caught.value)


def test_nothing_to_compare():
    with pytest.raises(PertinentError, match="no inputs"):
        pertinent.compare(_words, [], ["lime"])


def test_what_was_read_opens_no_folder():

    e = pertinent.explain(_words, "not bad at all", "lime", budget=20)
    named = changed(e, removal="marginalize", removal_settings={"filler": "/some/folder"})
    with pytest.raises(SettingError, match="is not opened"):
        pertinent.evaluate(_words, named)


def _words(texts):
    return [[0.9, 0.1] if "bad" in text else [0.2, 0.8] for text in texts]


def test_spans_are_kept_in_a_request():
    request = pertinent.Request.from_method("lime", features=[[(0, 3), (4, 7)], None])
    assert pertinent.Request.from_dict(request.to_dict()) == request
    e = pertinent.explain(_words, "not bad", "leave-one-out", features=[(0, 3), (4, 7)])
    assert e.features == ("not", "bad")
