"""Anchors: bounds, samples and their reuse, the beam, and the resulting sets."""

from __future__ import annotations

import json
from functools import cache
from math import log

import numpy as np
import pytest
from tests.reference import anchors as plain

import pertinent
from pertinent.errors import SettingError
from pertinent.explainers.base import Task
from pertinent.explainers.search.anchors import (
    SHARE,
    START,
    Anchors,
    Arms,
    Samples,
    exploration,
    lower_bounds,
    upper_bounds,
)
from pertinent.testing.games import RecordedGame, answer, play


def rule(d, *clauses):
    """Return a game that predicts class 1 if all members of a clause are kept."""

    def function(masks):
        holds = np.any([masks[:, list(c)].all(axis=1) for c in clauses], axis=0)
        return np.where(holds[:, None], [0.2, 0.8], [0.7, 0.3])

    return RecordedGame(d, function)


def linear(d, seed, share=0.5):
    """Return a game of class 1 if the kept weights sum to more than a share of the positive ones."""
    weights = np.random.default_rng([d, seed]).normal(size=d)
    least = share * weights.clip(0).sum()

    def function(masks):
        p = 1 / (1 + np.exp(least - masks @ weights))
        return np.column_stack([1 - p, p])

    return RecordedGame(d, function)


def find(game, k, *, target=1, seed=0, budget=1000, **settings):
    """Return the finding for at most k features."""
    return play(Anchors(**settings), game, target=target, budget=budget, sparsities=(k / game.d,), seed=seed)


def a_task(game, budget=1000, seed=0, sparsities=(0.5,)):
    prediction = game.values(np.ones((1, game.d), dtype=bool))[0]
    return Task(game.d, 1, prediction, budget, sparsities, np.random.default_rng(seed))


# -- bounds -------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [0.5, 3.0, 12.0])
def test_bounds_are_those_of_a_plain_walk(level):
    pairs = [(p, n) for p in (0.0, 0.1, 0.5, 0.93, 1.0) for n in (1, 7, 60, 900)]
    means, n = (np.array(column, dtype=float) for column in zip(*pairs, strict=True))
    upper = [plain.upper_bound(p, m, level) for p, m in pairs]
    lower = [plain.lower_bound(p, m, level) for p, m in pairs]
    np.testing.assert_allclose(upper_bounds(means, n, level), upper, atol=2e-4)
    np.testing.assert_allclose(lower_bounds(means, n, level), lower, atol=2e-4)


def test_bounds_in_closed_form():
    """Check that n hits in n draws satisfy n · KL(1 ‖ q) = −n log q."""
    n = np.array([1.0, 10.0, 100.0])
    np.testing.assert_allclose(lower_bounds(np.ones(3), n, 3.0), np.exp(-3.0 / n), atol=1e-6)
    np.testing.assert_allclose(upper_bounds(np.ones(3), n, 3.0), 1.0)
    np.testing.assert_allclose(upper_bounds(np.zeros(3), n, 3.0), 1 - np.exp(-3.0 / n), atol=1e-6)
    assert upper_bounds(np.zeros(1), np.zeros(1), 3.0) == 1
    assert lower_bounds(np.zeros(1), np.zeros(1), 3.0) == 0


def test_exploration_is_the_paper_s():
    first = log(405.5 * 20 * 7**1.1 / 0.05)
    assert exploration(7, 20, 0.05) == pytest.approx(first + log(first))
    assert exploration(8, 20, 0.05) > exploration(7, 20, 0.05) > exploration(7, 20, 0.1)


# -- samples ------------------------------------------------------------------------------------


@cache
def some_samples():
    """Return samples of sets of several sizes, with the pairs (drawn for, kept) and the answers."""
    game = linear(6, seed=1)
    samples = Samples(a_task(game), 0.5, np.random.default_rng(3))
    drawn_for = [(), (0,), (3,), (0, 3), (1, 4), (0, 1, 3)]
    for members in drawn_for:
        arms = Arms(np.isin(np.arange(6), members)[None])
        assert answer(samples.draw(arms, np.zeros(40, dtype=np.int64)), game) == 40
        assert arms.n.tolist() == [40]
    sets = [
        (frozenset(np.flatnonzero(a).tolist()), frozenset(np.flatnonzero(b).tolist()))
        for b, a, _ in zip(*samples.all(), strict=True)
    ]
    return game, samples, sets


@pytest.mark.parametrize("parents", [[()], [(0,)], [(0, 3), (1, 3)], [(0, 1, 3), (2, 4, 5)]])
def test_samples_count_for_the_sets_they_are_fair_samples_of(parents):
    game, samples, drawn = some_samples()
    assert all(origin <= kept for origin, kept in drawn)
    arms = samples.candidates(np.isin(np.arange(6), members) for members in parents)
    expected = {frozenset(p) | {j} for p in parents for j in range(6) if j not in p}
    found = [frozenset(np.flatnonzero(mask).tolist()) for mask in arms.masks]
    assert len(found) == len(set(found))
    assert set(found) == expected
    for anchor, n, hits in zip(found, arms.n, arms.hits, strict=True):
        rows = plain.fair_samples(drawn, anchor)
        values = game.values(samples.all()[0][rows])
        assert n == len(rows)
        assert hits == (values.argmax(axis=1) == 1).sum()


