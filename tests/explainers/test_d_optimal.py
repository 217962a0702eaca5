"""The greedy D-optimal design of masks."""

import numpy as np
import pytest

from pertinent.explainers import d_optimal
from pertinent.explainers.d_optimal import d_optimal_masks
from pertinent.explainers.single_effects import SingleEffects
from pertinent.testing.games import RecordedGame, play


def log_determinant(masks):
    """Return the log determinant of the information matrix of a linear model with a constant."""
    x = np.hstack([np.ones((len(masks), 1)), np.where(masks, 1.0, -1.0)])
    return np.linalg.slogdet(np.eye(x.shape[1]) + x.T @ x)[1]


@pytest.mark.parametrize(("n", "d"), [(8, 12), (16, 12), (40, 10)])
def test_the_design_is_better_than_all_of_many_random_ones(n, d):
    rng = np.random.default_rng(0)
    best = max(log_determinant(rng.random((n, d)) < 0.5) for _ in range(200))
    assert log_determinant(d_optimal_masks(n, d, rng)) > best


@pytest.mark.parametrize("seed", range(3))
def test_each_mask_is_the_greedy_choice(seed, monkeypatch):
    monkeypatch.setattr(d_optimal, "SPARE", 20)
    masks = d_optimal_masks(6, 5, np.random.default_rng(seed))
    candidates = np.random.default_rng(seed).random((26, 5)) < 0.5
    candidates[0] = True
    for n in range(1, 6):
        best = max(log_determinant(np.vstack([masks[:n], candidate])) for candidate in candidates)
        assert log_determinant(masks[: n + 1]) == pytest.approx(best, abs=0.05)


def test_the_full_mask_is_first_and_large_designs_are_random(monkeypatch):
    assert d_optimal_masks(5, 7, np.random.default_rng(0))[0].all()
    monkeypatch.setattr(d_optimal, "WORK", 1.0)
    masks = d_optimal_masks(50, 7, np.random.default_rng(0))
    assert masks.shape == (50, 7)
    assert masks[0].all()


def test_errors_with_few_masks_are_smaller_than_with_random_ones(monkeypatch):
    def error(seed):
        weights = np.random.default_rng(seed).normal(size=12)
        game = RecordedGame(12, lambda masks: (masks @ weights)[:, None])
        return ((play(SingleEffects(), game, budget=24, seed=seed).scores[0] - weights) ** 2).mean()

    chosen = np.mean([error(seed) for seed in range(20)])
    monkeypatch.setattr(d_optimal, "SPARE", 0)
    assert chosen < 0.5 * np.mean([error(seed) for seed in range(20)])
