"""Searches: their starts, questions, moves and results."""

from __future__ import annotations

import json
import time
import tracemalloc
from itertools import combinations, islice
from math import comb

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.stats import chi2, chisquare, multivariate_normal
from tests.reference import lime
from tests.reference.search import (
    best_subset,
    gradient_search,
    local_search,
    mask_of,
    objective_of,
    sets_in_order,
    swaps_in_order,
    taylor_search,
)

import pertinent
from pertinent.asks import Fork
from pertinent.errors import BudgetError, SettingError
from pertinent.explainers.base import Task
from pertinent.explainers.search.base import CHUNK, as_masks, uniform_sets
from pertinent.explainers.search.gradient_search import GradientSearch, TaylorSearch
from pertinent.explainers.search.linear_posterior import RATIOS, LinearPosterior, System
from pertinent.explainers.search.local import VisitedSets
from pertinent.explainers.search.ordered_search import OrderedSearch, in_order
from pertinent.explainers.search.parallel_local_search import ParallelLocalSearch
from pertinent.explainers.search.sampled_search import ExhaustiveSearch, RandomSearch
from pertinent.explainers.search.thompson_search import SeenSets, ThompsonSearch, growth, toward
from pertinent.testing.games import (
    RecordedGame,
    Smooth,
    additive,
    as_model,
    as_probabilities,
    majority,
    play,
    random_interactions,
    random_table,
)

BOTH = ("sufficiency", "comprehensiveness")
SEARCHES = (ExhaustiveSearch, ParallelLocalSearch, RandomSearch, ThompsonSearch)
BUDGETED = (GradientSearch, OrderedSearch, ParallelLocalSearch, RandomSearch, TaylorSearch, ThompsonSearch)
every_budgeted = pytest.mark.parametrize("kind", BUDGETED, ids=lambda c: c.name)
both = pytest.mark.parametrize("objective", BOTH)


def search(explainer, game, k, **options):
    """Return the only set of k features that a search chose."""
    sparsity = k / game.d
    return play(explainer, game, sparsities=(sparsity,), **options).chosen[sparsity]


def optimum(game, k, target=0):
    every = np.array([mask_of(members, game.d) for members in combinations(range(game.d), k)])
    return game.values(every)[:, target].max()


def uniform_over_features(inclusions, n, k):
    """Return the p-value of inclusion counts of n sets of k out of d, which are negatively correlated."""
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
    """Check that sparsities with the same number of features share one search."""
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
    """Check sets in the order of their features, with the best in the first or the last chunk."""
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
    """Check rejection sampling (d = 8) and a shuffled list of all sets (d = 5)."""
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
    """Check C(30, 10), about 30 million sets, of which the authors' code never drew feature 0."""
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
    assert [len(masks) for masks in game.questions] == [8] * 6 + [3]


def test_local_search_starts_uniformly_over_sets():
    d, k = 6, 2
    counts = dict.fromkeys(combinations(range(d), k), 0)
    for seed in range(3000):
        game = majority(d)
        search(ParallelLocalSearch(runs=1), game, k, budget=1, seed=seed)
        counts[tuple(np.flatnonzero(game.masks[0]).tolist())] += 1
    assert chisquare(list(counts.values())).pvalue > 1e-3


def test_local_search_proposes_swaps_uniformly():
    """Check that all features inside leave, and all outside enter, with equal frequency."""
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
    """Check proposals one swap from the best state, with so many neighbours that none is met twice."""
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
    game = RecordedGame(200, lambda masks: np.ones((len(masks), 1)))
    search(ParallelLocalSearch(runs=1), game, 100, budget=50)
    assert ((game.masks[1:] ^ game.masks[0]).sum(axis=1) == 2).all()


def test_walks_do_not_mix():
    """Check that the proposals of each walk are one swap from its best state."""
    d, k, runs = 300, 150, 3
    game = random_interactions(d, seed=7, order=1)
    search(ParallelLocalSearch(runs=runs), game, k, budget=runs * 30)
    for walk in range(runs):
        sets = np.array([masks[walk] for masks in game.questions])
        judged = game.values(sets)[:, 0]
        for step in range(1, len(sets)):
            state = judged[:step].argmax()
            assert (sets[step] ^ sets[state]).sum() == 2


