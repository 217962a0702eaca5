"""Searches: where they start, what they ask, what they accept, and what they find."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np
import pytest
from scipy.stats import chi2, chisquare
from tests.games import Game, additive, majority, play, random_interactions, random_table
from tests.reference.search import best_subset, local_search, objective_of

from pertinent.engine.asks import Fork
from pertinent.errors import BudgetError, SettingError
from pertinent.explainers.base import Task
from pertinent.explainers.search.base import as_masks, uniform_sets
from pertinent.explainers.search.exhaustive import CHUNK, ExhaustiveSearch
from pertinent.explainers.search.parallel_local_search import ParallelLocalSearch
from pertinent.explainers.search.random_search import RandomSearch

BOTH = ("sufficiency", "comprehensiveness")
SEARCHES = (ExhaustiveSearch, ParallelLocalSearch, RandomSearch)


def search(explainer, game, k, **options):
    """The one set of k features that a search chose."""
    sparsity = k / game.d
    return play(explainer, game, sparsities=(sparsity,), **options).chosen[sparsity]


def optimum(game, k):
    return game.values(as_masks(combinations(range(game.d), k), game.d))[:, 0].max()


def uniform_over_features(inclusions, n, k):
    """The p-value of inclusion counts, which are negatively correlated: n sets of k out of d."""
    d = len(inclusions)
    share = k / d
    statistic = ((inclusions - n * share) ** 2).sum() / (n * share * (1 - share)) * (d - 1) / d
    return chi2.sf(statistic, d - 1)


# -- what every search does ---------------------------------------------------------------------


@pytest.mark.parametrize("objective", BOTH)
@pytest.mark.parametrize("kind", SEARCHES, ids=lambda c: c.name)
@pytest.mark.parametrize("k", [1, 3, 4, 7])
def test_all_sets_judged_means_the_optimum(kind, objective, k):
    game = random_table(7, seed=1, classes=2)
    chosen = search(kind(objective=objective), game, k, target=1, budget=comb(7, k))
    expected, _ = best_subset(game, k, target=1, objective=objective)
    np.testing.assert_array_equal(chosen, expected)
    assert game.distinct == len(game.masks) == comb(7, k)


@pytest.mark.parametrize("kind", SEARCHES, ids=lambda c: c.name)
def test_one_search_for_each_size(kind):
    """Sparsities that mean the same number of features share one search."""
    game = random_interactions(8, seed=2)
    found = play(kind(), game, budget=100, sparsities=(0.05, 0.1, 0.5, 1.0))
    assert [int(mask.sum()) for mask in found.chosen.values()] == [1, 1, 4, 8]
    assert len(game.masks) == 8 + comb(8, 4) + 1
    assert found.scores is None


@pytest.mark.parametrize("kind", [ParallelLocalSearch, RandomSearch], ids=lambda c: c.name)
@pytest.mark.parametrize("objective", BOTH)
def test_the_best_set_asked_for_is_chosen(kind, objective):
    game = random_table(14, seed=3, classes=2)
    chosen = search(kind(objective=objective), game, 7, target=1, budget=333)
    sets = game.masks if objective == "sufficiency" else ~game.masks
    assert (sets.sum(axis=1) == 7).all()
    best = max(objective_of(game, mask, 1, objective) for mask in sets)
    assert objective_of(game, chosen, 1, objective) == best


@pytest.mark.parametrize("kind", SEARCHES, ids=lambda c: c.name)
def test_objectives_are_known_by_name(kind):
    with pytest.raises(SettingError, match="sufficiency"):
        kind(objective="sufficency")


# -- exhaustive search --------------------------------------------------------------------------


@pytest.mark.parametrize("first", [0, 4, 8])
def test_exhaustive_search_keeps_the_best_of_all_chunks(first):
    """Sets come in the order of their features, so the best is in the first or the last chunk."""
    weights = np.zeros(15)
    weights[first : first + 7] = 1.0
    game = additive(weights)
    chosen = search(ExhaustiveSearch(), game, 7)
    assert comb(15, 7) > CHUNK
    assert game.calls == 2
    np.testing.assert_array_equal(np.flatnonzero(chosen), np.arange(first, first + 7))


@pytest.mark.parametrize(
    ("explainer", "d", "budget", "allowed"),
    [
        (ExhaustiveSearch(), 40, None, "200,000"),
        (ExhaustiveSearch(most=1000), 14, None, "1,000"),
        (ExhaustiveSearch(), 14, 2000, "2,000"),
    ],
)
def test_exhaustive_search_refuses_what_would_not_end(explainer, d, budget, allowed):
    game = additive(np.ones(d))
    with pytest.raises(BudgetError) as error:
        search(explainer, game, d // 2, budget=budget)
    assert f"{comb(d, d // 2):,}" in str(error.value)
    assert allowed in str(error.value)
    assert game.calls == 0


# -- random search ------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [5, 8])
def test_random_search_is_uniform_over_sets(d):
    """Also where sets are drawn until they are distinct (d = 8), not only where all are listed (d = 5)."""
    k, budget, seeds = 3, 6, 1500
    counts = dict.fromkeys(combinations(range(d), k), 0)
    for seed in range(seeds):
        game = majority(d)
        search(RandomSearch(), game, k, budget=budget, seed=seed)
        assert game.distinct == len(game.masks) == budget
        for mask in game.masks:
            counts[tuple(np.flatnonzero(mask).tolist())] += 1
    assert chisquare(list(counts.values())).pvalue > 1e-3


@pytest.mark.parametrize("kind", [RandomSearch, ParallelLocalSearch], ids=lambda c: c.name)
def test_every_feature_is_as_likely_among_many_sets(kind):
    """C(30, 10) is 30 million; the authors' code never drew feature 0 there."""
    d, k = 30, 10
    inclusions, n = np.zeros(d), 0
    for seed in range(400):
        game = majority(d)
        search(kind(), game, k, budget=10, seed=seed)
        inclusions += game.masks.sum(axis=0)
        n += len(game.masks)
    assert n == 4000
    assert inclusions[0] > 0
    assert uniform_over_features(inclusions, n, k) > 1e-3