@pytest.mark.parametrize("keep", [0.3, 0.5])
def test_reused_samples_are_unbiased(keep):
    """Compare estimates for larger sets from samples of smaller ones with all masks."""
    game = linear(7, seed=2)
    hits, n = np.zeros(7), np.zeros(7)
    parent = np.isin(np.arange(7), [5])
    for seed in range(20):
        samples = Samples(a_task(game), keep, np.random.default_rng(seed))
        answer(samples.draw(Arms(np.zeros((1, 7), dtype=bool)), np.zeros(300, dtype=np.int64)), game)
        answer(samples.draw(Arms(parent[None]), np.zeros(300, dtype=np.int64)), game)
        arms = samples.candidates([parent])
        features = (arms.masks & ~parent).argmax(axis=1)
        hits[features] += arms.hits
        n[features] += arms.n
    for j in (0, 1, 2, 3, 4, 6):
        truth = plain.precision(game, (5, j), target=1, keep=keep)
        assert abs(hits[j] / n[j] - truth) < 4 * np.sqrt(0.25 / n[j])


def test_what_is_known_is_not_asked_and_what_is_allowed_not_exceeded():
    game = linear(5, seed=0)
    samples = Samples(a_task(game, budget=24), 0.5, np.random.default_rng(0))
    arms = Arms(np.zeros((2, 5), dtype=bool))
    samples.allow(0.25)
    assert answer(samples.draw(arms, np.tile([0, 1], 20)), game) >= 6
    assert samples.left == 18
    assert arms.n[0] - arms.n[1] in (0, 1)
    samples.allow(1)
    for _ in range(9):
        answer(samples.draw(arms, np.tile([0, 1], 20)), game)
    assert game.distinct == len(game.masks) == 24 - samples.left
    assert arms.n.sum() <= 24 + 24


# -- what is found ------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("members", [(4,), (2, 9), (0, 5, 11)])
def test_the_features_of_a_rule_are_its_anchor(members, seed):
    found = find(rule(12, members), 4, seed=seed, fill=False)
    assert found.details["anchor"] == list(members)
    assert found.details["precision"] == 1
    assert found.details["coverage"] == 0.5 ** len(members)
    assert found.details["threshold reached"] is True
    (chosen,) = found.chosen.values()
    assert np.flatnonzero(chosen).tolist() == list(members)


def test_the_shorter_of_two_rules_covers_more():
    assert find(rule(12, (1, 2, 3), (6, 8)), 4).details["anchor"] == [6, 8]


def test_what_is_predicted_anyway_needs_no_feature():
    game = RecordedGame(9, lambda masks: np.tile([0.1, 0.9], (len(masks), 1)))
    found = find(game, 3, fill=False)
    assert found.details["anchor"] == []
    assert found.details["coverage"] == 1
    assert found.details["threshold reached"] is True
    assert not any(mask.any() for mask in found.chosen.values())
    assert len(game.masks) <= START


def test_the_target_need_not_be_what_is_predicted():
    """Check a class that is only predicted without feature 3, so that no kept set leads to it."""
    found = find(rule(8, (3,)), 3, target=0)
    assert found.details["threshold reached"] is False
    assert 3 not in found.details["anchor"]


@pytest.mark.parametrize("seed", [2, 4, 6, 7, 11])
def test_as_a_plain_beam_search_with_true_precisions(seed):
    """Compare sizes if no precision is near the threshold, and precisions within ε."""
    game = linear(7, seed=seed, share=0.3)
    beams = [list(beam.items()) for beam in plain.beam_search(game, most=4, beam=4, target=1)]
    best = [beam[0][1] for beam in beams]
    passing = [size for size, precision in enumerate(best) if precision >= 0.95]
    found = find(game, 4, seed=seed, epsilon=0.05, tolerance=0.02, budget=2000).details
    truth = plain.precision(game, tuple(found["anchor"]), target=1)
    if not any(0.9 < precision < 0.97 for precision in best):
        assert found["threshold reached"] == bool(passing)
    if found["threshold reached"]:
        assert truth >= 0.95 - 0.02
        if not any(0.9 < precision < 0.97 for precision in best):
            assert found["anchor size"] == passing[0]
            assert truth >= best[passing[0]] - 0.05
    else:
        assert truth >= max(best) - 0.05


def test_precision_is_that_of_all_masks_within_its_bounds():
    """Check coverage of at least 1 − δ at every size, despite the selection of good sets."""
    inside = total = 0
    for seed in range(24):
        game = linear(9, seed=seed % 4)
        found = play(
            Anchors(delta=0.1), game, target=1, budget=300, sparsities=(0.1, 0.2, 0.3, 0.5), seed=seed
        )
        for anchor in found.details["anchors"]:
            truth = precision_of(seed % 4, tuple(anchor["anchor"]))
            inside += anchor["precision low"] <= truth <= anchor["precision high"]
            total += 1
            assert anchor["precision low"] <= anchor["precision"] <= anchor["precision high"]
    assert inside / total >= 0.9