def test_a_proposal_already_seen_is_walked_through():
    """Check that every set of a small board is reached, one swap from a set seen before."""
    game = random_table(8, seed=8)
    search(ParallelLocalSearch(runs=1), game, 4, budget=69)
    assert game.distinct == 69
    for step in range(1, 69):
        assert ((game.masks[:step] ^ game.masks[step]).sum(axis=1) == 2).any()


def test_local_search_finds_the_optimum_of_ten_features():
    """Check a budget that covers all C(10, 5) = 252 sets, and one that does not."""
    games = [random_interactions(10, seed=seed) for seed in range(150)]
    for budget in (1000, 200):
        found = [
            game.values(search(ParallelLocalSearch(), game, 5, budget=budget, seed=seed)[None])[0, 0]
            for seed, game in enumerate(games)
        ]
        hits = np.isclose(found, [optimum(game, 5) for game in games])
        assert hits.mean() >= 0.99


def test_local_search_finds_the_optimum_of_fourteen_features():
    """Check 1,000 of 3,432 sets: 100 of 100 games at the time of writing, 33 for random search."""
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
    """Compare with the paper's algorithm in one loop, at a budget where neither is perfect."""
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


# -- within the budget, whatever it is ------------------------------------------------------------


def judged_sets(game, k, objective="sufficiency"):
    """Return the sets of k features that the search asked for."""
    sets = game.masks if objective == "sufficiency" else ~game.masks
    return sets[sets.sum(axis=1) == k]


@every_budgeted
@both
@pytest.mark.parametrize("budget", [1, 2, 3, 4, 5, 23, 60])
def test_budgets_are_kept_and_spent_well(kind, objective, budget):
    game = Smooth(12, seed=budget).game()
    explainer = kind(objective=objective)
    if budget < explainer.min_budget(12):
        with pytest.raises(BudgetError, match="at least 3"):
            search(explainer, game, 5, target=1, budget=budget)
        return
    chosen = search(explainer, game, 5, target=1, budget=budget)
    assert chosen.sum() == 5
    spent = len(np.unique(game.masks, axis=0)) + 2 * sum(map(len, game.differentiated))
    assert spent <= budget
    assert spent >= budget - 2 or kind is OrderedSearch
    if kind is not OrderedSearch:
        best = max(objective_of(game, m, 1, objective) for m in judged_sets(game, 5, objective))
        assert objective_of(game, chosen, 1, objective) == best


@every_budgeted
def test_where_all_features_are_kept_there_is_nothing_to_search(kind):
    game = Smooth(6, seed=0).game()
    chosen = search(kind(), game, 6, budget=50)
    assert chosen.all()
    assert not game.differentiated
    assert kind is OrderedSearch or game.distinct == 1


@every_budgeted
def test_a_spread_budget_is_for_all_sizes_together(kind):
    sparsities = (0.1, 0.2, 0.3, 0.5)
    game = Smooth(20, seed=1).game()
    play(kind(spread=True), game, target=1, budget=120, sparsities=sparsities)
    apart = Smooth(20, seed=1).game()
    play(kind(), apart, target=1, budget=30, sparsities=sparsities)
    if kind is not GradientSearch:
        np.testing.assert_array_equal(game.masks, apart.masks)
    spent = len(game.masks) + 2 * sum(map(len, game.differentiated))
    assert 120 - 4 * 2 <= spent <= 120


@every_budgeted
def test_a_budget_too_small_to_spread_is_refused(kind):
    needed = 4 * kind().min_budget(20)
    with pytest.raises(BudgetError, match=f"at least {needed} for {kind.name}, spread over 4 sparsities"):
        play(kind(spread=True), Smooth(20, seed=1).game(), budget=needed - 1, sparsities=(0.1, 0.2, 0.3, 0.5))
    play(kind(spread=True), Smooth(20, seed=1).game(), budget=needed, sparsities=(0.1, 0.2, 0.3, 0.5))


