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
dt`. The even part is a process as well, with cosh for sinh and a scale and noise of its own: it says nothing
of :math:`\phi`, but, where it varies, something of r (`fit`).

The prior is fitted to the answers, so it predicts them better than it would others. `estimate` therefore
judges priors fitted to one half of the answers by the other half.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from pertinent.array_types import Floats, Ints, Masks
from pertinent.stats import student_factor

LEAST_NOISE = 1e-8
"""Noise as a share of an answer's variance that keeps covariances regular."""

SEARCHED = 150
"""Number of answers from which the prior is chosen; more would hardly change it."""

STEPS = 30
ENOUGH = 0.1
"""A gain of the log posterior that is not worth another step."""

CONSTANT = 10.0
"""Prior variance of the mean of all answers, in units of the even part's variance: it is unknown."""

VARIES = 0.02
"""Smallest variance of the even part, as a share of the odd part's mean square, that says anything of r."""

SHARED = 0.9
"""Degrees of freedom that the answers lose to each feature, for which standard errors are enlarged."""

ROUNDING = 1e-8
"""Least standard error of a value, as a share of the answers' root mean square."""

CENTRES = np.array([1.0, -9.0, -9.0])
WIDTHS = np.array([3.0, 5.0, 5.0])
"""Prior means and standard deviations of the logarithms of `linear` and of the noise of both parts."""

MIDDLE = 2.0
SPREAD = 0.8
"""Prior standard deviations of the mean log-odds of r around −log d, and of each around their mean."""

_BLOCK = 64
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)
_NODES, _WEIGHTS = (_NODES + 1) / 2, _WEIGHTS / 2


@dataclass(frozen=True, eq=False)
class Prior:
    """The prior of a game: `r` of each feature, the factor `linear` of single features, and the noise.

    `noise` and `even_noise` are the shares of the variance of the odd and of the even part of an answer that
    no set explains.
    """

    r: Floats
    linear: float = 1.0
    noise: float = LEAST_NOISE
    even_noise: float = LEAST_NOISE

    def parts(self, x: Floats, y: Floats) -> tuple[Floats, Floats]:
        """The covariances of the odd and of the even part of answers, without `linear` and noise."""
        constant = 0.5 * np.log1p(-self.r * self.r).sum()
        exponent = (x * np.arctanh(self.r)) @ y.T
        up = np.exp(constant + exponent)
        down = np.exp(2 * constant) / up
        return (up - down) / 2, (up + down) / 2

    def covariance(self, x: Floats, y: Floats) -> Floats:
        """The covariances of odd parts, without noise."""
        return np.asarray(self.parts(x, y)[0] + self.linear * (x * self.r) @ y.T)

    def noise_of(self, n: int, variance: float) -> Floats:
        """The noise variances of the odd parts of n answers."""
        return _noise(self.noise, n, variance)

    def even_noise_of(self, n: int, variance: float) -> Floats:
        """The noise variances of the even parts of n answers."""
        return _noise(self.even_noise, n, variance)

    def covariance_with_values(self, x: Floats) -> Floats:
        """The covariances of odd parts with Shapley values (answers, features)."""
        terms = _NODES[:, None] * self.r
        even, odd = _products(terms, x)
        factors = 2 * _WEIGHTS[:, None] * self.r / (1 - terms**2)
        return np.asarray(x * (self.linear * 2 * self.r + even.T @ factors) - odd.T @ (terms * factors))

    def variance_of_values(self) -> Floats:
        """The prior variance of each Shapley value."""
        terms = np.multiply.outer(_NODES, _NODES).reshape(-1, 1) * self.r
        even, odd = _products(terms, np.ones((1, len(self.r))))
        weights = np.multiply.outer(_WEIGHTS, _WEIGHTS).reshape(-1, 1)
        return np.asarray(
            4 * self.r * (self.linear + (weights * (even - terms * odd) / (1 - terms**2)).sum(axis=0))
        )


def _products(terms: Floats, x: Floats) -> tuple[Floats, Floats]:
    """The parts of even and of odd order of ∏(1 + term · x) over features, (rows of terms, rows of x).

    Without feature j the part of even order is (even − term_j x_j odd) / (1 − term_j²), because x_j² = 1.
    """
    plus, minus = np.log1p(terms), np.log1p(-terms)
    constant, slope = (plus + minus).sum(axis=1, keepdims=True) / 2, (plus - minus) @ x.T / 2
    up, down = np.exp(constant + slope), np.exp(constant - slope)
    return (up + down) / 2, (up - down) / 2


def _noise(share: float, n: int, variance: float) -> Floats:
    """The noise variances of n answers; the first, of the whole input, has almost none."""
    found = np.full(n, (share + LEAST_NOISE) * variance)
    found[0] = LEAST_NOISE * variance
    return found


@dataclass(frozen=True, eq=False)
class Posterior:
    """The Shapley values and their standard errors (features, columns), given the answers."""

    values: Floats
    standard_errors: Floats


@dataclass(frozen=True, eq=False)
class Conditioned:
    """A process given answers: its Shapley values, and each answer predicted from all the others.

    `values` are posterior means (features, columns), `variances` posterior variances in units of the
    prior's scale (features); `residuals` are the errors of the predictions (answers, columns) and
    `expected` their variances in the same units (answers). `influence` (answers, features) is the squared
    weight of each answer in each value.
    """

    values: Floats
    variances: Floats
    residuals: Floats
    expected: Floats
    influence: Floats

    @property
    def surprise(self) -> Floats:
        """Squared errors of the predictions in units of their variances (answers, columns)."""
        return np.asarray(self.residuals**2 / self.expected[:, None])

    @property
    def scales(self) -> Floats:
        """Mean surprise (features, columns), plain or weighted by the answers' influence on each value."""
        weighted = (self.influence.T @ self.residuals**2) / (self.influence.T @ self.expected)[:, None]
        return np.asarray(np.maximum(weighted, self.surprise[1:].mean(axis=0)))


def estimate(masks: Masks, odd: Floats, even: Floats, own: slice) -> Posterior:
    """The Shapley values from the odd and the even part (masks, columns) of some answers.

    The first mask keeps everything. The model's `own` columns decide the prior. The scale of variances is the
    mean surprise: of all answers under the prior fitted to them (`Conditioned.scales`) or, if larger, of each
    half under the prior fitted to the other half. The squared difference of the two halves' values is added
    as the prior's own variance. Standard errors are enlarged by Student's t, because n − 1 surprises decide
    the scale. If a model has only two different answers, a prior fitted to all of them fits too well, and the
    mean of the halves' values is the estimate.
    """
    n, d = masks.shape
    some, halves = in_halves(n)
    priors = [fit(masks[half], odd[half][:, own], even[half][:, own]) for half in map(with_first, halves)]
    hard = n >= 2 * d and len(np.unique(np.stack([even + odd, even - odd]))) <= 2
    seen = np.arange(n) if hard else some
    tried = [condition(prior, masks[seen], odd[seen]) for prior in priors]
    unseen = [np.isin(seen, half) for half in reversed(halves)]
    held_out = [each.surprise[other] for each, other in zip(tried, unseen, strict=True)]
    scale = np.concatenate(held_out).mean(axis=0) if n > 1 else np.full(odd.shape[1], np.nan)
    judged = tried if hard else [condition(fit(masks, odd[:, own], even[:, own], start=priors), masks, odd)]
    values = np.mean([each.values for each in judged], axis=0)
    variances = np.mean([each.variances for each in judged], axis=0)
    scale = np.max([np.broadcast_to(scale, values.shape), *(each.scales for each in judged)], axis=0)
    between = (tried[0].values - tried[1].values) ** 2 / 2
    rounding = ROUNDING**2 * (odd**2).mean(axis=0)
    variances = variances[:, None] * scale * n / max(1.0, n - SHARED * d) + between + rounding
    return Posterior(values, student_factor(max(1, n - 1)) * np.sqrt(variances))


def _some(n: int) -> Ints:
    """The places of at most `SEARCHED` of n answers, the first among them."""
    return np.unique(np.linspace(0, n - 1, SEARCHED).astype(int))


def in_halves(n: int) -> tuple[Ints, tuple[Ints, Ints]]:
    """The places of some of n answers, and those of two halves of them without the first."""
    some = _some(n)
    return some, (some[1::2], some[2::2])


def with_first(places: Ints) -> Ints:
    """These places, after the first."""
    return np.insert(places, 0, 0)


def condition(prior: Prior, masks: Masks, odd: Floats) -> Conditioned:
    """The process given the odd part (masks, columns) of some answers; the first mask keeps everything."""
    x: Floats = np.where(masks, 1.0, -1.0)
    n, d = x.shape
    covariance = prior.covariance(x, x)
    covariance[np.diag_indices(n)] += prior.noise_of(n, covariance[0, 0])
    inverse_root = invert_lower(np.asarray(np.linalg.cholesky(covariance)))
    lever = inverse_root @ prior.covariance_with_values(x)
    rest = inverse_root @ odd
    values = lever.T @ rest
    values += (2 * odd[0] - values.sum(axis=0)) / d  # they sum to the gain, to rounding
    expected = 1 / (inverse_root**2).sum(axis=0)
    variances = np.maximum(0.0, prior.variance_of_values() - (lever**2).sum(axis=0))
    influence = (inverse_root.T @ lever) ** 2 + 1e-300
    return Conditioned(values, variances, (inverse_root.T @ rest) * expected[:, None], expected, influence)


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


def fit(masks: Masks, odd: Floats, even: Floats, start: Sequence[Prior] = ()) -> Prior:
    """The most probable prior given the odd and the even part (masks, columns) of some answers.

    The first mask keeps everything; the search starts between some priors, or from one without relevances.
    An even part that hardly varies is left out: f(S) + f(not S) is nearly constant for majorities, and for
    sigmoid models against an opposing baseline, whatever their orders.
    """
    some = _some(len(masks))
    x: Floats = np.where(masks[some], 1.0, -1.0)
    odd, even = odd[some], even[some] - even[some].mean(axis=0)
    odd, even = odd[:, (told := odd.any(axis=0))], even[:, told]
    varies = told.any() and (even**2).mean() > VARIES * (odd**2).mean()
    first = np.concatenate([np.full(x.shape[1], -np.log(x.shape[1])), CENTRES])
    if start:
        first = np.mean([_point(prior) for prior in start], axis=0)
    return _prior(climb(lambda point: log_posterior(point, x, odd, even if varies else None), first))


def _prior(point: Floats) -> Prior:
    """From the log-odds of each r, then the logarithms of `linear` and of the noise of both parts."""
    return Prior(1 / (1 + np.exp(-point[:-3])), *np.exp(point[-3:]).tolist())


def _point(prior: Prior) -> Floats:
    """The inverse of `_prior`."""
    others = np.log([prior.linear, prior.noise, prior.even_noise])
    return np.concatenate([np.log(prior.r) - np.log1p(-prior.r), others])


def log_posterior(point: Floats, x: Floats, odd: Floats, even: Floats | None) -> tuple[float, Floats]:
    """The log posterior of a prior given the answers to masks (as ±1), up to a constant, and its gradient.

    It is maximised over the scales of each column's odd and even part.
    """
    n, d = x.shape
    prior = _prior(point)
    r, one_less = prior.r, 1 - prior.r**2
    odd_part, even_part = prior.parts(x, x)
    single = (x * r) @ x.T
    variance, even_variance = odd_part[0, 0] + prior.linear * single[0, 0], even_part[0, 0]
    total, slope = _log_hyperprior(point)
    try:
        noise = prior.noise_of(n, variance)
        gain, pull = _evidence(odd_part + prior.linear * single + np.diag(noise), odd)
        by_variance = float(pull.diagonal() @ noise) / variance
        by_r = _quadratic(x, pull * even_part) - r * float((pull * odd_part).sum())
        by_r += by_variance * (even_variance - r * odd_part[0, 0])
        by_r = by_r / one_less + prior.linear * (_quadratic(x, pull) + by_variance)
        slope[d] += prior.linear * (float((pull * single).sum()) + by_variance * single[0, 0])
        slope[d + 1] += prior.noise * variance * float(pull.diagonal()[1:].sum())
        total += gain
        if even is not None:
            noise = prior.even_noise_of(n, even_variance)
            gain, pull = _evidence(even_part + CONSTANT * even_variance + np.diag(noise), even)
            by_variance = float(pull.diagonal() @ noise) / even_variance + CONSTANT * float(pull.sum())
            by_even = _quadratic(x, pull * odd_part) - r * float((pull * even_part).sum())
            by_r += (by_even + by_variance * (odd_part[0, 0] - r * even_variance)) / one_less
            slope[d + 2] += prior.even_noise * even_variance * float(pull.diagonal()[1:].sum())
            total += gain
    except np.linalg.LinAlgError:
        return -np.inf, slope
    slope[:d] += by_r * r * (1 - r)
    return total, slope


def _evidence(covariance: Floats, answers: Floats) -> tuple[float, Floats]:
    """The log density of answers, maximised over each column's scale, and its slope by the covariance."""
    n, columns = answers.shape
    root = np.linalg.cholesky(covariance)
    inverse_root = invert_lower(np.asarray(root))
    half = inverse_root @ answers
    squares = (half**2).sum(axis=0) + 1e-300
    density = -n / 2 * float(np.log(squares).sum()) - columns * float(np.log(root.diagonal()).sum())
    weighted = inverse_root.T @ half
    return density, (weighted * (n / 2 / squares)) @ weighted.T - columns / 2 * inverse_root.T @ inverse_root


def _log_hyperprior(point: Floats) -> tuple[float, Floats]:
    """The log density of a prior's parameters, and its gradient."""
    log_odds, d = point[:-3], len(point) - 3
    away = (log_odds - log_odds.mean()) / SPREAD
    middle = (log_odds.mean() + np.log(d)) / MIDDLE
    beside = (point[-3:] - CENTRES) / WIDTHS
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
