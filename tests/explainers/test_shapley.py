"""Shapley and Banzhaf values against definitions, closed forms, and their own reported errors."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest
from tests.games import (
    additive,
    majority,
    play,
    random_interactions,
    random_table,
    sum_of_unanimity,
    unanimity,
)
from tests.reference.shapley import (
    banzhaf_by_definition,
    kernel_shap_with_all_coalitions,
    shapley_by_permutations,
)

from pertinent.explainers.leave_one_out import LeaveOneOut
from pertinent.explainers.shapley.banzhaf import Banzhaf
from pertinent.explainers.shapley.exact_shapley import ExactShapley
from pertinent.explainers.shapley.kernel_shap import (
    Coalitions,
    KernelShap,
    _sample_pairs,
    draw_coalitions,
    solve,
)
from pertinent.explainers.shapley.shapley_sampling import ShapleySampling, draw_orders
from pertinent.explainers.surrogate.lime import Lime

EXACT = ExactShapley()


def ends(game):
    """v(N) − v(∅) for each class."""
    empty, full = game.values(np.array([[False] * game.d, [True] * game.d]))
    return full - empty


def many(explainer, game, seeds, **options):
    """Scores and reported errors over seeds, (seeds, features) of the first class."""
    found = [play(explainer, game, seed=seed, **options) for seed in range(seeds)]
    return np.array([f.scores[0] for f in found]), np.array([f.standard_errors[0] for f in found])


# -- exact values -------------------------------------------------------------------------------


@pytest.mark.parametrize("d", range(1, 8))
def test_exact_shapley_is_the_mean_over_all_permutations(d):
    game = random_table(d, seed=1, classes=3)
    np.testing.assert_allclose(play(EXACT, game).scores, shapley_by_permutations(game), atol=1e-12)
    assert game.calls == 1
    assert game.distinct == len(game.masks) == 2**d


@pytest.mark.parametrize(
    "game",
    [
        additive(np.array([0.5, -1.0, 0.0, 2.0]), offset=3.0),
        unanimity(6, [0, 2, 5]),
        unanimity(4, [3]),
        majority(5),
        majority(8),
        random_interactions(9, seed=0, order=3, classes=2),
    ],
    ids=["additive", "unanimity", "dictator", "odd majority", "even majority", "interactions"],
)
def test_known_games(game):
    np.testing.assert_allclose(play(EXACT, game).scores, game.shapley, atol=1e-12)
    np.testing.assert_allclose(play(KernelShap(), game, budget=2**game.d).scores, game.shapley, atol=1e-12)
    np.testing.assert_allclose(play(Banzhaf(), game, budget=2**game.d).scores, game.banzhaf, atol=1e-12)


@pytest.mark.parametrize("d", range(1, 13))
def test_kernel_shap_with_all_coalitions_is_exact(d):
    game = random_table(d, seed=2, classes=3)
    found = play(KernelShap(), game, budget=max(2**d, 2))
    assert game.distinct == len(game.masks) == 2**d
    np.testing.assert_allclose(found.scores, play(EXACT, game).scores, atol=1e-10)
    np.testing.assert_array_equal(found.standard_errors, np.zeros((3, d)))


@pytest.mark.parametrize("d", range(2, 9))
def test_kernel_shap_with_all_coalitions_is_the_constrained_regression(d):
    game = random_table(d, seed=3, classes=2)
    found = play(KernelShap(), game, budget=2**d)
    np.testing.assert_allclose(found.scores, kernel_shap_with_all_coalitions(game), atol=1e-10)


@pytest.mark.parametrize("d", range(1, 9))
def test_banzhaf_with_all_masks_is_exact(d):
    game = random_table(d, seed=4, classes=2)
    found = play(Banzhaf(), game, budget=2**d)
    assert game.distinct == len(game.masks) == 2**d
    np.testing.assert_allclose(found.scores, banzhaf_by_definition(game), atol=1e-12)
    np.testing.assert_array_equal(found.standard_errors, np.zeros((2, d)))


def test_leave_one_out_is_the_drop_without_each_feature():
    game = random_table(6, seed=5, classes=2)
    full, *without = game.values(np.concatenate([np.ones((1, 6), bool), ~np.eye(6, dtype=bool)]))
    np.testing.assert_allclose(play(LeaveOneOut(), game).scores, (full - np.array(without)).T)


@pytest.mark.parametrize(
    "explainer", [EXACT, KernelShap(), ShapleySampling(), Banzhaf()], ids=lambda e: e.name
)
def test_a_single_feature_has_the_whole_gain(explainer):
    game = random_table(1, seed=6, classes=3)
    np.testing.assert_allclose(play(explainer, game, budget=2).scores, ends(game)[:, None], atol=1e-14)
    assert game.distinct == 2


# -- sampling permutations ----------------------------------------------------------------------


@pytest.mark.parametrize("antithetic", [True, False])
@pytest.mark.parametrize("samples", [1, 2, 3, 4, 7, 10])
def test_sampled_scores_sum_to_the_gain(samples, antithetic):
    game = random_table(7, seed=7, classes=3)
    found = play(ShapleySampling(samples=samples, antithetic=antithetic), game)
    np.testing.assert_allclose(found.scores.sum(axis=1), ends(game), atol=1e-12)
    assert len(game.masks) == samples * 6 + 2


@pytest.mark.parametrize("antithetic", [True, False])
def test_sampling_is_unbiased(antithetic):
    game = random_table(6, seed=8)
    scores, _ = many(ShapleySampling(samples=5, antithetic=antithetic), game, 1500)
    error = scores.std(axis=0, ddof=1) / np.sqrt(len(scores))
    assert (np.abs(scores.mean(axis=0) - play(EXACT, game).scores[0]) < 4 * error).all()
    assert (error > 0).all()


def test_reversed_orders_are_exact_for_pairwise_games():
    game = random_interactions(9, seed=1, order=2)
    found = play(ShapleySampling(samples=2), game)
    np.testing.assert_allclose(found.scores, game.shapley, atol=1e-12)


@pytest.mark.parametrize(("n", "antithetic"), [(1, True), (5, True), (6, True), (5, False)])
def test_orders_are_permutations_followed_by_their_reverse(n, antithetic):
    orders = draw_orders(np.random.default_rng(0), n, 9, antithetic=antithetic)
    assert orders.shape == (n, 9)
    np.testing.assert_array_equal(np.sort(orders, axis=1), np.tile(np.arange(9), (n, 1)))
    pairs = n // 2
    reverse = [bool((orders[2 * i] == orders[2 * i + 1][::-1]).all()) for i in range(pairs)]
    assert reverse == [antithetic] * pairs


def test_budget_decides_the_number_of_permutations():
    game = random_table(8, seed=9)
    play(ShapleySampling(), game, budget=100)
    assert len(game.masks) == 14 * 7 + 2


# -- sampling coalitions ------------------------------------------------------------------------


@pytest.mark.parametrize(("d", "budget"), [(14, 100), (14, 1000), (17, 301), (20, 500)])
def test_sampled_kernel_shap_is_efficient_and_in_budget(d, budget):
    game = random_interactions(d, seed=2, order=3, classes=2)
    found = play(KernelShap(), game, budget=budget)
    np.testing.assert_allclose(found.scores.sum(axis=1), ends(game), atol=1e-10)
    assert budget - 2 < game.distinct == len(game.masks) <= budget


def test_paired_coalitions_are_exact_for_pairwise_games():
    game = random_interactions(15, seed=3, order=2)
    np.testing.assert_allclose(play(KernelShap(), game, budget=200).scores, game.shapley, atol=1e-10)


def kernel_mass(d):
    """The share of the Shapley kernel on each pair of sizes s and d − s, set by set, by the smaller."""
    mass = dict.fromkeys(range(1, d // 2 + 1), 0.0)
    for number in range(1, 2**d - 1):
        size = number.bit_count()
        mass[min(size, d - size)] += (d - 1) / (comb(d, size) * size * (d - size))
    total = sum(mass.values())
    return {size: own / total for size, own in mass.items()}


@pytest.mark.parametrize(("d", "n_pairs"), [(9, 255), (9, 40), (10, 511), (10, 200), (13, 100), (14, 500)])
def test_coalitions_weigh_what_the_shapley_kernel_says(d, n_pairs):
    """Each complete size its share of the kernel, evenly; all sampled sizes theirs together."""
    found = draw_coalitions(d, n_pairs, np.random.default_rng(0))
    expected = kernel_mass(d)
    kept = found.pairs.sum(axis=1)
    size = np.minimum(kept, d - kept)
    complete = np.arange(len(size)) < found.complete
    assert found.weight.sum() == pytest.approx(1)
    assert found.complete > 0
    for s in np.unique(size[complete]).tolist():
        count = comb(d, s) // (2 if 2 * s == d else 1)
        np.testing.assert_allclose(found.weight[size == s], np.full(count, expected[s] / count))
    rest = sum(share for s, share in expected.items() if s not in size[complete])
    assert found.weight[~complete].sum() == pytest.approx(rest, abs=1e-12)


@pytest.mark.parametrize("d", [13, 14])
def test_sampled_pairs_are_drawn_by_the_shapley_kernel(d):
    """How often each size is drawn follows its kernel weight, however many were drawn twice."""
    sizes = np.arange(1, d // 2 + 1)
    weight = np.array([kernel_mass(d)[s] for s in sizes.tolist()])
    shares = []
    for seed in range(400):
        pairs, times = _sample_pairs(d, sizes, weight, 200, np.random.default_rng(seed))
        assert len(np.unique(np.concatenate([pairs, ~pairs]), axis=0)) == 2 * len(pairs)
        kept = pairs.sum(axis=1)
        shares.append([times[np.minimum(kept, d - kept) == s].sum() / times.sum() for s in sizes])
    shares = np.array(shares)
    # Stopping at a number of distinct pairs is allowed to move a share by a hundredth of itself.
    slack = 4 * shares.std(axis=0) / np.sqrt(len(shares)) + 0.01 * weight
    assert (np.abs(shares.mean(axis=0) - weight) < slack).all()


def test_sampled_kernel_shap_is_nearly_unbiased():
    """It is a ratio of sums, so its bias is not zero but a small part of its own noise."""
    game = random_interactions(14, seed=4, order=3)
    scores, _ = many(KernelShap(samples=600), game, 300)
    bias = (scores.mean(axis=0) - game.shapley[0]) / scores.std(axis=0)
    assert np.sqrt((bias**2).mean()) < 0.1


def test_no_feature_is_special_to_the_regression():
    """Whichever feature is eliminated to meet the constraint, the scores are the same."""
    d, rng = 8, np.random.default_rng(0)
    game = random_table(d, seed=10)
    for n_pairs in (3, 5, 20):
        found = draw_coalitions(d, n_pairs, rng)
        order = np.roll(np.arange(d), 3)
        moved = Coalitions(found.pairs[:, order], found.weight, found.complete)
        values = game.values(np.concatenate([found.pairs, ~found.pairs]))
        scores, errors = solve(found, values, ends(game))
        moved_scores, moved_errors = solve(moved, values, ends(game))
        np.testing.assert_allclose(moved_scores, scores[order], atol=1e-9)
        np.testing.assert_allclose(moved_errors, errors[order], atol=1e-9)


def test_sampled_banzhaf_is_unbiased():
    game = random_table(7, seed=11)
    scores, _ = many(Banzhaf(samples=40), game, 1500)
    error = scores.std(axis=0, ddof=1) / np.sqrt(len(scores))
    assert (np.abs(scores.mean(axis=0) - banzhaf_by_definition(game)[0]) < 4 * error).all()
    assert (error > 0).all()


def test_banzhaf_asks_for_pairs_of_complements():
    game = random_table(9, seed=12)
    play(Banzhaf(), game, budget=101)
    first, second = np.split(game.masks, 2)
    assert len(first) == 50
    np.testing.assert_array_equal(first, ~second)


# -- reported errors ----------------------------------------------------------------------------

CALIBRATED = {
    "shapley-sampling": (ShapleySampling(samples=40), {}, 9),
    "shapley-sampling, odd": (ShapleySampling(samples=41), {}, 9),
    "shapley-sampling without reverses": (ShapleySampling(samples=40, antithetic=False), {}, 9),
    "kernel-shap, 14 features": (KernelShap(), {"budget": 600}, 14),
    "kernel-shap, 17 features": (KernelShap(samples=800), {}, 17),
    "kernel-shap, 20 features": (KernelShap(), {"budget": 1000}, 20),
    "kernel-shap, few samples": (KernelShap(), {"budget": 60}, 14),
    "banzhaf": (Banzhaf(samples=200), {}, 12),
    "lime": (Lime(), {"budget": 400}, 10),
    "lime, few samples": (Lime(), {"budget": 40}, 10),
}


@pytest.mark.parametrize("case", CALIBRATED)
def test_reported_errors_match_the_spread_over_seeds(case):
    explainer, options, d = CALIBRATED[case]
    game = random_interactions(d, seed=5, order=3)
    scores, errors = many(explainer, game, 250, **options)
    ratio = np.sqrt((errors**2).mean(axis=0)) / scores.std(axis=0, ddof=1)
    assert (ratio > 0.75).all()
    assert (ratio < 1.25).all()


@pytest.mark.parametrize(
    "explainer",
    [
        ShapleySampling(samples=1),
        ShapleySampling(samples=1, antithetic=False),
        ShapleySampling(samples=2),
        Banzhaf(samples=2),
        Banzhaf(samples=3),
        KernelShap(samples=2),
        KernelShap(samples=18),
    ],
    ids=str,
)
def test_an_error_that_cannot_be_known_is_nan(explainer):
    """One draw has no spread (an order and its reverse are one), and d − 1 pairs fit perfectly."""
    errors = play(explainer, random_table(10, seed=13)).standard_errors
    assert np.isnan(errors).all()


def test_values_of_a_class_do_not_depend_on_the_others():
    one = sum_of_unanimity(5, [[0], [1, 2], [2, 3, 4]], np.array([1.0, 2.0, -1.0]))
    two = sum_of_unanimity(5, [[0], [1, 2], [2, 3, 4]], np.array([[1.0, 9.0], [2.0, 3.0], [-1.0, 0.5]]))
    for explainer in (KernelShap(samples=12), ShapleySampling(samples=3), Banzhaf(samples=10)):
        np.testing.assert_allclose(play(explainer, two).scores[0], play(explainer, one).scores[0], atol=1e-12)