# -- how it went ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [*BUDGETED, ExhaustiveSearch], ids=lambda c: c.name)
@both
def test_a_trajectory_is_what_was_asked(kind, objective):
    """Recompute the trajectory from the questions."""
    sparsity, k = 0.4, 4
    game = Smooth(10, seed=3).game()
    found = play(
        kind(objective=objective, trajectory=True), game, target=1, budget=252, sparsities=(sparsity,)
    )
    log = found.details["trajectory"]
    assert list(log) == ["4"]
    sign = 1 if objective == "sufficiency" else -1
    expected, seen, passes, best = [], set(), 0, -np.inf
    for what, masks in game.events:
        if what == "gradients":
            passes += 2 * len(masks)
            continue
        sets = masks if objective == "sufficiency" else ~masks
        for mask, p in zip(masks, game.values(masks)[:, 1].tolist(), strict=True):
            seen.add(mask.tobytes())
            if (sets.sum(axis=1) == k).all() and sign * p > best:
                best = sign * p
                expected.append([len(seen) + passes, p])
    assert log["4"] == expected
    chosen = found.chosen[sparsity]
    assert objective_of(game, chosen, 1, objective) == pytest.approx(best, abs=1e-12)
    steps, reached = np.array(log["4"]).T
    assert (np.diff(steps) >= 0).all()  # what LIME asked already costs nothing
    assert (np.diff(sign * reached) > 0).all()


def test_what_prepares_a_search_is_no_part_of_its_trajectory():
    """Check that the trajectory starts after the quarter of the budget that LIME uses."""
    found = play(OrderedSearch(trajectory=True), Smooth(10, seed=3).game(), budget=100, sparsities=(0.5,))
    assert found.details["trajectory"]["5"][0][0] > 20


def test_trajectories_are_off_by_default_and_survive_files(tmp_path):
    model = as_model(as_probabilities(random_interactions(8, seed=0)))
    options = {"method": "parallel-local-search", "sparsity": (0.25, 0.5), "budget": 20}
    assert "trajectory" not in pertinent.explain(model, np.ones(8), removal="constant", **options).details
    e = pertinent.explain(model, np.ones(8), removal="constant", trajectory=True, **options)
    assert set(e.details["trajectory"]) == {"2", "4"}
    e.save(tmp_path / "e.parquet")
    (again,) = pertinent.read(tmp_path / "e.parquet")
    assert again.details == e.details
    assert json.loads(e.to_json())["details"] == e.details


# -- swaps ----------------------------------------------------------------------------------------


@settings(max_examples=200, deadline=None, derandomize=True, database=None)
@given(
    gains=st.lists(st.integers(-4, 4), min_size=2, max_size=8),
    seed=st.integers(0, 1000),
    n=st.integers(1, 12),
    share=st.sampled_from([0.0, 0.3, 0.8, 1.0]),
)
def test_the_best_swaps_are_the_best_of_all(gains, seed, n, share):
    rng, d = np.random.default_rng(seed), len(gains)
    gain = np.array(gains, dtype=float)
    chosen = uniform_sets(rng, 1, d, int(rng.integers(1, d)))[0]
    every = swaps_in_order(chosen, gain)
    seen = VisitedSets(mask for mask in every if rng.random() < share)
    new = [mask for mask in every if mask.tobytes() not in seen.keys]
    before = set(seen.keys)
    found = seen.best_swaps(chosen, gain, n)
    totals = [gain[mask].sum() for mask in found]
    assert totals == [gain[mask].sum() for mask in new[:n]]
    names = {mask.tobytes() for mask in found}
    assert len(names) == len(found)
    assert names <= {mask.tobytes() for mask in new}
    assert seen.keys == before | names
    rest = seen.best_swaps(chosen, -gain, len(every))
    assert len(rest) == len(new) - len(found)
    assert seen.best_swaps(chosen, gain, 1) == []


# -- Taylor search --------------------------------------------------------------------------------


@both
@pytest.mark.parametrize(
    ("budget", "width", "steps", "target"),
    [(4, 3, None, 1), (60, 3, None, 1), (200, 2, 5, 0), (97, 1, None, 1)],
)
def test_taylor_search_asks_what_the_plain_one_asks(objective, budget, width, steps, target):
    smooth = Smooth(11, seed=budget)
    game = smooth.game()
    explainer = TaylorSearch(objective=objective, width=width, steps=steps)
    chosen = search(explainer, game, 4, target=target, budget=budget, seed=5)
    start = uniform_sets(np.random.default_rng(5).spawn(1)[0], 1, 11, 4)[0]
    judged, differentiated = taylor_search(
        smooth.game(), 4, budget, start, target=target, objective=objective, width=width, steps=steps
    )
    flip = objective == "comprehensiveness"
    np.testing.assert_array_equal(game.masks, np.array(judged) ^ flip)
    np.testing.assert_array_equal(np.concatenate(game.differentiated), np.array(differentiated) ^ flip)
    best = max(judged, key=lambda mask: objective_of(game, mask, target, objective))
    np.testing.assert_array_equal(chosen, best)


