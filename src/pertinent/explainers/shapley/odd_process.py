r"""Shapley values of the Gaussian process that explains the answers best.

Only the odd part of a game counts, :math:`o(S) = (v(S) - v(N \setminus S)) / 2`. With :math:`x_j = \pm 1` for
features in and out it is a sum over sets of odd size, :math:`o(x) = \sum_T a_T \prod_{j \in T} x_j`, and

.. math:: \phi_i = \sum_{T \ni i} \frac{2}{|T|} a_T .

A priori the :math:`a_T` are independent, with variances :math:`\prod_{j \in T} r_j` (and `linear` times more
for single features): small sets count most, and sets of relevant features more than others. Then the
covariance of two answers has a closed form,

.. math:: k(x, x') = e^A \sinh\Bigl(\sum_j b_j x_j x'_j\Bigr), \quad b_j = \operatorname{artanh} r_j, \quad
    A = \tfrac12 \sum_j \log(1 - r_j^2),

and so have the posterior mean and variance of :math:`\phi`, because :math:`1 / |T| = \int_0^1 t^{|T|-1} dt`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from pertinent.types import Floats, Ints, Masks

STRENGTHS = (0.1, 0.25, 0.6, 1.2, 2.4, 4.0, 6.0, 8.0, 10.0)
LINEARS = (0.0, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
CONTRASTS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5)
NOISES = (1e-8, 1e-4, 1e-3, 1e-2, 1e-1)
SEARCHED = 250
"""Answers from which the prior is chosen; more would hardly change it."""

_BLOCK = 64
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)
_NODES, _WEIGHTS = (_NODES + 1) / 2, _WEIGHTS / 2


@dataclass(frozen=True)
class Prior:
    """Places on the grids of what the prior depends on, and the relevance of each feature.

    `strength` is the sum of all r, `contrast` how much relevant features count more, `noise` the share
    of an answer's variance that no set explains.
    """

    relevance: tuple[float, ...]
    strength: int = 4
    linear: int = 3
    contrast: int = 0
    noise: int = 0

    def neighbours(self) -> Iterator[Prior]:
        """The priors one step away."""
        grids = {"strength": STRENGTHS, "linear": LINEARS, "contrast": CONTRASTS, "noise": NOISES}
        for (name, grid), step in product(grids.items(), (1, -1)):
            place = getattr(self, name) + step
            if 0 <= place < len(grid):
                yield replace(self, **{name: place})

    @property
    def r(self) -> Floats:
        """The variance of each feature's own term."""
        weight = np.array(self.relevance) ** CONTRASTS[self.contrast]
        return np.asarray(np.clip(STRENGTHS[self.strength] * weight / weight.sum(), 1e-6, 0.98))

    def covariance(self, x: Floats, y: Floats) -> Floats:
        """Of answers with answers."""
        r = self.r
        constant = 0.5 * np.log1p(-r * r).sum()
        exponent = (x * np.arctanh(r)) @ y.T
        odd = (np.exp(constant + exponent) - np.exp(constant - exponent)) / 2
        return np.asarray(odd + LINEARS[self.linear] * (x * r) @ y.T)

    def covariance_of_answers(self, x: Floats) -> Floats:
        """The same with the noise; the first answer, of the whole input, has none."""
        k = self.covariance(x, x)
        noise = NOISES[self.noise] * np.diag(k)
        noise[0] = NOISES[0] * k[0, 0]
        k[np.diag_indices_from(k)] += noise
        return k

    def covariance_with_values(self, x: Floats) -> Floats:
        """Of answers with Shapley values (answers, features)."""
        r = self.r
        found = LINEARS[self.linear] * 2 * r * x
        for node, weight in zip(_NODES, _WEIGHTS, strict=True):
            found += 2 * weight * r * x * _even_without(node * r * x)
        return found

    def variance_of_values(self) -> Floats:
        """Of each Shapley value."""
        r = self.r
        found = LINEARS[self.linear] * 4 * r
        for (s, w), (t, u) in product(zip(_NODES, _WEIGHTS, strict=True), repeat=2):
            found += 4 * w * u * r * _even_without(s * t * r[None])[0]
        return found


