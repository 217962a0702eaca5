r"""Interaction indices as weights of sets, for single features, pairs and triples.

With :math:`x_j = \pm 1` for features in and out, a game is a sum over sets, :math:`v(x) = \sum_T a_T \prod_{j
\in T} x_j`. The second difference of v at a set S that contains neither i nor j is :math:`4 \sum_{T \supseteq
\{i, j\}} a_T \prod_{k \in T \setminus \{i, j\}} x_k`. Every index here is its mean over sets S that contain
each other feature with probability p, for random p. With u = 2p − 1 the product becomes :math:`u^{|T| - 2}`:

.. math:: I_{ij} = \sum_{T \supseteq \{i, j\}} a_T \int u^{|T| - 2} d\mu(u), \qquad
    I_i = \sum_{T \ni i} a_T \int u^{|T| - 1} d\nu(u) .

p is uniform for the Shapley interaction index, 1/2 for the Banzhaf interaction index, Beta(1, 2) for the
Shapley–Taylor index and Beta(2, 2) for Faith-Shap. The single-feature values of k-SII, Shapley–Taylor and
Faith-Shap are the Shapley value minus half of the values of the feature's pairs. All values then sum to
:math:`v(N) - v(\emptyset)`.

The same holds for triples and the third difference. In k-SII, half of the values of its triples is subtracted
from each pair, and a sixth is added to each feature, which is :math:`\tfrac23 (|T| - 1)` for a set T: the
derivative of :math:`u^{|T| - 1}` at 1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal, TypeAlias

import numpy as np

from pertinent.array_types import Floats, Ints
from pertinent.masks import all_coalitions

IndexName: TypeAlias = Literal["k-sii", "sii", "stii", "faith-shap", "banzhaf"]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)
_NODES, _WEIGHTS = (_NODES + 1) / 2, _WEIGHTS / 2
_ZERO, _ONE, _UNIT = np.zeros(1), np.ones(1), np.ones(1)


@dataclass(frozen=True, eq=False)
class WeightedSum:
    """A weighted sum over points u in [−1, 1]; zero if there are no points."""

    nodes: Floats
    weights: Floats

    @classmethod
    def even(cls, nodes: Floats, weights: Floats) -> WeightedSum:
        """Return the measure on [−1, 1] with zero odd moments and the same even moments as on [0, 1]."""
        return cls(np.append(nodes, -nodes), np.append(weights, weights) / 2)

    @classmethod
    def odd(cls, nodes: Floats, weights: Floats) -> WeightedSum:
        """Return the measure on [−1, 1] with zero even moments and the same odd moments as on [0, 1]."""
        return cls(np.append(nodes, -nodes), np.append(weights, -weights) / 2)

    def moments(self, n: int) -> Floats:
        """Return the integrals of u⁰ … uⁿ⁻¹."""
        return np.asarray(self.weights @ self.nodes[:, None] ** np.arange(n))

    def squared(self) -> WeightedSum:
        """Return the measure whose moments are the squares of this measure's moments."""
        return WeightedSum(
            np.outer(self.nodes, self.nodes).ravel(), np.outer(self.weights, self.weights).ravel()
        )


NOTHING = WeightedSum(np.empty(0), np.empty(0))


@dataclass(frozen=True, eq=False)
class Index:
    """The weights of odd- and even-sized sets in the values of single features, pairs and triples.

    `singles_odd`, `pairs_odd` and `triples_odd` are the weights of odd-sized sets. Even-sized sets have no
    weight in the triples of these indices.
    """

    singles_odd: WeightedSum
    singles_even: WeightedSum
    pairs_odd: WeightedSum
    pairs_even: WeightedSum
    triples_odd: WeightedSum = NOTHING


_SHAPLEY = WeightedSum.even(_NODES, 2 * _WEIGHTS)  # 2 / |T|
_SHAPLEY_PAIRS = WeightedSum.even(_NODES, 4 * _WEIGHTS)  # 4 / (|T| − 1)

INDICES: dict[str, Index] = {
    "k-sii": Index(_SHAPLEY, WeightedSum.odd(_ONE, -2 * _UNIT), NOTHING, _SHAPLEY_PAIRS),
    "sii": Index(_SHAPLEY, NOTHING, NOTHING, _SHAPLEY_PAIRS),
    "stii": Index(
        WeightedSum.even(_ONE, 2 * _UNIT),
        WeightedSum.odd(_ONE, -2 * _UNIT),
        WeightedSum.odd(_NODES, -4 * _NODES * _WEIGHTS),  # −4 / |T|
        _SHAPLEY_PAIRS,
    ),
    "faith-shap": Index(
        _SHAPLEY,
        WeightedSum.odd(_NODES, -6 * _NODES * _WEIGHTS),  # −6 / (|T| + 1)
        NOTHING,
        WeightedSum.even(_NODES, 6 * (1 - _NODES**2) * _WEIGHTS),  # 12 / ((|T| − 1)(|T| + 1))
    ),
    "banzhaf": Index(
        WeightedSum.even(_ZERO, 2 * _UNIT), NOTHING, NOTHING, WeightedSum.even(_ZERO, 4 * _UNIT)
    ),
}

