r"""Shapley values from the Gaussian process that best explains the answers.

With :math:`x_j = \pm 1` for features in and out, a game is a sum over sets, :math:`v(x) = \sum_T a_T \prod_{j
\in T} x_j`. Only sets of odd size matter, i.e. the odd part :math:`o(S) = (v(S) - v(N \setminus S)) / 2`:

.. math:: \phi_i = \sum_{T \ni i,\ |T| \text{ odd}} \frac{2}{|T|} a_T .

A priori the :math:`a_T` are independent with variances :math:`\prod_{j \in T} r_j` (multiplied by `linear`
for single features). Small sets matter most, and sets of relevant features more than others. The covariance
of two odd parts then has a closed form,

.. math:: k(x, x') = e^A \sinh\Bigl(\sum_j b_j x_j x'_j\Bigr), \quad b_j = \operatorname{artanh} r_j, \quad
    A = \tfrac12 \sum_j \log(1 - r_j^2),

and so do the posterior mean and variance of :math:`\phi`, because :math:`1 / |T| = \int_0^1 t^{|T|-1} dt`.
The even part is modelled by a second process, with cosh instead of sinh and a separate scale and noise. It
contains no information about :math:`\phi` but, if it varies, some about r (`fit`).

The prior is fitted to the answers and therefore predicts them better than it would predict others.
`estimate` corrects for this by evaluating priors fitted to one half of the answers on the other half.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pertinent.array_types import Floats, Ints, Masks
from pertinent.explainers.shapley.quasi_newton import climb
from pertinent.stats import student_factor

LEAST_NOISE = 1e-8
"""Noise, relative to an answer's variance, that keeps covariance matrices regular."""

SEARCHED = 150
"""Number of answers used to fit the prior; more would hardly change it."""

CONSTANT = 10.0
"""Prior variance of the unknown mean of all answers, in units of the even part's variance."""

VARIES = 0.02
"""Smallest variance of an informative even part, relative to the odd part's mean square."""

SHARED = 0.9
"""Degrees of freedom used per feature, for which standard errors are enlarged."""

ROUNDING = 1e-8
"""Smallest standard error of a value, relative to the answers' root mean square."""

CENTRES = np.array([1.0, -9.0, -9.0])
WIDTHS = np.array([3.0, 5.0, 5.0])
"""Prior means and standard deviations of log `linear` and of the log noise of both parts."""

MIDDLE = 2.0
SPREAD = 0.8
"""Prior standard deviations of the mean log-odds of r around −log d, and of each log-odds around the mean."""

_BLOCK = 64
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)
_NODES, _WEIGHTS = (_NODES + 1) / 2, _WEIGHTS / 2


