"""`shapley`: its Gaussian process compared with all terms, and its error with that of kernel-shap."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

import pertinent
from pertinent.explainers.base import explainers
from pertinent.explainers.shapley.gaussian_process import Prior, estimate
from pertinent.explainers.shapley.shapley import choose
from pertinent.testing.games import as_model, play, random_interactions, sum_of_unanimity, unanimity

D = 5
ODD_SETS = [t for k in (1, 3, 5) for t in combinations(range(D), k)]
CORNERS = np.array(list(product([-1.0, 1.0], repeat=D)))


PRIORS = [
    Prior(strength * np.array([0.16, 0.03, 0.48, 0.08, 0.24]), linear)
    for strength, linear in product((0.1, 1.0, 2.0), (0.0, 3.0, 100.0))
]


def by_hand(prior):
    """Return the basis functions of the process, their variances, and their parts of the values."""
    variances = [np.prod(prior.r[list(t)]) * (1 + prior.linear * (len(t) == 1)) for t in ODD_SETS]
    basis = np.array([CORNERS[:, list(t)].prod(axis=1) for t in ODD_SETS])
    shares = np.array([[2 / len(t) if i in t else 0.0 for i in range(D)] for t in ODD_SETS])
    return np.array(variances), basis, shares


@pytest.mark.parametrize("prior", PRIORS)
def test_the_closed_forms_are_sums_over_all_odd_sets(prior):
    variances, basis, shares = by_hand(prior)
    weighted = variances[:, None] * basis
    np.testing.assert_allclose(prior.covariance(CORNERS, CORNERS), basis.T @ weighted, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(
        prior.covariance_with_values(CORNERS), weighted.T @ shares, rtol=1e-9, atol=1e-12
    )
    np.testing.assert_allclose(prior.variance_of_values(), variances @ shares**2, rtol=1e-9)


def test_the_terms_have_these_shapley_values():
    """Check that a product of ±1 over a set of odd size gives 2 / |T| to each of its members."""
    for members in ODD_SETS:
        masks = CORNERS > 0
        found = _exact(CORNERS[:, list(members)].prod(axis=1), masks)
        np.testing.assert_allclose(found, [2 / len(members) if i in members else 0.0 for i in range(D)])


@pytest.mark.parametrize("seed", range(3))
def test_all_masks_give_the_exact_values(seed):
    game = random_interactions(6, seed=seed, order=6, classes=2)
    found = play(explainers.make("shapley"), game, budget=64)
    np.testing.assert_allclose(found.scores, game.shapley, atol=1e-8)
    assert found.details == {"estimator": "regression"}


def test_the_process_knows_what_all_answers_tell():
    game = random_interactions(6, seed=1, order=6)
    masks = np.array(list(product([True, False], repeat=6)))[:32]
    values, complements = game.values(masks), game.values(~masks)
    found = estimate(masks, (values - complements) / 2, (values + complements) / 2, slice(None))
    np.testing.assert_allclose(found.values.T, game.shapley, atol=1e-4)


@pytest.mark.parametrize("budget", [40, 60, 100, 200])
def test_scores_sum_to_the_gain(budget):
    game = random_interactions(12, seed=3, order=3, classes=3)
    found = play(explainers.make("shapley"), game, budget=budget)
    ends = game.values(np.array([[True] * 12, [False] * 12]))
    np.testing.assert_allclose(found.scores.sum(axis=1), ends[0] - ends[1], atol=1e-12)
    np.testing.assert_allclose(found.base_values, ends[1], atol=1e-12)


def test_games_of_pairs_are_solved_exactly_by_every_estimator():
    game = random_interactions(8, seed=0, order=2)
    for estimator, budget in (("permutations", 16), ("process", 60), ("regression", 60)):
        found = play(explainers.make("shapley", {"estimator": estimator}), game, budget=budget)
        np.testing.assert_allclose(found.scores, game.shapley, atol=1e-4)
        assert found.details == {"estimator": estimator}


@pytest.mark.parametrize(("times", "most"), [(3, 0.5), (5, 0.65), (10, 0.5), (20, 0.4)])
def test_the_process_has_a_smaller_error_than_kernel_shap(times, most):
    errors = {"kernel-shap": [], "shapley": []}
    for seed in range(12):
        game = _sparse_game(12, seed)
        for method, kept in errors.items():
            found = play(explainers.make(method), game, budget=12 * times, seed=seed)
            kept.append(((found.scores - game.shapley) ** 2).mean())
    assert np.mean(errors["shapley"]) < most * np.mean(errors["kernel-shap"])


def test_standard_errors_cover_the_truth():
    inside = []
    for seed in range(40):
        game = _sparse_game(10, seed)
        found = play(explainers.make("shapley"), game, budget=80, seed=seed)
        inside += (np.abs(found.scores - game.shapley) <= 1.96 * found.standard_errors).ravel().tolist()
    assert 0.88 < np.mean(inside) < 0.995


@pytest.mark.parametrize("times", [4, 5, 10, 20])
def test_standard_errors_of_permutations_cover_the_truth(times):
    """Check few permutations: 4d evaluations are two of them, each with its reverse."""
    inside = []
    for seed in range(150):
        game = _sparse_game(10, seed)
        found = play(explainers.make("shapley-sampling"), game, budget=10 * times, seed=seed)
        inside += (np.abs(found.scores - game.shapley) <= 1.96 * found.standard_errors).ravel().tolist()
    assert 0.93 < np.mean(inside) < 0.98


def test_the_choice():
    assert choose(10, 1024) == "regression"
    assert choose(10, 1023) == "process"
    assert choose(50, 60) == "permutations"
    assert choose(50, 100) == "process"
    assert choose(50, 20_000) == "regression"


@pytest.mark.parametrize("d", [1, 2, 3])
def test_few_features(d):
    e = pertinent.explain(as_model(unanimity(d, range(d))), np.ones(d), "shapley", removal="constant")
    np.testing.assert_allclose(e.scores, np.full(d, 1 / d), atol=1e-9)


def test_a_game_that_is_nothing():
    found = play(explainers.make("shapley"), sum_of_unanimity(9, [[0]], np.zeros((1, 1))), budget=50)
    assert np.abs(found.scores).max() < 1e-12
    assert np.isfinite(found.scores).all()


def _sparse_game(d, seed):
    rng = np.random.default_rng(seed)
    sets = [rng.choice(d, rng.integers(1, 5), replace=False) for _ in range(15)]
    return sum_of_unanimity(d, sets, rng.normal(size=(15, 1)))


def _exact(values, masks):
    """Return the Shapley values of a table as the average over all orders."""
    from itertools import permutations

    place = {mask.tobytes(): value for mask, value in zip(masks, values, strict=True)}
    total, n = np.zeros(masks.shape[1]), 0
    for order in permutations(range(masks.shape[1])):
        mask = np.zeros(masks.shape[1], dtype=bool)
        n += 1
        for i in order:
            before = place[mask.tobytes()]
            mask[i] = True
            total[i] += place[mask.tobytes()] - before
    return total / n
