"""The prior under which answers are most probable: empirical Bayes, by gradients."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pertinent.array_types import Floats, Masks
from pertinent.explainers.shapley.odd_process import Prior, invert_lower

SEARCHED = 150
"""Answers from which the prior is chosen; more would hardly change it."""

STEPS = 30
ENOUGH = 0.1
"""A gain of the log posterior that is not worth another step."""

CONSTANT = 10.0
"""Variance of the mean of all answers, of which nothing is known, in units of an even part's."""

CENTRES = np.array([1.0, -9.0])
WIDTHS = np.array([3.0, 5.0])
"""Of the logarithms of `linear` and of the noise, a priori."""

MIDDLE = 2.0
SPREAD = 0.8
"""How far the mean of the log-odds of all r is from −log d a priori, and each of them from their mean."""


def fit(masks: Masks, odd: Floats, even: Floats) -> Prior:
    """The most probable prior given the odd and the even part (masks, columns) of some answers.

    The first mask keeps everything.
    """
    some = np.unique(np.linspace(0, len(masks) - 1, SEARCHED).astype(int))
    x: Floats = np.where(masks[some], 1.0, -1.0)
    even = even[some] - even[some].mean(axis=0)
    start = np.concatenate([np.full(x.shape[1], -np.log(x.shape[1])), CENTRES])
    return _prior(climb(lambda point: log_posterior(point, x, odd[some], even), start))


def _prior(point: Floats) -> Prior:
    """From the log-odds of each r, then the logarithms of `linear` and of the noise."""
    return Prior(1 / (1 + np.exp(-point[:-2])), float(np.exp(point[-2])), float(np.exp(point[-1])))


def log_posterior(point: Floats, x: Floats, odd: Floats, even: Floats) -> tuple[float, Floats]:
    """Of a prior, given answers (as ±1), up to a constant; and its gradient.

    A column's scale, that of its odd and its even part, is at its best.
    """
    n, d = x.shape
    prior = _prior(point)
    r, one_less = prior.r, 1 - prior.r**2
    odd_part, even_part = prior.parts(x, x)
    single = (x * r) @ x.T
    variance = odd_part[0, 0] + prior.linear * single[0, 0]
    noise = prior.noise_of(n, variance)
    covariances = (odd_part + prior.linear * single, even_part + CONSTANT * even_part[0, 0])
    total, slope = _log_hyperprior(point)
    try:
        roots = [np.linalg.cholesky(one + np.diag(noise)) for one in covariances]
    except np.linalg.LinAlgError:
        return -np.inf, slope
    inverse_roots = [invert_lower(root) for root in roots]
    halves = [inverse @ part for inverse, part in zip(inverse_roots, (odd, even), strict=True)]
    explained = sum((half**2).sum(axis=0) for half in halves) + 1e-300
    total -= n * float(np.log(explained).sum())
    total -= odd.shape[1] * sum(float(np.log(root.diagonal()).sum()) for root in roots)
    # by the covariance of the odd, then of the even part
    pulls = [
        ((a := inverse.T @ half) * (n / explained)) @ a.T - odd.shape[1] / 2 * (inverse.T @ inverse)
        for inverse, half in zip(inverse_roots, halves, strict=True)
    ]
    noisy = sum(pull.diagonal() for pull in pulls)
    by_variance = float(noisy @ noise) / variance
    by_r = _quadratic(x, pulls[0] * even_part + pulls[1] * odd_part)
    by_r -= r * float((pulls[0] * odd_part + pulls[1] * even_part).sum())
    by_r += by_variance * (even_part[0, 0] - r * odd_part[0, 0])
    by_r += CONSTANT * pulls[1].sum() * (odd_part[0, 0] - r * even_part[0, 0])
    by_r = by_r / one_less + prior.linear * (_quadratic(x, pulls[0]) + by_variance)
    slope[:d] += by_r * r * (1 - r)
    slope[d] += prior.linear * (float((pulls[0] * single).sum()) + by_variance * single[0, 0])
    slope[d + 1] += prior.noise * variance * float(noisy[1:].sum())
    return total, slope


def _log_hyperprior(point: Floats) -> tuple[float, Floats]:
    """Of what a prior consists of, and its gradient."""
    log_odds, d = point[:-2], len(point) - 2
    away = (log_odds - log_odds.mean()) / SPREAD
    middle = (log_odds.mean() + np.log(d)) / MIDDLE
    beside = (point[-2:] - CENTRES) / WIDTHS
    slope = -np.concatenate([away / SPREAD + middle / MIDDLE / d, beside / WIDTHS])
    return -0.5 * float((away**2).sum() + middle**2 + (beside**2).sum()), slope


def _quadratic(x: Floats, matrix: Floats) -> Floats:
    """xᵀ matrix x for each column of x."""
    return np.asarray(np.einsum("ij,ij->j", x, matrix @ x))


def climb(function: Callable[[Floats], tuple[float, Floats]], point: Floats) -> Floats:
    """A point where the function is large, by quasi-Newton steps (BFGS); it gives its value and gradient."""
    value, slope = function(point)
    curve = np.eye(len(point)) / max(1.0, float(np.abs(slope).max()))
    for step in range(STEPS):
        move = curve @ slope
        move *= min(1.0, 2.0 / float(np.abs(move).max() + 1e-300))
        for _ in range(6):
            new_value, new_slope = function(point + move)
            if new_value > value + 1e-4 * float(slope @ move):
                break
            move = move / 3
        else:
            return point
        gain, turn = new_value - value, slope - new_slope
        point, value, slope = point + move, new_value, new_slope
        if gain < ENOUGH:
            return point
        bend = float(move @ turn)
        if bend > 0:
            if step == 0:
                curve = np.eye(len(point)) * bend / float(turn @ turn)
            swing = curve @ turn
            curve += (1 + turn @ swing / bend) * np.outer(move, move) / bend
            curve -= (np.outer(swing, move) + np.outer(move, swing)) / bend
    return point
