"""Inputs of the same size get the same questions, so nearly equal inputs have nearly equal scores."""

import importlib

import numpy as np
import pytest

import pertinent

WEIGHTS = np.random.default_rng(1).normal(size=(12, 8))


def answer(rows):
    p = 1 / (1 + np.exp(-np.tanh(np.asarray(rows, float) @ WEIGHTS).sum(axis=1)))
    return np.stack([1 - p, p], axis=1)


MODEL = pertinent.wrap(answer, background=np.zeros((1, 12)), kind="table")
SAMPLED = ["shapley", "kernel-shap", "shapley-sampling", "lime", "banzhaf"]


@pytest.mark.parametrize("method", SAMPLED)
def test_a_tiny_change_of_the_input_changes_scores_little(method):
    """Check a change of 1e-6, which moved scores by 55% to 94% when masks depended on the input's content."""
    row = np.random.default_rng(0).normal(size=12)
    one, two = (pertinent.explain(MODEL, own, method, budget=60) for own in (row, row + 1e-6))
    np.testing.assert_allclose(one.scores, two.scores, atol=1e-4)
    other = pertinent.explain(MODEL, row, method, budget=60, seed=1)
    assert not np.allclose(one.scores, other.scores, atol=1e-6)


@pytest.mark.parametrize(
    ("method", "draw"),
    [("lime", "lime.draw_masks"), ("kernel-shap", "shapley.kernel_shap.draw_coalitions")],
)
def test_masks_are_made_once_for_inputs_of_one_size(method, draw, monkeypatch):
    module, _, name = f"pertinent.explainers.{draw}".rpartition(".")
    own, made = importlib.import_module(module), []
    function = getattr(own, name)
    monkeypatch.setattr(own, name, lambda *a: made.append(a) or function(*a))
    rows = np.random.default_rng(3).normal(size=(6, 12))
    pertinent.explain(MODEL, rows, method, budget=57, seed=11)
    assert len(made) == 1


@pytest.mark.parametrize("method", SAMPLED)
def test_company_and_order_do_not_matter(method):
    rows = np.random.default_rng(2).normal(size=(5, 12))
    together = pertinent.explain(MODEL, rows, method, budget=60)
    backwards = pertinent.explain(MODEL, rows[::-1], method, budget=60)
    for i, row in enumerate(rows):
        alone = pertinent.explain(MODEL, row, method, budget=60)
        np.testing.assert_allclose(together[i].scores, alone.scores, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(backwards[-1 - i].scores, alone.scores, rtol=1e-9, atol=1e-12)


def test_random_scores_differ_between_inputs():
    one, other, again = pertinent.explain(MODEL, np.array([[1.0] * 12, [2.0] * 12, [1.0] * 12]), "random")
    assert not np.array_equal(one.scores, other.scores)
    np.testing.assert_array_equal(one.scores, again.scores)
