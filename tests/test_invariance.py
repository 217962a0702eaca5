"""Explanations do not depend on the batch size, the order of inputs, or other inputs."""

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import given as for_all
from hypothesis import strategies as st

import pertinent
from tests import tiny

TEXTS = [tiny.text(n, seed=n) for n in (5, 9, 14, 14, 23, 40)]
METHODS = ["kernel-shap", "shapley-sampling", "lime", "banzhaf", "leave-one-out"]


@pytest.fixture(scope="module")
def model():
    return pertinent.wrap(tiny.pair("bert"))


@pytest.fixture(scope="module")
def alone(model):
    return {
        (method, text): pertinent.explain(model, text, method=method, budget=90, seed=3)
        for method in [*METHODS, "parallel-local-search"]
        for text in TEXTS
    }


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@for_all(
    order=st.permutations(TEXTS),
    size=st.integers(1, 6),
    batch=st.sampled_from([1, 17, 100, 5000]),
    method=st.sampled_from(METHODS),
)
def test_scores(model, alone, order, size, batch, method):
    found = pertinent.explain(model, list(order[:size]), method=method, budget=90, seed=3, batch_size=batch)
    for text, e in zip(order[:size], found, strict=True):
        assert e.evaluations == alone[method, text].evaluations
        np.testing.assert_allclose(e.scores, alone[method, text].scores, atol=1e-6)


@pytest.mark.parametrize("batch", [1, 100, 5000])
def test_searches(model, alone, batch):
    found = pertinent.explain(
        model, TEXTS[::-1], method="parallel-local-search", budget=90, seed=3, batch_size=batch
    )
    for text, e in zip(TEXTS[::-1], found, strict=True):
        expected = alone["parallel-local-search", text].chosen
        assert list(e.chosen) == list(expected) == [0.05, 0.1, 0.2, 0.5]
        for sparsity, mask in expected.items():
            np.testing.assert_array_equal(e.chosen[sparsity], mask)


def test_padded_and_compact_give_the_same_results(alone):
    padded = pertinent.wrap(tiny.pair("bert"), compaction=False)
    for method in METHODS:
        e = pertinent.explain(padded, TEXTS[4], method=method, budget=90, seed=3)
        np.testing.assert_allclose(e.scores, alone[method, TEXTS[4]].scores, atol=1e-6)


def test_methods_in_one_run_give_the_same_results(model, alone):
    together = pertinent.compare(model, TEXTS, METHODS, budget=90, seed=3).explanations
    assert [(e.input.raw.first, e.method) for e in together] == [(t, m) for t in TEXTS for m in METHODS]
    for e in together:
        expected = alone[e.method, e.input.raw.first]
        np.testing.assert_allclose(e.scores, expected.scores, atol=1e-6)
        assert e.evaluations == expected.evaluations


def test_seeds_differ(model):
    one, other = (pertinent.explain(model, TEXTS[5], budget=90, seed=s).scores for s in (0, 1))
    assert np.abs(one - other).max() > 1e-4