@pytest.mark.parametrize(("n", "d", "k"), [(1, 4, 2), (3, 12, 6), (50, 12, 6), (924, 12, 6), (2000, 12, 6)])
def test_uniform_sets_are_distinct(n, d, k):
    sets = uniform_sets(np.random.default_rng(0), n, d, k)
    assert len(sets) == len(np.unique(sets, axis=0)) == min(n, comb(d, k))
    assert (sets.sum(axis=1) == k).all()


# -- parallel local search ----------------------------------------------------------------------


@pytest.mark.parametrize("budget", [1, 2, 3, 7, 10, 11, 13, 99, 100, 333, 1001, 3431])
@pytest.mark.parametrize("runs", [1, 4, 10])
def test_local_search_asks_no_set_twice_and_spends_its_budget(budget, runs):
    game = random_interactions(14, seed=4)
    chosen = search(ParallelLocalSearch(runs=runs), game, 7, budget=budget)
    assert game.distinct == len(game.masks)
    assert (game.masks.sum(axis=1) == 7).all()
    # Near the end one walk may no longer find a set that is new; several or few sets always do.
    assert len(game.masks) <= budget
    assert len(game.masks) == budget or budget > 3000
    assert chosen.sum() == 7


def test_local_search_gives_no_walk_more_than_the_others():
    game = random_interactions(20, seed=5)
    search(ParallelLocalSearch(runs=8), game, 10, budget=8 * 6 + 3)
    assert [len(masks) for masks in game.asked] == [8] * 6 + [3]


def test_local_search_starts_uniformly_over_sets():
    d, k = 6, 2
    counts = dict.fromkeys(combinations(range(d), k), 0)
    for seed in range(3000):
        game = majority(d)
        search(ParallelLocalSearch(runs=1), game, k, budget=1, seed=seed)
        counts[tuple(np.flatnonzero(game.masks[0]).tolist())] += 1
    assert chisquare(list(counts.values())).pvalue > 1e-3


def test_local_search_proposes_swaps_uniformly():
    """Each feature inside is as likely to leave, and each outside as likely to enter."""
    d, k = 7, 3
    left, entered = np.zeros(d), np.zeros(d)
    for seed in range(2000):
        game = majority(d)
        search(ParallelLocalSearch(runs=1), game, k, budget=2, seed=seed)
        before, after = game.masks
        left += before & ~after
        entered += after & ~before
    assert left.sum() == entered.sum() == 2000
    assert chisquare(left).pvalue > 1e-3
    assert chisquare(entered).pvalue > 1e-3


