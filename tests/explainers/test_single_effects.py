"""The sum of single effects compared with a plain version, and on games with known answers."""

from __future__ import annotations

import numpy as np
import pytest

from pertinent.explainers import single_effects
from pertinent.explainers.single_effects import PRIORS, SingleEffects, fit
from pertinent.testing.games import RecordedGame, play


def plain(masks, y, n_effects, steps=50):
    """Run Alg. 1 of Wang et al. 2020 in loops, without small effects; the first effect never vanishes."""
    x = masks - masks.mean(axis=0)
    y = y - y.mean()
    n, d = x.shape
    noise = spread = y.var()
    effects = [(np.full(d, 1 / d), np.zeros(d), np.zeros(d)) for _ in range(n_effects)]
    for _ in range(steps):
        for own in range(n_effects):
            others = sum(a * m for number, (a, m, _) in enumerate(effects) if number != own)
            rest = y - x @ others
            best = None
            for prior in PRIORS if own else PRIORS[1:]:
                factors, sizes, variances = [], [], []
                for feature in range(d):
                    power = (x[:, feature] ** 2).sum()
                    estimate, error = x[:, feature] @ rest / power, noise / power
                    ratio = prior * spread / (prior * spread + error)
                    factors.append(
                        np.sqrt(error / (error + prior * spread)) * np.exp(estimate**2 / (2 * error) * ratio)
                    )
                    sizes.append(ratio * estimate)
                    variances.append(ratio * error)
                if best is None or np.mean(factors) > best[0]:
                    best = np.mean(factors), np.array(factors), np.array(sizes), np.array(variances)
            effects[own] = best[1] / best[1].sum(), best[2], best[3]
        power = (x**2).sum(axis=0)
        missed = ((y - x @ sum(a * m for a, m, _ in effects)) ** 2).sum()
        doubt = sum((a * (m**2 + v) * power).sum() - ((x @ (a * m)) ** 2).sum() for a, m, v in effects)
        noise = max((missed + doubt) / (n - 1), 1e-6 * spread)
    return sum(a * m for a, m, _ in effects)


@pytest.mark.parametrize("seed", range(3))
def test_scores_are_those_of_the_plain_version(seed, monkeypatch):
    monkeypatch.setattr(single_effects, "RATIOS", (0.0,))  # no small effects
    rng = np.random.default_rng(seed)
    masks = rng.random((40, 8)) < 0.5
    y = masks @ np.array([3.0, 0, 0, -1.5, 0, 0, 0, 0]) + 0.3 * rng.standard_normal(40)
    found = fit(masks, y[:, None], 3)
    assert not found.small.any()
    np.testing.assert_allclose(found.mean[:, 0], plain(masks, y, 3), atol=0.01)


def needle(d, place, rng):
    """Return a game with one strong feature and many weak ones."""
    small = 0.2 * rng.standard_normal(d)
    return lambda masks: (8.0 * masks[:, place] + masks @ small)[:, None]


def test_one_of_many_features_is_found_with_few_masks():
    hits = 0
    for seed in range(20):
        game = RecordedGame(32, needle(32, seed, np.random.default_rng(seed)))
        hits += int(play(SingleEffects(), game, budget=16, seed=seed).scores[0].argmax()) == seed
    assert hits >= 19


def test_coefficients_of_an_additive_game_are_recovered():
    weights = np.array([5.0, -3.0, 2.0, 0.0, 0.0, 1.0])
    game = RecordedGame(6, lambda masks: (masks @ weights)[:, None])
    np.testing.assert_allclose(play(SingleEffects(), game, budget=60).scores[0], weights, atol=0.02)
    assert game.distinct <= 60


def test_many_small_effects_are_not_lost():
    rng = np.random.default_rng(0)
    weights = rng.standard_normal(40)
    masks = rng.random((400, 40)) < 0.5
    y = masks @ weights + 0.5 * rng.standard_normal(400)
    found = fit(masks, y[:, None], 10).mean[:, 0]
    assert np.corrcoef(found, weights)[0, 1] > 0.98


def test_standard_errors_cover_the_effect():
    inside = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        masks = rng.random((64, 16)) < 0.5
        y = 4.0 * masks[:, 3] + rng.standard_normal(64)
        found = fit(masks, y[:, None], 5)
        inside += abs(found.mean[3, 0] - 4.0) <= 1.96 * found.deviation[3, 0]
    assert 50 <= inside <= 60


def test_columns_are_fitted_each_for_itself():
    rng = np.random.default_rng(1)
    masks = rng.random((50, 10)) < 0.5
    values = masks @ rng.standard_normal((10, 3)) + rng.standard_normal((50, 3))
    together = fit(masks, values, 4).mean
    for column in range(3):
        alone = fit(masks, values[:, [column]], 4).mean
        np.testing.assert_allclose(together[:, [column]], alone, atol=0.05)


def test_features_that_are_never_removed_and_constant_answers():
    masks = np.ones((10, 4), dtype=bool)
    masks[::2, 1] = False
    found = fit(masks, np.full((10, 1), 3.0), 2)
    np.testing.assert_allclose(found.mean, 0.0, atol=1e-6)
    assert np.isfinite(found.deviation).all()


def test_standard_errors_cover_small_effects():
    inside = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        masks, effects = rng.random((20, 12)) < 0.5, rng.standard_normal(12)
        y = masks @ effects + 0.5 * rng.standard_normal(20)
        found = fit(masks, y[:, None], 5)
        inside.append(np.abs(found.mean[:, 0] - effects) <= 1.96 * found.deviation[:, 0])
    assert np.mean(inside) >= 0.85
