r"""Shapley values of the Gaussian process that explains the answers best.

With :math:`x_j = \pm 1` for features in and out a game is a sum over sets, :math:`v(x) = \sum_T a_T
\prod_{j \in T} x_j`. Only sets of odd size count, those of the odd part :math:`o(S) = (v(S) - v(N
\setminus S)) / 2`:

.. math:: \phi_i = \sum_{T \ni i,\ |T| \text{ odd}} \frac{2}{|T|} a_T .

A priori the :math:`a_T` are independent, with variances :math:`\prod_{j \in T} r_j` (and `linear` times more
for single features): small sets count most, and sets of relevant features more than others. Then the
covariance of two odd parts has a closed form,

.. math:: k(x, x') = e^A \sinh\Bigl(\sum_j b_j x_j x'_j\Bigr), \quad b_j = \operatorname{artanh} r_j, \quad
    A = \tfrac12 \sum_j \log(1 - r_j^2),

and so have the posterior mean and variance of :math:`\phi`, because :math:`1 / |T| = \int_0^1 t^{|T|-1}
dt`. The even part is a process as well, with cosh for sinh: it says nothing of :math:`\phi`, but something
of r (`fit`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np

from pertinent.array_types import Floats, Masks

LEAST_NOISE = 1e-8
"""Noise as a share of an answer's variance that keeps covariances regular."""

SEARCHED = 150
"""Number of answers from which the prior is chosen; more would hardly change it."""

STEPS = 30
ENOUGH = 0.1
"""A gain of the log posterior that is not worth another step."""

CONSTANT = 10.0
"""Prior variance of the mean of all answers, in units of the even part's variance: it is unknown."""

CENTRES = np.array([1.0, -9.0])
WIDTHS = np.array([3.0, 5.0])
"""Prior means and standard deviations of the logarithms of `linear` and of the noise."""

MIDDLE = 2.0
SPREAD = 0.8
"""Prior standard deviations of the mean log-odds of r around −log d, and of each around their mean."""

_BLOCK = 64
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)
_NODES, _WEIGHTS = (_NODES + 1) / 2, _WEIGHTS / 2


@dataclass(frozen=True, eq=False)
class Prior:
    """The prior of a game: `r` of each feature, the factor `linear` of single features, and the noise.

    `noise` is the share of an answer's variance that no set explains.
    """

    r: Floats
    linear: float = 1.0
    noise: float = LEAST_NOISE

    def parts(self, x: Floats, y: Floats) -> tuple[Floats, Floats]:
        """The covariances of the odd and of the even part of answers, without `linear` and noise."""
        constant = 0.5 * np.log1p(-self.r * self.r).sum()
        exponent = (x * np.arctanh(self.r)) @ y.T
        up, down = np.exp(constant + exponent), np.exp(constant - exponent)
        return (up - down) / 2, (up + down) / 2

    def covariance(self, x: Floats, y: Floats) -> Floats:
        """The covariances of odd parts, without noise."""
        return np.asarray(self.parts(x, y)[0] + self.linear * (x * self.r) @ y.T)

    def noise_of(self, n: int, variance: float) -> Floats:
        """The noise variances of n answers; the first, of the whole input, has almost none."""
        found = np.full(n, (self.noise + LEAST_NOISE) * variance)
        found[0] = LEAST_NOISE * variance
        return found

    def covariance_with_values(self, x: Floats) -> Floats:
        """The covariances of odd parts with Shapley values (answers, features)."""
        found = self.linear * 2 * self.r * x
        for node, weight in zip(_NODES, _WEIGHTS, strict=True):
            found += 2 * weight * self.r * x * _even_without(node * self.r * x)
        return found

    def variance_of_values(self) -> Floats:
        """The prior variance of each Shapley value."""
        found = self.linear * 4 * self.r
        for (s, w), (t, u) in product(zip(_NODES, _WEIGHTS, strict=True), repeat=2):
            found += 4 * w * u * self.r * _even_without(s * t * self.r[None])[0]
        return found


def _even_without(terms: Floats) -> Floats:
    """The part of even order of ∏(1 + term), over all columns but one, for each column."""
    plus, minus = np.log1p(terms), np.log1p(-terms)
    both = np.exp(plus.sum(1, keepdims=True) - plus) + np.exp(minus.sum(1, keepdims=True) - minus)
    return np.asarray(both / 2)


@dataclass(frozen=True, eq=False)
class Posterior:
    """The Shapley values and their standard errors (features, columns), given the answers."""

    values: Floats
    standard_errors: Floats


def posterior(prior: Prior, masks: Masks, odd: Floats) -> Posterior:
    """The mean of the Shapley values given the odd part (masks, columns), and their standard errors.

    The first mask keeps everything.
    """
    x: Floats = np.where(masks, 1.0, -1.0)
    n, d = x.shape
    covariance = prior.covariance(x, x)
    covariance[np.diag_indices(n)] += prior.noise_of(n, covariance[0, 0])
    inverse_root = invert_lower(np.asarray(np.linalg.cholesky(covariance)))
    lever = inverse_root @ prior.covariance_with_values(x)
    rest = inverse_root @ odd
    left = np.maximum(0.0, prior.variance_of_values() - (lever**2).sum(axis=0))
    scale = _scale(inverse_root, lever, rest) * n / max(1, n - d)
    values = lever.T @ rest
    values += (2 * odd[0] - values.sum(axis=0)) / d  # they sum to the gain, to rounding
    return Posterior(values, np.sqrt(left[:, None] * scale))


def _scale(inverse_root: Floats, lever: Floats, rest: Floats) -> Floats:
    """The factor (features, columns) by which the prior's variances are too small.

    It is the mean over all answers or, if larger, the mean over the answers that a feature's value depends
    on: squared errors of each answer predicted from the others, weighted by their influence on the value.
    """
    precision = (inverse_root**2).sum(axis=0)
    surprise = (inverse_root.T @ rest / precision[:, None]) ** 2
    weight = (inverse_root.T @ lever) ** 2 + 1e-300
    own = (weight.T @ surprise) / (weight.T @ (1 / precision))[:, None]
    return np.asarray(np.maximum(own, (rest**2).mean(axis=0)))


def invert_lower(root: Floats) -> Floats:
    """The inverse of a lower triangular matrix, by halves."""
    n = len(root)
    if n <= _BLOCK:
        return np.asarray(np.linalg.inv(root))
    half = n // 2
    found = np.zeros_like(root)
    found[:half, :half] = invert_lower(root[:half, :half])
    found[half:, half:] = invert_lower(root[half:, half:])
    found[half:, :half] = -found[half:, half:] @ (root[half:, :half] @ found[:half, :half])
    return found


# -- the prior under which the answers are most probable: empirical Bayes, by gradients ---------------


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
    """The log posterior of a prior given the answers to masks (as ±1), up to a constant, and its gradient.

    It is maximised over the scale of each column, which its odd and its even part share.
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
    # derivatives by the covariance of the odd, then of the even part
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
    """The log density of a prior's parameters, and its gradient."""
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
    """Maximise a function by quasi-Newton steps (BFGS); it returns its value and its gradient."""
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
