"""Sampled Shapley values: bias, efficiency, coverage, and the error of `shapley` compared with others."""

from __future__ import annotations

import numpy as np
import pytest

import pertinent
from pertinent.explainers.base import explainers
from pertinent.explainers.shapley.kernel_shap import Coalitions, draw_coalitions, solve
from pertinent.masks import all_coalitions, shapley_values_of
from pertinent.stats import student_factor
from pertinent.testing.games import RecordedGame, play, sum_of_unanimity


def sparse_game(d, seed, sets=15, largest=4):
    rng = np.random.default_rng(seed)
    members = [rng.choice(d, rng.integers(1, largest + 1), replace=False) for _ in range(sets)]
    return sum_of_unanimity(d, members, rng.normal(size=(sets, 1)))


def many_runs(method, game, budget, n=400):
    return np.array([play(explainers.make(method), game, budget=budget, seed=s).scores[0] for s in range(n)])


@pytest.mark.parametrize("budget", [9, 16, 30])
def test_permutations_are_without_bias(budget):
    """Compare the mean of many runs of one, two and four orders with the exact value."""
    game = sparse_game(8, seed=3)
    found = many_runs("shapley-sampling", game, budget)
    standard_error = found.std(axis=0, ddof=1) / np.sqrt(len(found))
    assert (standard_error > 0).all()
    assert (np.abs(found.mean(axis=0) - game.shapley[0]) < 4 * standard_error).all()


@pytest.mark.parametrize("method", ["kernel-shap", "shapley"])
def test_the_bias_of_a_fitted_model_is_a_small_part_of_its_error(method):
    """Check the small bias of a regression, and the shrinkage of a posterior mean by 0.11 of the error."""
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
    """Compare with kernel-shap and antithetic permutations."""
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
    """Check coverage above 95%, because the process underestimates its accuracy on sets of all sizes."""
    inside = []
    for seed in range(40):
        game = sparse_game(10, seed, sets=25, largest=8)
        found = play(explainers.make("shapley"), game, budget=10 * times, seed=seed)
        inside += (np.abs(found.scores - game.shapley) <= 1.96 * found.standard_errors).ravel().tolist()
    assert np.mean(inside) > 0.93


def majority(weights):
    """Return a weighted majority, with Shapley values from all masks."""
    d = len(weights)

    def values(masks):
        return (masks @ weights > weights.sum() / 2).astype(float)[:, None]

    return RecordedGame(d, values, shapley=shapley_values_of(values(all_coalitions(d))).T)


@pytest.mark.parametrize("method", ["shapley", "kernel-shap", "shapley-sampling"])
@pytest.mark.parametrize("times", [10, 20])
def test_standard_errors_cover_the_truth_of_hard_decisions(method, times):
    """Check features without an effect in few orders or masks, whose value may still not be zero."""
    game = majority(np.array([9, 8, 7, 5, 5, 4, 4, 3, 2, 2, 1, 1]))
    covered = []
    for seed in range(15):
        found = play(explainers.make(method), game, budget=times * 12, seed=seed)
        covered.append(np.abs(found.scores - game.shapley) <= 1.96 * found.standard_errors)
    assert np.mean(covered) > 0.88


@pytest.mark.parametrize("budget", [80, 84, 100])
def test_kernel_shap_does_not_explode_near_its_smallest_budget(budget):
    game = sparse_game(40, seed=1)
    errors = [play(explainers.make("kernel-shap"), game, budget=budget, seed=s).scores for s in range(5)]
    assert ((np.array(errors) - game.shapley) ** 2).mean() < 3 * (game.shapley**2).mean()


def test_standard_errors_of_kernel_shap_are_those_of_fits_without_each_pair():
    """Refit without each sampled pair, with the same weights."""
    game = sparse_game(6, seed=2, sets=10)
    drawn = draw_coalitions(6, 14, np.random.default_rng(0))
    both = np.concatenate([drawn.pairs, ~drawn.pairs])
    ends = game.values(np.array([[False] * 6, [True] * 6]))
    values, gain, n = game.values(both) - ends[0], ends[1] - ends[0], len(drawn.pairs)
    scores, errors = solve(drawn, values, gain)
    changes = []
    for i in range(drawn.complete, n):
        others = np.delete(np.arange(n), i)
        left = Coalitions(drawn.pairs[others], drawn.weight[others], drawn.complete)
        changes.append(solve(left, values[np.r_[others, n + others]], gain)[0] - scores)
    by_hand = np.sqrt((np.array(changes) ** 2).sum(axis=0))
    np.testing.assert_allclose(errors, student_factor(n - 6 + 1) * by_hand, rtol=1e-8)


def test_early_stopping_is_right_on_a_game_without_an_even_part():
    """Check a sigmoid model with an opposing baseline: its top 3 are those of all masks when it stops."""
    weights = np.array([1.5, -1.2, 1.0, 0.6, -0.5, 0.4, 0.3, -0.3, 0.2, 0.1, 0.1, 0.05])

    def probabilities(rows):
        positive = 1 / (1 + np.exp(-np.asarray(rows, dtype=float) @ weights))
        return np.stack([1 - positive, positive], axis=1)

    row = np.ones(12)
    values = probabilities(np.where(all_coalitions(12), row, -row))[:, 1]
    best = set(np.argsort(-np.abs(shapley_values_of(values)))[:3])
    model = pertinent.wrap(probabilities, background=-row[None])
    found = [
        pertinent.explain(model, row, target=1, budget=1500, early_stopping="stable:top=3", seed=s)
        for s in range(10)
    ]
    assert all(set(np.argsort(-np.abs(e.scores))[:3]) == best for e in found)
    assert sum(e.details["stopped"] == "stable" for e in found) >= 8