@both
def test_taylor_search_climbs_straight_where_the_gradient_is_right(objective):
    """Check linear log-odds, where every first swap is the best one."""
    game = Smooth(16, seed=1, pairs=0.0).game()
    chosen = search(TaylorSearch(objective=objective), game, 5, target=1, budget=120)
    expected, _ = best_subset(game, 5, target=1, objective=objective)
    np.testing.assert_array_equal(chosen, expected)


# -- gradient search ------------------------------------------------------------------------------


def torch_log_p(smooth, target):
    offset, weights, pairs = smooth.parameters
    weights, pairs = torch.tensor(weights), torch.tensor(pairs)

    def log_p(m):
        logit = offset + m @ weights + m @ pairs @ m
        return torch.nn.functional.logsigmoid(logit if target else -logit)

    return log_p


@both
@pytest.mark.parametrize(
    ("budget", "options"),
    [
        (4, {}),
        (45, {}),
        (200, {"check_every": 7, "learning_rate": 0.3}),
        (101, {"sparsity_weight": 0.5, "target_sparsity": 0.35, "check_every": 1}),
    ],
)
def test_gradient_search_asks_what_the_plain_one_asks(objective, budget, options):
    smooth = Smooth(9, seed=budget)
    game = smooth.game()
    chosen = search(GradientSearch(objective=objective, **options), game, 3, target=1, budget=budget, seed=2)
    plain = {("share" if k == "target_sparsity" else k): v for k, v in options.items()}
    rng = np.random.default_rng(2).spawn(1)[0]
    checked, drawn = gradient_search(torch_log_p(smooth, 1), 9, 3, budget, rng, objective=objective, **plain)
    flip = objective == "comprehensiveness"
    np.testing.assert_array_equal(game.masks, np.array(checked) ^ flip)
    np.testing.assert_array_equal(np.concatenate(game.differentiated), np.array(drawn) ^ flip)
    best = max(checked, key=lambda mask: objective_of(game, mask, 1, objective))
    np.testing.assert_array_equal(chosen, best)
    assert len(checked) + 2 * len(drawn) in (budget, budget - 1)


def test_gradient_search_judges_where_it_ended():
    """Check that the last question is for a value, so that no update is wasted."""
    for budget in (4, 5, 42, 60, 100):
        game = Smooth(9, seed=0).game()
        search(GradientSearch(), game, 3, budget=budget)
        assert game.events[-1][0] == "values"


@both
def test_one_descent_serves_all_sizes(objective):
    """Check that each size gets the result of a separate descent, at the cost of one."""
    explainer = GradientSearch(objective=objective)
    game = Smooth(20, seed=4).game()
    together = play(explainer, game, target=1, budget=150, sparsities=(0.1, 0.2, 0.5), seed=3).chosen
    for sparsity, chosen in together.items():
        alone = Smooth(20, seed=4).game()
        np.testing.assert_array_equal(
            chosen,
            play(explainer, alone, target=1, budget=150, sparsities=(sparsity,), seed=3).chosen[sparsity],
        )
        assert len(alone.differentiated) == len(game.differentiated)


@both
def test_gradient_search_goes_most_of_the_way_to_the_optimum(objective):
    """Check linear log-odds."""
    gained, possible = 0.0, 0.0
    for seed in range(10):
        smooth = Smooth(12, seed=seed, pairs=0.0)
        weights = smooth.parameters[1]
        sets = [
            search(GradientSearch(objective=objective), smooth.game(), 3, target=1, budget=budget, seed=seed)
            for budget in (1, 600)
        ]
        first, last = (weights[mask].sum() for mask in sets)
        gained += last - first
        possible += np.sort(weights)[-3:].sum() - first
    assert gained > 0.8 * possible


