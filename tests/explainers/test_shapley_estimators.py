"""Sampled Shapley values: without bias, efficient, with true errors, and `shapley` ahead of the others."""

from __future__ import annotations

import numpy as np
import pytest
from tests.games import play, sum_of_unanimity

from pertinent.explainers.base import explainers


def sparse_game(d, seed, sets=15, largest=4):
    rng = np.random.default_rng(seed)
    members = [rng.choice(d, rng.integers(1, largest + 1), replace=False) for _ in range(sets)]
    return sum_of_unanimity(d, members, rng.normal(size=(sets, 1)))


def many_runs(method, game, budget, n=400):
    return np.array([play(explainers.make(method), game, budget=budget, seed=s).scores[0] for s in range(n)])


@pytest.mark.parametrize("budget", [9, 16, 30])
def test_permutations_are_without_bias(budget):
    """One order, an order and its reverse, four orders: the mean of many runs is the exact value."""
    game = sparse_game(8, seed=3)
    found = many_runs("shapley-sampling", game, budget)
    standard_error = found.std(axis=0, ddof=1) / np.sqrt(len(found))
    assert (standard_error > 0).all()
    assert (np.abs(found.mean(axis=0) - game.shapley[0]) < 4 * standard_error).all()


@pytest.mark.parametrize("method", ["kernel-shap", "shapley"])
def test_the_bias_of_a_fitted_model_is_a_small_part_of_its_error(method):
    """A regression on random masks has a small bias; a posterior mean shrinks, by 0.11 of the error."""
    game = sparse_game(8, seed=3)
    found = many_runs(method, game, budget=60, n=200)
    bias = found.mean(axis=0) - game.shapley[0]
    assert (bias**2).mean() < 0.15 * ((found - game.shapley[0]) ** 2).mean()


@pytest.mark.parametrize("method", ["shapley", "shapley-sampling", "kernel-shap"])
@pytest.mark.parametrize("times", [2, 5, 20])
def test_scores_sum_to_the_gain_to_rounding(method, times):
    game = sparse_game(11, seed=times)
    ends = game.values(np.array([[True] * 11, [False] * 11]))
    found = play(explainers.make(method), game, budget=11 * times)
    np.testing.assert_allclose(found.scores.sum(axis=1), ends[0] - ends[1], atol=1e-12)


@pytest.mark.parametrize(("times", "most"), [(2, 0.75), (3, 0.5), (5, 0.5), (10, 0.4), (20, 0.3)])
def test_shapley_has_a_smaller_error_than_the_others(times, most):
    """Than kernel-shap and antithetic permutations."""
    errors = {"kernel-shap": [], "shapley-sampling": [], "shapley": []}
    for seed in range(12):
        game = sparse_game(12, seed)
        for method, kept in errors.items():
            found = play(explainers.make(method), game, budget=12 * times + 2, seed=seed)
            kept.append(((found.scores - game.shapley) ** 2).mean())
    means = {method: np.mean(kept) for method, kept in errors.items()}
    assert means["shapley"] < most * min(means["kernel-shap"], means["shapley-sampling"])


@pytest.mark.parametrize("times", [5, 10, 20])
def test_standard_errors_of_shapley_cover_the_truth(times):
    """More than 95% here: of games with sets of all sizes a process knows more than it claims."""
    inside = []
    for seed in range(40):
        game = sparse_game(10, seed, sets=25, largest=8)
        found = play(explainers.make("shapley"), game, budget=10 * times, seed=seed)
        inside += (np.abs(found.scores - game.shapley) <= 1.96 * found.standard_errors).ravel().tolist()
    assert np.mean(inside) > 0.93