MOST_OF_THREE = 30
"""Largest number of features for which triples are valued."""


def _slope_at_one(degree: int) -> WeightedSum:
    """Return the measure for the derivative at 1 of even polynomials up to a degree; 0 for odd ones."""
    k = np.arange(degree + 1)
    nodes, weights = np.cos(np.pi * k / degree), np.empty(degree + 1)
    weights[0] = (2 * degree**2 + 1) / 6
    weights[1:] = 2 * (-1.0) ** k[1:] / (1 - nodes[1:])
    weights[-1] /= 2
    return WeightedSum.even(nodes, weights)  # Chebyshev points


def _sum(one: WeightedSum, other: WeightedSum) -> WeightedSum:
    return WeightedSum(np.append(one.nodes, other.nodes), np.append(one.weights, other.weights))


_SLOPE = _slope_at_one(MOST_OF_THREE)
_SHAPLEY_TRIPLES = WeightedSum.even(_NODES, 8 * _WEIGHTS)  # 8 / (|T| − 2)

INDICES_OF_THREE: dict[str, Index] = {
    "sii": replace(INDICES["sii"], triples_odd=_SHAPLEY_TRIPLES),
    "k-sii": Index(
        _sum(_SHAPLEY, WeightedSum(_SLOPE.nodes, _SLOPE.weights * 2 / 3)),
        INDICES["k-sii"].singles_even,
        WeightedSum.odd(_ONE, -4 * _UNIT),
        _SHAPLEY_PAIRS,
        _SHAPLEY_TRIPLES,
    ),
    "banzhaf": replace(INDICES["banzhaf"], triples_odd=WeightedSum.even(_ZERO, 8 * _UNIT)),
}


def largest_values(index: IndexName, order: int, d: int) -> tuple[float, float, float]:
    """Return upper bounds on the values of features, pairs and triples, in units of the game's range.

    Differences of order 1, 2 and 3 are at most 1, 2 and 4 times the range, and so are their means. In k-SII
    and Faith-Shap, half of the values of its pairs is subtracted from each feature. With triples, k-SII
    subtracts half of them from pairs and adds a sixth to features.
    """
    single, pair, triple = 1.0, 2.0, 4.0
    if index in ("k-sii", "faith-shap"):
        single += (d - 1) / 2 * pair
    if index == "k-sii" and order == 3:
        single += (d - 1) * (d - 2) / 2 * triple / 6
        pair += (d - 2) / 2 * triple
    return single, pair, triple


def exact_singles(index: Index, values: Floats) -> Floats:
    """Return an index's feature values (features, columns) from all masks in binary order."""
    members, weights = _sets(values, least=1)
    moments = index.singles_odd.moments(members.shape[1]) + index.singles_even.moments(members.shape[1])
    return np.asarray(members.T @ (moments[members.sum(axis=1).astype(int) - 1][:, None] * weights))


def exact_pairs(index: Index, values: Floats) -> Floats:
    """Return an index's pair values (features, features, columns) from all masks in binary order."""
    members, weights = _sets(values, least=2)
    d = members.shape[1]
    moments = index.pairs_odd.moments(d) + index.pairs_even.moments(d)
    weights = moments[members.sum(axis=1).astype(int) - 2][:, None] * weights
    pairs = np.stack([members.T @ (members * column[:, None]) for column in weights.T], axis=-1)
    pairs[np.diag_indices(d)] = 0.0
    return pairs


def exact_triples(index: Index, values: Floats) -> Floats:
    """Return an index's triple values (triples, columns) from all masks in binary order."""
    members, weights = _sets(values, least=3)
    moments = index.triples_odd.moments(members.shape[1])
    weights = moments[members.sum(axis=1).astype(int) - 3][:, None] * weights
    triples = [members[:, triple].prod(axis=1) @ weights for triple in triples_of(members.shape[1])]
    return np.array(triples).reshape(-1, values.shape[1])


def triples_of(d: int) -> Ints:
    """Return all triples of d features (triples, 3)."""
    return np.array(list(combinations(range(d), 3)), dtype=np.int64).reshape(-1, 3)


def _sets(values: Floats, least: int) -> tuple[Floats, Floats]:
    """Return the members (sets, features) of all sets with at least `least` features, and the set weights."""
    masks = all_coalitions(len(values).bit_length() - 1)
    large = masks.sum(axis=1) >= least
    return masks[large].astype(np.float64), set_weights(values)[large]


def set_weights(values: Floats) -> Floats:
    """Return the :math:`a_T` of every set, in binary order, from the values of every mask (masks, …).

    >>> set_weights(np.array([1.0, 3.0, 1.0, 7.0]))
    array([3., 2., 1., 1.])
    """
    weights = np.array(values, dtype=np.float64)
    for bit in range(len(values).bit_length() - 1):
        halves = weights.reshape(-1, 2, 1 << bit, *values.shape[1:])
        without, including = halves[:, 0].copy(), halves[:, 1].copy()
        halves[:, 0], halves[:, 1] = (without + including) / 2, (including - without) / 2
    return weights