@pytest.mark.parametrize(
    ("kind", "setting", "value"),
    [
        (GradientSearch, "learning_rate", 0.0),
        (GradientSearch, "sparsity_weight", -1.0),
        (GradientSearch, "target_sparsity", 0.0),
        (GradientSearch, "check_every", 0),
        (TaylorSearch, "width", 0),
        (TaylorSearch, "steps", 0),
        (OrderedSearch, "share", 1.0),
        (ThompsonSearch, "initial", 1),
        (ThompsonSearch, "batch", 0),
        (ThompsonSearch, "local", 1.1),
        (ThompsonSearch, "near", -0.1),
    ],
)
def test_settings_are_checked(kind, setting, value):
    with pytest.raises(SettingError, match=f"`{setting}` must be"):
        kind(**{setting: value})


# -- ordered search -------------------------------------------------------------------------------


@settings(max_examples=200, deadline=None, derandomize=True, database=None)
@given(scores=st.lists(st.integers(-3, 3), min_size=1, max_size=8), data=st.data())
def test_sets_come_in_order_each_once(scores, data):
    """Check small whole numbers, so that many totals are equal."""
    scores = np.array(scores, dtype=float)
    k = data.draw(st.integers(1, len(scores)))
    found = list(in_order(scores, k))
    assert len(found) == comb(len(scores), k) == len({mask.tobytes() for mask in found})
    assert all(mask.sum() == k for mask in found)
    totals = [scores[mask].sum() for mask in found]
    assert totals == [scores[mask].sum() for mask in sets_in_order(scores, k)]


@pytest.mark.parametrize(("d", "k"), [(1, 1), (9, 1), (9, 9), (12, 5), (12, 7)])
def test_sets_come_in_the_order_of_sorting_them_all(d, k):
    scores = np.random.default_rng(d * k).normal(size=d)
    np.testing.assert_array_equal(list(in_order(scores, k)), sets_in_order(scores, k))


def test_sets_are_made_one_by_one():
    """Check C(400, 200), a number of 119 digits."""
    scores = np.random.default_rng(0).normal(size=400)
    tracemalloc.start()
    start = time.process_time()
    totals = [scores[mask].sum() for mask in islice(in_order(scores, 200), 1000)]
    seconds = time.process_time() - start
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert np.diff(totals).max() < 1e-9
    assert seconds < 5
    assert peak < 5e6


@both
@pytest.mark.parametrize(("budget", "share"), [(80, 0.25), (81, 0.5), (3, 0.25)])
def test_ordered_search_asks_what_the_plain_one_asks(objective, budget, share):
    game = Smooth(9, seed=budget).game()
    chosen = search(OrderedSearch(objective=objective, share=share), game, 3, target=1, budget=budget)
    masks, judged = game.questions
    assert len(masks) == max(2, round(share * budget))
    assert len(judged) == budget - len(masks)
    scores = lime.fit(masks, game.values(masks))[1] if len(masks) > 2 else None
    sets = judged if objective == "sufficiency" else ~judged
    if scores is not None:
        np.testing.assert_array_equal(sets, sets_in_order(scores, 3)[: len(sets)])
    best = max(sets, key=lambda mask: objective_of(game, mask, 1, objective))
    np.testing.assert_array_equal(chosen, best)


# -- Thompson search ------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("options", [{}, {"local": 1.0, "batch": 3}, {"local": 0.0, "initial": 2}])
@pytest.mark.parametrize("budget", [1, 5, 50, 200])
def test_thompson_search_asks_no_set_twice(objective, options, budget):
    game = Smooth(12, seed=4).game()
    search(ThompsonSearch(objective=objective, **options), game, 6, target=1, budget=budget)
    assert game.distinct == len(game.masks) == budget
    assert (game.masks.sum(axis=1) == 6).all()


@pytest.mark.parametrize("budget", [60, 69])
def test_thompson_search_goes_on_where_it_knows_all_neighbours(budget):
    """Check up to all sets except one, with uniform sets when there is no better proposal."""
    game = Smooth(8, seed=4, strength=3.0).game()
    search(ThompsonSearch(), game, 4, target=1, budget=budget)
    assert game.distinct == len(game.masks) == budget