@pytest.mark.parametrize("objective", BOTH)
def test_a_walk_moves_only_to_what_is_better(objective):
    """With so many neighbours none is met twice, so each proposal is one swap from the best state so far."""
    d, k = 300, 150
    game = random_interactions(d, seed=6, order=1)
    search(ParallelLocalSearch(runs=1, objective=objective), game, k, budget=120)
    sets = game.masks if objective == "sufficiency" else ~game.masks
    judged = [objective_of(game, mask, 0, objective) for mask in sets]
    state, moves = 0, 0
    for step in range(1, len(sets)):
        assert (sets[step] ^ sets[state]).sum() == 2
        if judged[step] > judged[state]:
            state, moves = step, moves + 1
    assert 20 < moves < 100


def test_an_equally_good_set_is_not_better():
    game = Game(200, lambda masks: np.ones((len(masks), 1)))
    search(ParallelLocalSearch(runs=1), game, 100, budget=50)
    assert ((game.masks[1:] ^ game.masks[0]).sum(axis=1) == 2).all()


def test_walks_do_not_mix():
    """Each walk's proposals stay one swap from that walk's own best state."""
    d, k, runs = 300, 150, 3
    game = random_interactions(d, seed=7, order=1)
    search(ParallelLocalSearch(runs=runs), game, k, budget=runs * 30)
    for walk in range(runs):
        sets = np.array([masks[walk] for masks in game.asked])
        judged = game.values(sets)[:, 0]
        for step in range(1, len(sets)):
            state = judged[:step].argmax()
            assert (sets[step] ^ sets[state]).sum() == 2


def test_a_proposal_already_seen_is_walked_through():
    """On a small board every set is reached, one swap from a set seen before."""
    game = random_table(8, seed=8)
    search(ParallelLocalSearch(runs=1), game, 4, budget=69)
    assert game.distinct == 69
    for step in range(1, 69):
        assert ((game.masks[:step] ^ game.masks[step]).sum(axis=1) == 2).any()


def test_local_search_finds_the_optimum_of_ten_features():
    """Where the budget covers all sets (C(10, 5) = 252), and by walking when it does not."""
    games = [random_interactions(10, seed=seed) for seed in range(150)]
    for budget in (1000, 200):
        found = [
            game.values(search(ParallelLocalSearch(), game, 5, budget=budget, seed=seed)[None])[0, 0]
            for seed, game in enumerate(games)
        ]
        hits = np.isclose(found, [optimum(game, 5) for game in games])
        assert hits.mean() >= 0.99


def test_local_search_finds_the_optimum_of_fourteen_features():
    """1000 of 3432 sets: 100 of 100 games when this was written, 33 for random search."""
    hits, by_chance = [], []
    for seed in range(60):
        game = random_interactions(14, seed=seed)
        best = optimum(game, 7)
        for explainer, record in ((ParallelLocalSearch(), hits), (RandomSearch(), by_chance)):
            chosen = search(explainer, game, 7, budget=1000, seed=seed)
            record.append(np.isclose(game.values(chosen[None])[0, 0], best))
    assert np.mean(hits) >= 0.95
    assert np.mean(by_chance) < 0.6


def test_local_search_is_as_good_as_the_plain_one():
    """The paper's algorithm in a single loop, at a budget that leaves both room for mistakes."""
    ours, plain = [], []
    for seed in range(60):
        game = random_interactions(12, seed=seed)
        best = optimum(game, 6)
        mask, value, spent = local_search(game, 6, 150, np.random.default_rng(seed))
        assert spent == 150
        assert value == objective_of(game, mask)
        plain.append(best - value)
        chosen = search(ParallelLocalSearch(), game, 6, budget=150, seed=seed)
        ours.append(best - game.values(chosen[None])[0, 0])
    difference = np.array(ours) - np.array(plain)
    assert abs(difference.mean()) < 3 * difference.std(ddof=1) / np.sqrt(len(difference))
    assert np.mean(plain) > 0


def test_a_fork_has_one_branch_for_each_size():
    task = Task(10, 0, np.ones(1), 50, (0.1, 0.2, 0.2, 0.15), np.random.default_rng(0))
    ask = next(ParallelLocalSearch().explain(task))
    assert isinstance(ask, Fork)
    assert len(ask.branches) == 2
