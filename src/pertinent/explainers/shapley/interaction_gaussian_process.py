r"""Interaction values, and their errors, from the Gaussian process that best explains the answers.

The process is that of `gaussian_process`: the :math:`a_T` are independent a priori with variances
:math:`\prod_{j \in T} r_j`. An index weights every set that contains i and j by :math:`\int u^{|T|-2}
d\mu(u)` (`interaction_index`), so the covariance of an answer with the value of a pair is

.. math:: \operatorname{cov}(v(x), I_{ij}) = \int r_i x_i\, r_j x_j
    \prod_{k \ne i, j} (1 + u\, r_k x_k)\, d\mu(u)

and similarly for single features. The odd and even parts of the game are independent, and their
contributions add up. As for Shapley values, priors fitted to one half of the answers are evaluated on the
other half (`estimate`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from pertinent.array_types import Floats, Ints, Masks
from pertinent.explainers.shapley import gaussian_process
from pertinent.explainers.shapley.gaussian_process import CONSTANT, Estimate, Prior, invert_lower
from pertinent.explainers.shapley.interaction_index import Index, WeightedSum, triples_of

ROUNDING = 1e-13
"""Noise that keeps covariances regular if all sets except the empty one have almost no variance."""

AT_ONCE = 4e6
"""Number of covariances between answers and pairs that are held in memory."""


class InteractionPosterior(NamedTuple):
    """Values of single features (features, columns), pairs (features, features, columns) and triples.

    Pairs cover only the requested columns; their matrices are symmetric with zeros on the diagonal. Triples
    (triples, columns) follow the order of `triples_of`; there are none if the index does not define them.
    """

    singles: Estimate
    pairs: Estimate
    triples: Estimate


def estimate(
    index: Index, masks: Masks, odd: Floats, even: Floats, *, columns: slice, pair_columns: list[int]
) -> InteractionPosterior:
    """Return an index's values from the odd and even parts (masks, columns) of the answers.

    The first mask is the full mask. The model's `columns` determine the prior; `pair_columns` are the columns
    for which pairs are valued. Variances are scaled by the leave-one-out prediction errors: under the prior
    fitted to all answers or, if larger, of each half under the prior fitted to the other half. The squared
    difference between the two halves' values is added as the variance due to the prior.
    """
    fitted = odd[:, columns], even[:, columns]
    some, halves, priors = gaussian_process.fit_halves(masks, *fitted)
    seen = masks[some], odd[some], even[some]
    surprise = [
        [part.surprise[np.isin(some, unused)] for part in _parts(prior, *seen)]
        for prior, unused in zip(priors, halves[::-1], strict=True)
    ]
    scales = [np.concatenate(of_part).mean(axis=0) for of_part in zip(*surprise, strict=True)]
    one, other = (posterior(prior, index, *seen, pair_columns=pair_columns) for prior in priors)
    prior = gaussian_process.fit(masks, *fitted)  # starting between the halves is worse for glove games
    whole = posterior(prior, index, masks, odd, even, pair_columns=pair_columns, scales=scales)
    between = [(a.values - b.values) ** 2 / 2 for a, b in zip(one, other, strict=True)]
    return InteractionPosterior(
        *(Estimate(e.values, np.sqrt(e.errors**2 + b)) for e, b in zip(whole, between, strict=True))
    )


def posterior(
    prior: Prior,
    index: Index,
    masks: Masks,
    odd: Floats,
    even: Floats,
    *,
    pair_columns: list[int],
    scales: Sequence[Floats] = (np.zeros(1), np.zeros(1)),
) -> InteractionPosterior:
    """Return an index's values and standard errors, given the odd and even parts (masks, columns).

    The first mask is the full mask. `pair_columns` are the columns for which pairs are valued. `scales` are
    lower bounds on the variance scales of both parts, for each column.
    """
    x: Floats = np.where(masks, 1.0, -1.0)
    d = x.shape[1]
    singles, pairs = np.zeros((2, d, odd.shape[1])), np.zeros((2, d, d, len(pair_columns)))
    parts = _parts(prior, masks, odd, even, scales)
    for part, of_single, of_pair, linear in (
        (parts[0], index.singles_odd, index.pairs_odd, prior.linear),
        (parts[1], index.singles_even, index.pairs_even, 0.0),
    ):
        if len(of_single.nodes):
            first_order = linear * of_single.weights.sum()
            lever = _with_single(prior.r * x, of_single) + first_order * prior.r * x
            variance = _with_single(prior.r[None], of_single.squared())[0]
            variance += first_order * of_single.weights.sum() * prior.r
            singles += part.estimate(lever, variance, slice(None))
        if len(of_pair.nodes):
            pairs += _pairs(part, prior.r, x, of_pair, pair_columns)
    triples = _triples(parts[0], prior.r, x, index.triples_odd, pair_columns)
    return InteractionPosterior(
        *(Estimate(means, np.sqrt(variances)) for means, variances in (singles, pairs, triples))
    )


def _parts(
    prior: Prior,
    masks: Masks,
    odd: Floats,
    even: Floats,
    scales: Sequence[Floats] = (np.zeros(1), np.zeros(1)),
) -> tuple[_Component, _Component]:
    """Return the odd part of the answers, and the even part around its unknown mean."""
    x: Floats = np.where(masks, 1.0, -1.0)
    n, d = x.shape
    covariance = prior.covariance(x, x)
    noise = gaussian_process.noise_variances(prior.noise, n, covariance[0, 0])
    odd_part = _Component(covariance, noise, odd, d, scales[0])
    covariance = prior.parts(x, x)[1] - 1  # without the empty set
    variance = float(covariance[0, 0])
    noise = gaussian_process.noise_variances(prior.even_noise, n, variance) + ROUNDING
    return odd_part, _Component(
        covariance + CONSTANT * variance, noise, even - even.mean(axis=0), d, scales[1]
    )


class _Component:
    """The odd or even part of the answers, conditioned on the process.

    Attributes
    ----------
    inverse_root
        Inverse Cholesky factor of the covariance (answers, answers).
    whitened
        Its product with the answers (answers, columns).
    inflation
        Factor that enlarges variances for few answers.
    scale
        Lower bound on the scale of variances (columns,).
    """

    def __init__(self, covariance: Floats, noise: Floats, answers: Floats, d: int, scale: Floats) -> None:
        n = len(covariance)
        covariance[np.diag_indices(n)] += noise
        self.inverse_root = invert_lower(np.asarray(np.linalg.cholesky(covariance)))
        self.whitened = self.inverse_root @ answers
        self.inflation = n / max(1, n - d)
        self.scale = np.broadcast_to(scale, answers.shape[1])

    @cached_property
    def precision(self) -> Floats:
        """Return the reciprocal variance of each answer, given the other answers (answers,)."""
        return np.asarray((self.inverse_root**2).sum(axis=0))

    @cached_property
    def residuals(self) -> Floats:
        """Return the leave-one-out prediction errors (answers, columns)."""
        return np.asarray(self.inverse_root.T @ self.whitened / self.precision[:, None])

    @property
    def surprise(self) -> Floats:
        """Return squared prediction errors in units of their variances (answers, columns)."""
        return np.asarray(self.residuals**2 * self.precision[:, None])

    def estimate(
        self, covariance: Floats, variance: Floats, columns: list[int] | slice
    ) -> tuple[Floats, Floats]:
        """Return the means (values, columns) of linear functions of the game, and their variances.

        `covariance` (masks, values) is between the answers and the values, `variance` (values,) is the
        values' prior variance. Variances are scaled by the squared leave-one-out prediction errors: their
        mean, their mean weighted by the answers' influence on the value, or `scale`, whichever is largest;
        and by n / (n − d), because the answers also determined the r of each feature.
        """
        whitened, lever = self.whitened[:, columns], self.inverse_root @ covariance
        remaining = np.maximum(0.0, variance - (lever**2).sum(axis=0))
        weight = (self.inverse_root.T @ lever) ** 2 + 1e-300
        weighted = (weight.T @ self.residuals[:, columns] ** 2) / (weight.T @ (1 / self.precision))[:, None]
        largest = np.maximum(np.maximum(weighted, (whitened**2).mean(axis=0)), self.scale[columns])
        return lever.T @ whitened, remaining[:, None] * (largest * self.inflation)


def _pairs(part: _Component, r: Floats, x: Floats, measure: WeightedSum, columns: list[int]) -> Floats:
    """Return the means of pair values (features, features, columns), and their variances."""
    n, d = x.shape
    terms, prior_terms = _Pairs.from_points(r * x, measure), _Pairs.from_points(r[None], measure.squared())
    variance = prior_terms.integrals(0, d)[0]
    pairs = np.zeros((2, d, d, len(columns)))
    step = max(1, int(AT_ONCE / (n * d)))
    for first in range(0, d, step):
        last = min(d, first + step)
        i, j = np.nonzero(np.arange(first, last)[:, None] < np.arange(first, d))
        lever = terms.integrals(first, last)[:, i, j]
        i, j = i + first, j + first
        pairs[:, i, j] = pairs[:, j, i] = part.estimate(lever, variance[i, j], columns)
    return pairs


def _triples(part: _Component, r: Floats, x: Floats, measure: WeightedSum, columns: list[int]) -> Floats:
    """Return the means of triple values (triples, columns), and their variances."""
    triples = triples_of(x.shape[1] if len(measure.nodes) else 0)
    if not len(triples):
        return np.zeros((2, 0, len(columns)))
    terms, prior_terms = _Pairs.from_points(r * x, measure), _Pairs.from_points(r[None], measure.squared())
    step = max(1, int(AT_ONCE / terms.products.size))
    chunks = [triples[first : first + step] for first in range(0, len(triples), step)]
    estimates = [
        part.estimate(terms.of_triples(chunk), prior_terms.of_triples(chunk)[0], columns) for chunk in chunks
    ]
    return np.concatenate(estimates, axis=1)


def _with_single(terms: Floats, measure: WeightedSum) -> Floats:
    """Return the integral of term_i ∏(1 + u term_k) over all k ≠ i, for each column i (rows, columns)."""
    integral = np.zeros_like(terms)
    for node, weight in zip(measure.nodes, measure.weights, strict=True):
        factors = np.log1p(node * terms)
        integral += weight * np.exp(factors.sum(axis=1, keepdims=True) - factors)
    return integral * terms


@dataclass(frozen=True, eq=False)
class _Pairs:
    """The factors of the integral of term_i term_j ∏(1 + u term_k) over all other k, for each row of terms.

    `products` (rows, nodes, 1) are over all k, multiplied by the node's weight; `ratios` (rows, nodes,
    columns) are term_i / (1 + u term_i).
    """

    products: Floats
    ratios: Floats

    @classmethod
    def from_points(cls, terms: Floats, measure: WeightedSum) -> _Pairs:
        factors = 1 + measure.nodes[:, None] * terms[:, None, :]
        products = np.exp(np.log(factors).sum(axis=2, keepdims=True)) * measure.weights[:, None]
        return cls(products, terms[:, None, :] / factors)

    def integrals(self, first: int, last: int) -> Floats:
        """Return a matrix for each row, with i from `first` to `last` and j from `first` onwards."""
        weighted = self.products * self.ratios[:, :, first:last]
        return np.asarray(weighted.transpose(0, 2, 1) @ self.ratios[:, :, first:])

    def of_triples(self, triples: Ints) -> Floats:
        """Return the integrals with a third term, for each row and triple."""
        i, j, k = triples.T
        return np.asarray(
            (self.products * self.ratios[:, :, i] * self.ratios[:, :, j] * self.ratios[:, :, k]).sum(axis=1)
        )