@cache
def precision_of(seed, anchor):
    return plain.precision(linear(9, seed), anchor, target=1)


# -- budget, sizes, seeds -----------------------------------------------------------------------


@pytest.mark.parametrize("budget", [1, 2, 3, 5, 17, 60, 200, 1000])
@pytest.mark.parametrize("d", [1, 2, 6, 30])
def test_no_mask_twice_and_none_beyond_the_budget(d, budget):
    game = linear(d, seed=5)
    found = play(Anchors(), game, target=1, budget=budget)
    assert game.distinct == len(game.masks) <= budget
    json.dumps(found.details, allow_nan=False)


@pytest.mark.parametrize("fill", [True, False])
def test_at_most_k_features_or_exactly_k_if_filled(fill):
    game = linear(20, seed=6)
    found = play(Anchors(fill=fill), game, target=1)
    for anchor, (sparsity, mask) in zip(found.details["anchors"], found.chosen.items(), strict=True):
        k = round(20 * sparsity)
        assert anchor["sparsity"] == sparsity
        assert len(anchor["anchor"]) == anchor["anchor size"] <= k
        assert mask[anchor["anchor"]].all()
        assert mask.sum() == (k if fill else anchor["anchor size"])


def test_an_anchor_is_filled_with_what_helps_most_alone():
    game = rule(10, (7,), (2, 4))
    (chosen,) = find(game, 3).chosen.values()
    assert np.flatnonzero(chosen).tolist() == [2, 4, 7]


def test_too_little_budget_is_said():
    found = find(rule(30, (3, 14, 22)), 5, budget=40)
    assert found.details["threshold reached"] is False
    assert found.details["precision low"] < 0.9
    (chosen,) = found.chosen.values()
    assert chosen.sum() == 5
    nothing = find(rule(30, (3, 14, 22)), 5, budget=1)
    assert nothing.details["threshold reached"] is False
    assert nothing.details["precision"] in (None, 0.0)


@pytest.mark.parametrize("k", [1, 2, 4, 7])
@pytest.mark.parametrize("budget", [50, 1000])
def test_one_run_serves_every_size(k, budget):
    """Check that a run for at most k features is the beginning of a run for more."""
    game = linear(14, seed=8)
    explainer = Anchors()
    together = play(explainer, game, target=1, budget=budget, sparsities=(k / 14, 0.5), seed=4)
    alone = answer(explainer.search(a_task(game, budget), k, np.random.default_rng(4)), game)
    np.testing.assert_array_equal(together.chosen[k / 14], alone)


def test_a_close_race_leaves_something_for_larger_sets():
    """Check that equal single features do not use up the budget."""
    game = RecordedGame(20, lambda masks: np.eye(2)[(masks.sum(axis=1) > 10).astype(int)])
    arms_of_one = START + SHARE * (1000 - START) + 1
    find(game, 8, fill=False)
    smallest = game.masks[int(arms_of_one) :]
    assert len(game.masks) > 700
    assert (smallest.sum(axis=1) >= 2).all()


def test_same_seed_same_answer():
    a, b = (find(linear(15, seed=9), 5, seed=1) for _ in range(2))
    assert a.details == b.details
    np.testing.assert_array_equal(*(next(iter(f.chosen.values())) for f in (a, b)))
    games = [linear(15, seed=9), linear(15, seed=9)]
    for seed, game in enumerate(games):
        find(game, 5, seed=seed)
    assert games[0].masks[:50].tolist() != games[1].masks[:50].tolist()


@pytest.mark.parametrize("settings", [{"objective": "comprehensiveness"}, {"spread": True}])
def test_what_makes_no_difference_to_anchors(settings):
    assert find(linear(12, 3), 4).details == find(linear(12, 3), 4, **settings).details


@pytest.mark.parametrize("batch_size", [1, 7, 5000])
def test_batches_and_company_change_nothing(batch_size):
    model = pertinent.wrap(lambda rows: linear(11, 2).values(np.asarray(rows) > 0.5), kind="table")
    rows = [np.linspace(0.6, end, 11) for end in (1, 2, 3)]
    options = {"method": "anchors", "budget": 90, "seed": 3, "removal": "constant"}
    together = pertinent.explain(model, rows[::-1], batch_size=batch_size, **options)
    for row, e in zip(rows[::-1], together, strict=True):
        alone = pertinent.explain(model, row, **options)
        assert alone.details == e.details
        assert alone.evaluations == e.evaluations <= 90


@pytest.mark.parametrize(
    "settings",
    [
        {"threshold": 0},
        {"threshold": 1.1},
        {"delta": 0},
        {"epsilon": 1},
        {"tolerance": -0.1},
        {"beam": 0},
        {"batch": 0},
        {"keep": 1.0},
        {"objective": "anchors"},
        {"trajectory": True},
    ],
)
def test_settings_are_checked(settings):
    with pytest.raises(SettingError, match=next(iter(settings))):
        Anchors(**settings)