def test_thompson_search_finds_the_optimum_of_ten_features():
    """Check 200 of 252 sets, so that the best one is rarely missed."""
    hits = []
    for seed in range(100):
        game = as_probabilities(random_interactions(10, seed=seed))
        chosen = search(ThompsonSearch(), game, 5, target=1, budget=200, seed=seed)
        hits.append(np.isclose(game.values(chosen[None])[0, 1], optimum(game, 5, target=1)))
    assert np.mean(hits) >= 0.99


@both
def test_thompson_search_learns_a_linear_game(objective):
    """Check a hundred of C(40, 10) = 847,660,528 sets."""
    found = []
    for seed in range(10):
        smooth = Smooth(40, seed=seed, pairs=0.0)
        game = smooth.game()
        order = np.argsort(-smooth.parameters[1])
        best = np.isin(np.arange(40), order[:10])
        chosen = search(ThompsonSearch(objective=objective), game, 10, target=1, budget=150, seed=seed)
        found.append((chosen & best).sum())
    assert np.mean(found) >= 9.5


@both
def test_thompson_search_knows_certainty_from_doubt(objective):
    """Check that p = 0 and p = 1 have other log-odds than one half."""
    d, k = 12, 4
    wanted = np.arange(d) < k

    def function(masks):
        sets = masks if objective == "sufficiency" else ~masks
        p = np.clip((sets & wanted).sum(axis=1) / 4 - 0.5, 0, 0.5) * 2
        p = p if objective == "sufficiency" else 1 - p
        return np.column_stack([1 - p, p])

    game = RecordedGame(d, function)
    for seed in range(5):
        chosen = search(ThompsonSearch(objective=objective), game, k, target=1, budget=150, seed=seed)
        np.testing.assert_array_equal(chosen, wanted)


def marginal_likelihood(design, response, noise, prior):
    """Return log N(y; 0, τ² (CCᵀ + ν I))."""
    covariance = prior * (design @ design.T + noise * np.eye(len(response)))
    return multivariate_normal(None, covariance).logpdf(response)


def likeliest_of_a_grid(design, response):
    """Return the ν of a grid and the τ² that maximise the evidence."""
    mean_power = (design**2).sum() / len(response)
    found = []
    for ratio in (0.01, 0.03, 0.1, 0.3, 1, 3, 10):
        noise = ratio * mean_power
        best = minimize_scalar(
            lambda log_prior, noise=noise: -marginal_likelihood(design, response, noise, np.exp(log_prior)),
            bracket=(-3, 0),
        )
        found.append((-best.fun, noise, float(np.exp(best.x))))
    return max(found)[1:]


@pytest.mark.parametrize("answers", [30, 7])
def test_draws_have_the_mean_and_covariance_of_the_posterior(answers):
    """Check the mean Ly and the covariance τ²(I − LC), with L = Cᵀ(CCᵀ + νI)⁻¹.

    The prior is θ ~ N(0, τ² I), and y = Cθ + noise of variance ν τ².
    """
    rng = np.random.default_rng(0)
    sets = uniform_sets(rng, answers, 8, 3)
    evidence = sets @ rng.normal(size=8) + rng.normal(size=answers) / 2
    weight = rng.uniform(0.1, 1, size=answers)
    drawn = LinearPosterior(np.random.default_rng(1)).draw(sets, evidence, weight, 200_000)
    share = weight / weight.sum()
    root = np.sqrt(answers * share)
    design = (sets - share @ sets) * root[:, None]
    response = evidence - share @ evidence
    response = response / np.sqrt(share @ response**2) * root
    noise, prior = likeliest_of_a_grid(design, response)
    lever = design.T @ np.linalg.inv(design @ design.T + noise * np.eye(answers))
    covariance = prior * (np.eye(8) - lever @ design)
    np.testing.assert_allclose(drawn.mean(axis=0), lever @ response, atol=5 * np.sqrt(prior / 2e5))
    np.testing.assert_allclose(np.cov(drawn.T), covariance, atol=5 * prior * np.sqrt(2 / 2e5))


