"""Coverage of the intervals of sampled values on games with rare or few distinct answers."""

import numpy as np
import pytest

import pertinent
from pertinent.explainers.base import explainers
from pertinent.masks import all_coalitions
from pertinent.testing.games import RecordedGame, additive, as_model, majority, play, unanimity

SAMPLED = ["banzhaf", "kernel-shap", "shapley", "shapley-sampling"]


def coverage(method, game, budget, seeds=60):
    """Return how often intervals cover the truth, and the share of intervals that are stated."""
    truth = game.banzhaf if method == "banzhaf" else game.shapley
    found = [play(explainers.make(method), game, budget=budget, seed=seed) for seed in range(seeds)]
    errors = np.array([each.standard_errors for each in found])
    off = np.abs(np.array([each.scores for each in found]) - truth)
    stated = np.isfinite(errors)
    assert all(each.warnings for each in found if np.isnan(each.standard_errors).any())
    return np.mean(off[stated] <= 1.96 * errors[stated] + 1e-7) if stated.any() else 1.0, stated.mean()


@pytest.mark.parametrize("budget", [12, 32, 60])
def test_banzhaf_of_a_conjunction(budget):
    """Check a game with one deviating answer: its intervals cover or are unknown."""
    covered, stated = coverage("banzhaf", unanimity(6, range(6)), budget)
    assert covered > 0.85
    assert 0 < stated < 1


@pytest.mark.parametrize(("d", "budget"), [(4, 8), (5, 12), (7, 35)])
def test_banzhaf_of_a_rare_event(d, budget):
    covered, stated = coverage("banzhaf", unanimity(d, range(3)), budget)
    assert covered > 0.85
    assert stated > 0.3


@pytest.mark.parametrize("method", SAMPLED)
@pytest.mark.parametrize("budget", [16, 21])
def test_few_answers_about_a_majority(method, budget):
    """Check answers that a regression fits exactly by chance."""
    covered, _ = coverage(method, majority(7), budget)
    assert covered > 0.85


def test_banzhaf_asks_for_distinct_masks():
    """Check that the error nearly vanishes when nearly all masks are sampled without replacement."""
    game = additive(np.arange(1.0, 6.0))
    found = play(explainers.make("banzhaf"), game, budget=30)
    assert game.distinct == 30
    few = play(explainers.make("banzhaf"), additive(np.arange(1.0, 6.0)), budget=14)
    assert found.standard_errors.max() < few.standard_errors.max() / 3
    exact = play(explainers.make("banzhaf"), game, budget=32)
    assert not exact.standard_errors.any()
    np.testing.assert_allclose(exact.scores, game.banzhaf, atol=1e-12)


@pytest.mark.parametrize("method", [*SAMPLED, "shapley-interactions"])
def test_errors_are_unknown_if_all_answers_are_equal(method):
    game = additive(np.zeros(8), offset=0.3)
    found = play(explainers.make(method), game, budget=100)
    assert np.isnan(found.standard_errors).all()
    assert len(found.warnings) == 1
    if method != "shapley-sampling":  # it never knows that it has asked for all masks
        all_masks = play(explainers.make(method), game, budget=256)
        assert not all_masks.standard_errors.any() and not all_masks.warnings


def test_an_explanation_says_that_its_errors_are_unknown():
    e = pertinent.explain(
        as_model(unanimity(9, range(9))), np.ones(9), "banzhaf", removal="constant", budget=20
    )
    assert np.isnan(e.standard_errors).all()
    assert any("standard errors" in warning for warning in e.warnings)


@pytest.mark.parametrize("index", ["k-sii", "sii", "stii", "faith-shap", "banzhaf"])
def test_errors_of_interactions_are_possible(index):
    """Check that second differences of parity are at most twice its range."""
    game = RecordedGame(10, lambda masks: masks.sum(axis=1, keepdims=True) % 2.0)
    for seed in range(3):
        found = play(explainers.make("shapley-interactions", {"index": index}), game, budget=100, seed=seed)
        values, errors = found.interactions.values, found.interactions.standard_errors
        assert (1.96 * errors <= 2 + np.abs(values) + 1e-9).all()
        largest = 10 if index in ("k-sii", "faith-shap") else 1
        assert (1.96 * found.standard_errors <= largest + np.abs(found.scores) + 1e-9).all()


def test_errors_of_a_smooth_game_are_not_much_larger():
    """Compare with the standard error of a mean of the same number of pairs."""
    weights = np.random.default_rng(0).normal(size=10)
    game = RecordedGame(10, lambda masks: 1 / (1 + np.exp(masks @ -weights[:, None])))
    every = all_coalitions(10)
    values = game.values(every)[:, 0] - game.values(~every)[:, 0]
    signed = np.where(every, 1.0, -1.0) * values[:, None]
    found = play(explainers.make("banzhaf"), game, budget=100)
    expected = signed.std(axis=0) / np.sqrt(50)
    assert 0.8 < np.median(found.standard_errors[0] / expected) < 1.1