@dataclass(frozen=True, eq=False)
class Prior:
    """The prior of a game: `r` of each feature, the factor `linear` for single features, and the noise.

    `noise` and `even_noise` are the shares of the variance of an answer's odd and even part that no set
    explains.
    """

    r: Floats
    linear: float = 1.0
    noise: float = LEAST_NOISE
    even_noise: float = LEAST_NOISE

    def parts(self, x: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Return the covariances of the answers' odd and even parts, without `linear` and noise."""
        constant = 0.5 * np.log1p(-self.r * self.r).sum()
        exponent = _weighted_products(x, y, np.arctanh(self.r))
        up = np.exp(constant + exponent)
        down = np.exp(2 * constant) / up
        return (up - down) / 2, (up + down) / 2

    def covariance(self, x: Floats, y: Floats) -> Floats:
        """Return the covariances of odd parts, without noise."""
        return np.asarray(self.parts(x, y)[0] + self.linear * _weighted_products(x, y, self.r))

    def covariance_with_values(self, x: Floats) -> Floats:
        """Return the covariances of odd parts with Shapley values (answers, features)."""
        terms = _NODES[:, None] * self.r
        even, odd = _products(terms, x)
        factors = 2 * _WEIGHTS[:, None] * self.r / (1 - terms**2)
        return np.asarray(x * (self.linear * 2 * self.r + even.T @ factors) - odd.T @ (terms * factors))

    def variance_of_values(self) -> Floats:
        """Return the prior variance of each Shapley value."""
        i, j = np.triu_indices(len(_NODES))
        terms = (_NODES[i] * _NODES[j])[:, None] * self.r
        even, odd = _products(terms, np.ones((1, len(self.r))))
        weights = (np.where(i == j, 1, 2) * _WEIGHTS[i] * _WEIGHTS[j])[:, None]
        return np.asarray(
            4 * self.r * (self.linear + (weights * (even - terms * odd) / (1 - terms**2)).sum(axis=0))
        )


def _weighted_products(x: Floats, y: Floats, weights: Floats) -> Floats:
    """Return the inner products of rows of x and y with positive weights of the features."""
    if x is not y:
        return np.asarray((x * weights) @ y.T)
    root = x * np.sqrt(weights)
    return np.asarray(root @ root.T)  # numpy computes half of a symmetric product


def _products(terms: Floats, x: Floats) -> tuple[Floats, Floats]:
    """Return the even- and odd-order terms of ∏(1 + term · x) over features, (rows of terms, rows of x).

    Without feature j the even-order term is (even − term_j x_j odd) / (1 − term_j²), because x_j² = 1.
    """
    plus, minus = np.log1p(terms), np.log1p(-terms)
    constant, slope = (plus + minus).sum(axis=1, keepdims=True) / 2, (plus - minus) @ x.T / 2
    up, down = np.exp(constant + slope), np.exp(constant - slope)
    return (up + down) / 2, (up - down) / 2


def noise_variances(share: float, n: int, variance: float) -> Floats:
    """Return the noise variances of n answers; the first, for the whole input, is almost noise-free."""
    noise = np.full(n, (share + LEAST_NOISE) * variance)
    noise[0] = LEAST_NOISE * variance
    return noise


class Estimate(NamedTuple):
    """Values and their standard errors."""

    values: Floats
    errors: Floats


@dataclass(frozen=True, eq=False)
class Conditioned:
    """The process conditioned on answers: its Shapley values and leave-one-out predictions.

    Attributes
    ----------
    values
        Posterior means (features, columns).
    variances
        Posterior variances (features,) in units of the prior's scale.
    residuals
        Leave-one-out prediction errors (answers, columns).
    expected
        Variances of these errors (answers,) in units of the prior's scale.
    influence
        Squared weight of each answer in each value (answers, features).
    """

    values: Floats
    variances: Floats
    residuals: Floats
    expected: Floats
    influence: Floats

    @property
    def surprise(self) -> Floats:
        """Return squared prediction errors in units of their variances (answers, columns)."""
        return np.asarray(self.residuals**2 / self.expected[:, None])

    @property
    def scales(self) -> Floats:
        """Return the mean surprise (features, columns), plain or weighted by the answers' influence."""
        weighted = (self.influence.T @ self.residuals**2) / (self.influence.T @ self.expected)[:, None]
        return np.asarray(np.maximum(weighted, self.surprise[1:].mean(axis=0)))


def estimate(masks: Masks, odd: Floats, even: Floats, columns: slice) -> Estimate:
    """Return Shapley values from the odd and even parts (masks, columns) of the answers.

    The first mask is the full mask. The model's `columns` determine the prior. The scale of the variances is
    the mean surprise: of all answers under the prior fitted to them (`Conditioned.scales`) or, if larger, of
    each half under the prior fitted to the other half. The squared difference between the two halves' values
    is added as the variance due to the prior. Standard errors are enlarged by Student's t, because n − 1
    surprises determine the scale. If a model has only two distinct answers, a prior fitted to all answers
    overfits, and the estimate is the mean of the halves' values.
    """
    n, d = masks.shape
    some, halves, priors = fit_halves(masks, odd[:, columns], even[:, columns])
    is_hard = n >= 2 * d and len(np.unique(np.stack([even + odd, even - odd]))) <= 2
    seen = np.arange(n) if is_hard else some
    conditioned = one, other = [condition(prior, masks[seen], odd[seen]) for prior in priors]
    unseen = [
        half.surprise[np.isin(seen, unused)] for half, unused in zip((one, other), halves[::-1], strict=True)
    ]
    scale = np.concatenate(unseen).mean(axis=0) if n > 1 else np.full(odd.shape[1], np.nan)
    if not is_hard:
        prior = fit(masks, odd[:, columns], even[:, columns], start=priors)
        conditioned = [condition(prior, masks, odd)]
    values = np.mean([process.values for process in conditioned], axis=0)
    variances = np.mean([process.variances for process in conditioned], axis=0)
    scales = [np.broadcast_to(scale, values.shape), *(process.scales for process in conditioned)]
    scale = np.max(scales, axis=0)
    between = (one.values - other.values) ** 2 / 2
    rounding = ROUNDING**2 * (odd**2).mean(axis=0)
    variances = variances[:, None] * scale * n / max(1.0, n - SHARED * d) + between + rounding
    return Estimate(values, student_factor(max(1, n - 1)) * np.sqrt(variances))


def fit_halves(masks: Masks, odd: Floats, even: Floats) -> tuple[Ints, list[Ints], list[Prior]]:
    """Return the indices of the answers used, those of its two halves, and the prior fitted to each half."""
    some = _some(len(masks))
    halves = [some[1::2], some[2::2]]
    with_first = [np.insert(half, 0, 0) for half in halves]
    return some, halves, [fit(masks[half], odd[half], even[half]) for half in with_first]


def _some(n: int) -> Ints:
    """Return the indices of at most `SEARCHED` of n answers, including the first."""
    return np.unique(np.linspace(0, n - 1, SEARCHED).astype(int))


def condition(prior: Prior, masks: Masks, odd: Floats) -> Conditioned:
    """Condition the process on the odd part (masks, columns) of the answers; the first mask is full."""
    x: Floats = np.where(masks, 1.0, -1.0)
    n, d = x.shape
    covariance = prior.covariance(x, x)
    covariance[np.diag_indices(n)] += noise_variances(prior.noise, n, covariance[0, 0])
    inverse_root = invert_lower(np.asarray(np.linalg.cholesky(covariance)))
    lever = inverse_root @ prior.covariance_with_values(x)
    whitened = inverse_root @ odd
    values = lever.T @ whitened
    values += (2 * odd[0] - values.sum(axis=0)) / d  # make them sum to the gain exactly
    expected = 1 / (inverse_root**2).sum(axis=0)
    variances = np.maximum(0.0, prior.variance_of_values() - (lever**2).sum(axis=0))
    influence = (inverse_root.T @ lever) ** 2 + 1e-300
    residuals = (inverse_root.T @ whitened) * expected[:, None]
    return Conditioned(values, variances, residuals, expected, influence)


def invert_lower(root: Floats) -> Floats:
    """Return the inverse of a lower triangular matrix, by halves."""
    n = len(root)
    if n <= _BLOCK:
        return np.asarray(np.linalg.inv(root))
    half = n // 2
    inverse = np.zeros_like(root)
    inverse[:half, :half] = invert_lower(root[:half, :half])
    inverse[half:, half:] = invert_lower(root[half:, half:])
    inverse[half:, :half] = -inverse[half:, half:] @ (root[half:, :half] @ inverse[:half, :half])
    return inverse


# -- the most probable prior given the answers: empirical Bayes, by gradient ascent -------------------


def fit(masks: Masks, odd: Floats, even: Floats, start: Sequence[Prior] = ()) -> Prior:
    """Return the most probable prior given the odd and even parts (masks, columns) of the answers.

    The first mask is the full mask. The search starts at the mean of the priors in `start`, or at equal
    relevances. An even part that hardly varies is ignored: f(S) + f(not S) is nearly constant for majorities
    and for sigmoid models with an opposing baseline, whatever their orders.
    """
    some = _some(len(masks))
    x: Floats = np.where(masks[some], 1.0, -1.0)
    odd, even = odd[some], even[some] - even[some].mean(axis=0)
    informative = odd.any(axis=0)
    odd, even = odd[:, informative], even[:, informative]
    varies = informative.any() and (even**2).mean() > VARIES * (odd**2).mean()
    first = np.concatenate([np.full(x.shape[1], -np.log(x.shape[1])), CENTRES])
    if start:
        first = np.mean([_point(prior) for prior in start], axis=0)
    return _prior(climb(lambda point: log_posterior(point, x, odd, even if varies else None), first))


def _prior(point: Floats) -> Prior:
    """Return the prior for the log-odds of each r and the logs of `linear` and of both noises."""
    return Prior(1 / (1 + np.exp(-point[:-3])), *np.exp(point[-3:]).tolist())


def _point(prior: Prior) -> Floats:
    """Return the inverse of `_prior`."""
    scalars = np.log([prior.linear, prior.noise, prior.even_noise])
    return np.concatenate([np.log(prior.r) - np.log1p(-prior.r), scalars])


def log_posterior(point: Floats, x: Floats, odd: Floats, even: Floats | None) -> tuple[float, Floats]:
    """Return the log posterior of a prior, given answers to masks (as ±1), and its gradient.

    The posterior is unnormalised and maximised over the scales of each column's odd and even part.
    """
    n, d = x.shape
    prior = _prior(point)
    r = prior.r
    odd_part, even_part = prior.parts(x, x)
    single = _weighted_products(x, x, r)
    variance, even_variance = odd_part[0, 0] + prior.linear * single[0, 0], even_part[0, 0]
    total, slope = _log_hyperprior(point)
    try:
        noise = noise_variances(prior.noise, n, variance)
        gain, pull = _evidence(odd_part + prior.linear * single + np.diag(noise), odd)
        by_variance = float(pull.diagonal() @ noise) / variance
        by_single, by_exponent = pull, pull * even_part
        by_r = by_variance * (even_variance - r * odd_part[0, 0]) - r * float((pull * odd_part).sum())
        slope[d] += prior.linear * (float((pull * single).sum()) + by_variance * single[0, 0])
        slope[d + 1] += prior.noise * variance * float(pull.diagonal()[1:].sum())
        total += gain
        along_single = by_variance
        if even is not None:
            noise = noise_variances(prior.even_noise, n, even_variance)
            gain, pull = _evidence(even_part + CONSTANT * even_variance + np.diag(noise), even)
            by_variance = float(pull.diagonal() @ noise) / even_variance + CONSTANT * float(pull.sum())
            by_exponent += pull * odd_part
            by_r += by_variance * (odd_part[0, 0] - r * even_variance) - r * float((pull * even_part).sum())
            slope[d + 2] += prior.even_noise * even_variance * float(pull.diagonal()[1:].sum())
            total += gain
    except np.linalg.LinAlgError:
        return -np.inf, slope
    by_exponent, by_single = _quadratics(x, by_exponent, by_single)
    by_r = (by_exponent + by_r) / (1 - r**2) + prior.linear * (by_single + along_single)
    slope[:d] += by_r * r * (1 - r)
    return total, slope


def _evidence(covariance: Floats, answers: Floats) -> tuple[float, Floats]:
    """Return the log density of the answers at the best scale of each column, and its gradient."""
    n, columns = answers.shape
    root = np.linalg.cholesky(covariance)
    inverse_root = invert_lower(np.asarray(root))
    half = inverse_root @ answers
    squares = (half**2).sum(axis=0) + 1e-300
    density = -n / 2 * float(np.log(squares).sum()) - columns * float(np.log(root.diagonal()).sum())
    weighted = inverse_root.T @ half
    return density, (weighted * (n / 2 / squares)) @ weighted.T - columns / 2 * inverse_root.T @ inverse_root


def _log_hyperprior(point: Floats) -> tuple[float, Floats]:
    """Return the log density of a prior's parameters and its gradient."""
    log_odds, d = point[:-3], len(point) - 3
    deviations = (log_odds - log_odds.mean()) / SPREAD
    mean = (log_odds.mean() + np.log(d)) / MIDDLE
    others = (point[-3:] - CENTRES) / WIDTHS
    slope = -np.concatenate([deviations / SPREAD + mean / MIDDLE / d, others / WIDTHS])
    return -0.5 * float((deviations**2).sum() + mean**2 + (others**2).sum()), slope


def _quadratics(x: Floats, *matrices: Floats) -> Floats:
    """Return xᵀ matrix x for each matrix and each column of x."""
    products = (np.concatenate(matrices) @ x).reshape(len(matrices), *x.shape)
    return np.asarray((products * x).sum(axis=1))
