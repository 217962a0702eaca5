r"""Interaction values of the Gaussian process that explains the answers best, and their errors.

The process is that of `odd_process`: the :math:`a_T` are independent a priori, with variances :math:`\prod_{j
\in T} r_j`. An index gives every set that holds i and j the weight :math:`\int u^{|T|-2} d\mu(u)`
(`interaction_index`), so the covariance of an answer with the value of a pair is

.. math:: \operatorname{cov}(v(x), I_{ij}) = \int r_i x_i\, r_j x_j
    \prod_{k \ne i, j} (1 + u\, r_k x_k)\, d\mu(u)

and for single features the same with i alone. The odd and the even part of the game are independent, and
what they say is added. As for Shapley values, priors fitted to one half of the answers are judged by the
other half (`estimate`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from pertinent.array_types import Floats, Ints, Masks
from pertinent.explainers.shapley.gaussian_process import (
    CONSTANT,
    Prior,
    fit,
    in_halves,
    invert_lower,
    with_first,
)
from pertinent.explainers.shapley.interaction_index import Index, WeightedSum, triples_of

ROUNDING = 1e-13
"""Noise that keeps covariances regular where all but the empty set have almost no variance."""

AT_ONCE = 4e6
"""Number of covariances of answers with pairs that are held in memory at once."""


class Estimate(NamedTuple):
    """Values and their standard errors."""

    values: Floats
    errors: Floats


class InteractionPosterior(NamedTuple):
    """The values of features (features, columns), pairs (features, features, columns) and triples.

    Pairs have only the columns that were asked for; their matrices are symmetric, with zeros on the diagonal.
    Triples (triples, columns) are in the order of `triples_of`; there are none if the index has none.
    """

    singles: Estimate
    pairs: Estimate
    triples: Estimate


def estimate(
    index: Index, masks: Masks, odd: Floats, even: Floats, *, own: slice, of_pairs: list[int]
) -> InteractionPosterior:
    """An index's values from the odd and the even part (masks, columns) of some answers, and standard errors.

    The first mask keeps everything. The model's `own` columns decide the prior; `of_pairs` are the columns
    for which pairs are valued. Variances are scaled by the errors of each answer predicted from the others:
    under the prior fitted to all of them or, if larger, of each half under the prior fitted to the other
    half. The squared difference of the two halves' values is added as the prior's own variance.
    """
    some, halves = in_halves(len(masks))
    priors = [fit(masks[half], odd[half][:, own], even[half][:, own]) for half in map(with_first, halves)]
    seen = masks[some], odd[some], even[some]
    unseen = [np.isin(some, half) for half in reversed(halves)]
    surprise = [
        [part.surprise[other] for part in _parts(prior, *seen)]
        for prior, other in zip(priors, unseen, strict=True)
    ]
    scales = [np.concatenate(of_part).mean(axis=0) for of_part in zip(*surprise, strict=True)]
    one, other = (posterior(prior, index, *seen, of_pairs=of_pairs) for prior in priors)
    prior = fit(masks, odd[:, own], even[:, own])  # between the halves' it ends worse on games of gloves
    found = posterior(prior, index, masks, odd, even, of_pairs=of_pairs, scales=scales)
    return InteractionPosterior(
        *(
            Estimate(each.values, np.sqrt(each.errors**2 + (a.values - b.values) ** 2 / 2))
            for each, a, b in zip(found, one, other, strict=True)
        )
    )


def posterior(
    prior: Prior,
    index: Index,
    masks: Masks,
    odd: Floats,
    even: Floats,
    *,
    of_pairs: list[int],
    scales: Sequence[Floats] = (np.zeros(1), np.zeros(1)),
) -> InteractionPosterior:
    """The means of an index's values given the odd and even parts (masks, columns), and standard errors.

    The first mask keeps everything. `of_pairs` are the columns for which pairs are valued. `scales` are the
    smallest scales of the variances of both parts, for each column.
    """
    x: Floats = np.where(masks, 1.0, -1.0)
    d = x.shape[1]
    singles, single_variances = np.zeros((2, d, odd.shape[1]))
    pairs, pair_variances = np.zeros((2, d, d, len(of_pairs)))
    both = [
        replace(part, scale=np.broadcast_to(scale, odd.shape[1]))
        for part, scale in zip(_parts(prior, masks, odd, even), scales, strict=True)
    ]
    for part, of_single, of_pair, linear in (
        (both[0], index.singles_odd, index.pairs_odd, prior.linear),
        (both[1], index.singles_even, index.pairs_even, 0.0),
    ):
        if len(of_single.nodes):
            alone = linear * of_single.weights.sum()
            lever = _with_single(prior.r * x, of_single) + alone * prior.r * x
            variance = _with_single(prior.r[None], of_single.squared())[0]
            variance += alone * of_single.weights.sum() * prior.r
            found, variances = part.estimate(lever, variance, slice(None))
            singles += found
            single_variances += variances
        if len(of_pair.nodes):
            found, variances = _pairs(part, prior.r, x, of_pair, of_pairs)
            pairs += found
            pair_variances += variances
    triples, triple_variances = _triples(both[0], prior.r, x, index.triples_odd, of_pairs)
    return InteractionPosterior(
        Estimate(singles, np.sqrt(single_variances)),
        Estimate(pairs, np.sqrt(pair_variances)),
        Estimate(triples, np.sqrt(triple_variances)),
    )


def _parts(prior: Prior, masks: Masks, odd: Floats, even: Floats) -> tuple[_Component, _Component]:
    """The odd and the even part of the answers."""
    x: Floats = np.where(masks, 1.0, -1.0)
    return _Component.odd(prior, x, odd), _Component.even(prior, x, even)


@dataclass(frozen=True, eq=False)
class _Component:
    """The odd or the even part of the answers: the root of its inverse covariance, and the product of both.

    `inflation` is the factor of variances that is due to few answers, `scale` their smallest scale (columns).
    """

    inverse_root: Floats
    rest: Floats
    inflation: float
    scale: Floats

    @classmethod
    def odd(cls, prior: Prior, x: Floats, answers: Floats) -> _Component:
        covariance = prior.covariance(x, x)
        return cls._from_covariance(covariance, prior.noise_of(len(x), covariance[0, 0]), answers, x.shape[1])

    @classmethod
    def even(cls, prior: Prior, x: Floats, answers: Floats) -> _Component:
        """The even part around its mean, which is unknown."""
        covariance = prior.parts(x, x)[1] - 1  # without the empty set
        variance = float(covariance[0, 0])
        noise = prior.even_noise_of(len(x), variance) + ROUNDING
        return cls._from_covariance(
            covariance + CONSTANT * variance, noise, answers - answers.mean(axis=0), x.shape[1]
        )

    @classmethod
    def _from_covariance(cls, covariance: Floats, noise: Floats, answers: Floats, d: int) -> _Component:
        n = len(covariance)
        covariance[np.diag_indices(n)] += noise
        inverse_root = invert_lower(np.asarray(np.linalg.cholesky(covariance)))
        return cls(inverse_root, inverse_root @ answers, n / max(1, n - d), np.zeros(answers.shape[1]))

    @cached_property
    def precision(self) -> Floats:
        """One over the variance of each answer given the others (answers)."""
        return np.asarray((self.inverse_root**2).sum(axis=0))

    @cached_property
    def residuals(self) -> Floats:
        """The errors of each answer predicted from the others (answers, columns)."""
        return np.asarray(self.inverse_root.T @ self.rest / self.precision[:, None])

    @property
    def surprise(self) -> Floats:
        """Squared errors of the predictions in units of their variances (answers, columns)."""
        return np.asarray(self.residuals**2 * self.precision[:, None])

    def estimate(
        self, covariance: Floats, variance: Floats, columns: list[int] | slice
    ) -> tuple[Floats, Floats]:
        """The means (values, columns) of linear functions of the game, and their variances.

        `covariance` (masks, values) is that of the answers with the values, `variance` (values,) that of the
        values a priori. Variances are scaled by the squared errors of each answer predicted from the others:
        by their mean, by the mean weighted by the answers' influence on the value, or by `scale`, whichever
        is largest; and by n / (n − d), because the answers decided the r of each feature, too.
        """
        rest, lever = self.rest[:, columns], self.inverse_root @ covariance
        left = np.maximum(0.0, variance - (lever**2).sum(axis=0))
        weight = (self.inverse_root.T @ lever) ** 2 + 1e-300
        own = (weight.T @ self.residuals[:, columns] ** 2) / (weight.T @ (1 / self.precision))[:, None]
        scale = np.maximum(np.maximum(own, (rest**2).mean(axis=0)), self.scale[columns]) * self.inflation
        return lever.T @ rest, left[:, None] * scale


def _pairs(
    part: _Component, r: Floats, x: Floats, measure: WeightedSum, columns: list[int]
) -> tuple[Floats, Floats]:
    """The means of the values of pairs (features, features, columns), and their variances."""
    n, d = x.shape
    terms, prior_terms = _Pairs.from_points(r * x, measure), _Pairs.from_points(r[None], measure.squared())
    variance = prior_terms.integrals(0, d)[0]
    found = np.zeros((2, d, d, len(columns)))
    step = max(1, int(AT_ONCE / (n * d)))
    for first in range(0, d, step):
        last = min(d, first + step)
        i, j = np.nonzero(np.arange(first, last)[:, None] < np.arange(first, d))
        lever = terms.integrals(first, last)[:, i, j]
        i, j = i + first, j + first
        found[:, i, j] = found[:, j, i] = part.estimate(lever, variance[i, j], columns)
    return found[0], found[1]


def _triples(
    part: _Component, r: Floats, x: Floats, measure: WeightedSum, columns: list[int]
) -> tuple[Floats, Floats]:
    """The means of the values of triples (triples, columns), and their variances."""
    if not len(measure.nodes):
        return np.zeros((0, len(columns))), np.zeros((0, len(columns)))
    found = triples_of(x.shape[1])
    terms, prior_terms = _Pairs.from_points(r * x, measure), _Pairs.from_points(r[None], measure.squared())
    step = max(1, int(AT_ONCE / terms.products.size))
    parts = [found[first : first + step] for first in range(0, len(found), step)]
    estimates = [
        part.estimate(terms.of_triples(each), prior_terms.of_triples(each)[0], columns) for each in parts
    ]
    values, variances = zip(*estimates, strict=True) if estimates else ([np.zeros((0, len(columns)))],) * 2
    return np.concatenate(values), np.concatenate(variances)


def _with_single(terms: Floats, measure: WeightedSum) -> Floats:
    """The integral of term_i ∏(1 + u term_k) over all other k, for each column i (rows, columns)."""
    found = np.zeros_like(terms)
    for node, weight in zip(measure.nodes, measure.weights, strict=True):
        factors = np.log1p(node * terms)
        found += weight * np.exp(factors.sum(axis=1, keepdims=True) - factors)
    return found * terms


@dataclass(frozen=True, eq=False)
class _Pairs:
    """The parts of the integral of term_i term_j ∏(1 + u term_k) over all other k, for each row of terms.

    `products` (rows, nodes, 1) are over all k, times the node's weight; `ratios` (rows, nodes, columns) are
    term_i / (1 + u term_i).
    """

    products: Floats
    ratios: Floats

    @classmethod
    def from_points(cls, terms: Floats, measure: WeightedSum) -> _Pairs:
        factors = 1 + measure.nodes[:, None] * terms[:, None, :]
        products = np.exp(np.log(factors).sum(axis=2, keepdims=True)) * measure.weights[:, None]
        return cls(products, terms[:, None, :] / factors)

    def integrals(self, first: int, last: int) -> Floats:
        """A matrix for each row, of i from `first` to `last` and j from `first` on."""
        weighted = self.products * self.ratios[:, :, first:last]
        return np.asarray(weighted.transpose(0, 2, 1) @ self.ratios[:, :, first:])

    def of_triples(self, triples: Ints) -> Floats:
        """The same with a third term, for each row and triple."""
        i, j, k = triples.T
        return np.asarray(
            (self.products * self.ratios[:, :, i] * self.ratios[:, :, j] * self.ratios[:, :, k]).sum(axis=1)
        )