def _even_without(terms: Floats) -> Floats:
    """The part of even order of ∏(1 + term), over all columns but one, for each column."""
    plus, minus = np.log1p(terms), np.log1p(-terms)
    both = np.exp(plus.sum(1, keepdims=True) - plus) + np.exp(minus.sum(1, keepdims=True) - minus)
    return np.asarray(both / 2)


@dataclass(frozen=True, eq=False)
class Posterior:
    """What answers tell: Shapley values and their standard errors (features, columns)."""

    values: Floats
    standard_errors: Floats


def infer(masks: Masks, odd: Floats, rng: np.random.Generator) -> Posterior:
    """Shapley values from the odd part (masks, columns) of a game; the first mask keeps everything."""
    x: Floats = np.where(masks, 1.0, -1.0)
    some = _some(len(x), rng)
    prior, evidence = _best(Prior((1.0,) * x.shape[1]), x[some], odd[some])
    for _ in range(2):
        relevance = _relevance(_posterior(prior, x[some], odd[some]).values)
        start = replace(prior, relevance=relevance, contrast=2)
        other, its_evidence = _best(start, x[some], odd[some])
        if its_evidence <= evidence:
            break
        prior, evidence = other, its_evidence
    return _posterior(prior, x, odd)


def _posterior(prior: Prior, x: Floats, odd: Floats) -> Posterior:
    """The mean of the Shapley values given the answers, and the root of what is left of their variance."""
    root = _root(prior.covariance_of_answers(x))
    half = _forward(root, np.concatenate([prior.covariance_with_values(x), odd], axis=1))
    lever, rest = half[:, : x.shape[1]], half[:, x.shape[1] :]
    left = np.maximum(0.0, prior.variance_of_values() - (lever**2).sum(axis=0))
    free = max(1, len(x) - x.shape[1])
    scale = (rest**2).sum(axis=0) / free
    values = lever.T @ rest
    values += (2 * odd[0] - values.sum(axis=0)) / len(values)  # they sum to the gain, to rounding
    return Posterior(values, np.sqrt(left[:, None] * scale))


def _some(n: int, rng: np.random.Generator) -> Ints:
    """The first answer, and others at random."""
    if n <= SEARCHED:
        return np.arange(n)
    return np.concatenate([[0], np.sort(1 + rng.permutation(n - 1)[: SEARCHED - 1])])


def _best(prior: Prior, x: Floats, odd: Floats) -> tuple[Prior, float]:
    """The prior of the largest evidence, found step by step."""
    known: dict[Prior, float] = {}

    def evidence(one: Prior) -> float:
        if one not in known:
            known[one] = _evidence(one, x, odd)
        return known[one]

    while True:
        better = next((one for one in prior.neighbours() if evidence(one) > evidence(prior)), None)
        if better is None:
            return prior, evidence(prior)
        prior = better


def _evidence(prior: Prior, x: Floats, odd: Floats) -> float:
    """The logarithm of the marginal likelihood, the scale of each column at its best."""
    try:
        root = _root(prior.covariance_of_answers(x))
    except np.linalg.LinAlgError:
        return -np.inf
    explained = (_forward(root, odd) ** 2).sum(axis=0)
    n, columns = odd.shape
    return float(-n / 2 * np.log(explained + 1e-300).sum() - columns * np.log(root.diagonal()).sum())


def _relevance(values: Floats) -> tuple[float, ...]:
    """How large the value of a feature is, over all columns; never nothing."""
    size = (values**2).sum(axis=1)
    return tuple(np.sqrt(size + 1e-3 * size.mean() + 1e-300).tolist())


def _root(covariance: Floats) -> Floats:
    """The lower triangular Cholesky factor."""
    return np.asarray(np.linalg.cholesky(np.asarray(covariance, dtype=np.float64)))


def _forward(root: Floats, right: Floats) -> Floats:
    """root⁻¹ right for a lower triangular root, block by block."""
    found = np.array(right, dtype=np.float64)
    for first in range(0, len(root), _BLOCK):
        block = slice(first, first + _BLOCK)
        found[block] -= root[block, :first] @ found[:first]
        found[block] = np.linalg.solve(root[block, block], found[block])
    return found