@pytest.mark.parametrize("d", [5, 12, 20])
def test_the_likeliest_noise_and_prior(d):
    rng = np.random.default_rng(3)
    design = rng.normal(size=(12, d))
    response = design @ rng.normal(size=d) + rng.normal(size=12) * 0.7
    system = System(design, response)
    fits = [system.fit(ratio) for ratio in RATIOS]
    for fit in fits:
        expected = marginal_likelihood(design, response, fit.noise, fit.prior)
        constant = 12 * (np.log(2 * np.pi) + 1)
        assert fit.likelihood == pytest.approx(2 * expected + constant, rel=1e-9)
    best = max(fits, key=lambda fit: fit.likelihood)
    np.testing.assert_allclose((best.noise, best.prior), likeliest_of_a_grid(design, response), rtol=1e-5)


def test_equal_answers_are_no_evidence():
    """Check that all θ are drawn from the prior, whose variance is then zero."""
    sets = uniform_sets(np.random.default_rng(0), 12, 8, 3)
    for some in (sets, sets[:5]):
        drawn = LinearPosterior(np.random.default_rng(1)).draw(
            some, np.ones(len(some)), np.ones(len(some)), 4
        )
        np.testing.assert_allclose(drawn, 0, atol=1e-6)


def test_the_noise_is_followed_step_by_step():
    """Check that a few fits to the same answers reach the most likely noise."""
    rng = np.random.default_rng(0)
    sets = uniform_sets(rng, 60, 10, 4)
    clear, weight = sets @ rng.normal(size=10), np.ones(60)
    posterior = LinearPosterior(rng)
    posterior.draw(sets, rng.normal(size=60), weight, 1)
    noisy = posterior._index
    for _ in range(2 * len(RATIOS)):
        posterior.draw(sets, clear, weight, 1)
    fresh = LinearPosterior(rng)
    fresh.draw(sets, clear, weight, 1)
    assert posterior._index == fresh._index < noisy


# -- proposals ------------------------------------------------------------------------------------


def moved_by_swaps(theta, start, limit):
    """Return the start after its best swaps, one at a time, while they gain."""
    moved = start.copy()
    for _ in range(limit):
        worst = min(np.flatnonzero(moved), key=lambda i: theta[i])
        best = max(np.flatnonzero(~moved), key=lambda i: theta[i])
        if theta[best] <= theta[worst]:
            break
        moved[worst], moved[best] = False, True
    return moved


@pytest.mark.parametrize("k", [1, 3, 8, 11])
def test_proposals_make_the_best_swaps_toward_the_largest(k):
    rng = np.random.default_rng(k)
    thetas, limits = rng.normal(size=(40, 12)), rng.choice([1, 2, 4, 12], size=40)
    starts = uniform_sets(rng, 12, 12, k)[rng.integers(12, size=40)]
    found = toward(np.argsort(-thetas, axis=1), starts, limits)
    for theta, start, limit, moved in zip(thetas, starts, limits, found, strict=True):
        np.testing.assert_array_equal(moved, moved_by_swaps(theta, start, limit))


@pytest.mark.parametrize(("d", "k"), [(9, 4), (7, 2), (6, 5)])
def test_the_best_exchange_is_the_best_new_one_of_a_few_features(d, k):
    """Compare with all sets that differ in at most two of the best features outside and the worst inside."""
    rng = np.random.default_rng(d)
    every = as_masks(combinations(range(d), k), d)
    base, theta = every[0], rng.normal(size=d)
    order = np.argsort(-theta)
    ranked = [i for i in order if base[i]]
    may_change = {*[i for i in order if not base[i]][:2], *ranked[-2:]}
    near = [m for m in every if (m != base).any() and set(np.flatnonzero(m != base)) <= may_change]
    near.sort(key=lambda mask: -theta[mask].sum())
    seen = SeenSets(np.concatenate([base[None], near[: len(near) // 2]]), rng)
    expected = near[len(near) // 2 :]
    for mask in expected:
        sets, left = seen.best_exchanges(base[None], theta[None], order[None])
        assert theta[sets[0]].sum() == pytest.approx(theta[mask].sum())
        assert not len(left)
    sets, left = seen.best_exchanges(base[None], theta[None], order[None])
    assert (len(sets), left.tolist()) == (0, [0])
    assert not seen.add(np.array(near)).any()


def test_batches_grow_with_the_answers_per_feature():
    sizes = [growth(n, 100) for n in (20, 400, 800, 1600, 5000)]
    assert sizes == [1 / 8, 1 / 8, 1 / 4, 1 / 2, 1 / 2]
