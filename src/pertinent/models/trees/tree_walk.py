r"""Shapley values of a sum of trees, computed leaf by leaf.

For a row x, a background row z and a leaf, let B be the features whose conditions on the path to the leaf are
violated by x, and A those whose conditions are violated by z. The row with the features S of x and the other
features of z reaches the leaf iff :math:`A \subseteq S` and :math:`S \cap B = \emptyset`. The game of a leaf
with value v is thus :math:`v\,[A \subseteq S]\,[S \cap B = \emptyset]`, with the Shapley values (Lundberg et
al. 2020)

.. math:: \phi_i = v \frac{(|A|-1)!\,|B|!}{(|A|+|B|)!} \; (i \in A), \qquad
    \phi_i = -v \frac{|A|!\,(|B|-1)!}{(|A|+|B|)!} \; (i \in B), \qquad
    \phi_i = 0 \text{ otherwise, or if } A \cap B \ne \emptyset.

Leaves with few features on their path are not walked for each pair of rows: with n(A) the number of
background rows that violate A, :math:`N(S) = \sum_{A \subseteq S} n(A)` of them reach the leaf if S is kept,
and the values for every B follow from three sums over subsets of the k features on the path.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import lgamma
from typing import Any, NamedTuple

import numpy as np

from pertinent.array_types import Array, Floats, Ints, Masks
from pertinent.errors import ModelError
from pertinent.masks import subset_sums
from pertinent.models.trees.read_trees import LEAF, Forest, Tree

CHUNK = 2**22
"""Largest number of elements in a temporary array."""

MAX_PATH = 64
"""Largest number of features on the path to a leaf, because each needs a bit of an integer."""

_BITS: Sequence[tuple[type[np.unsignedinteger], int]] = (
    (np.uint8, 8),
    (np.uint16, 16),
    (np.uint32, 32),
    (np.uint64, 64),
)


class _Nodes(NamedTuple):
    """The nodes of all trees, concatenated; a node with categories has a row in `table`."""

    left: Ints
    right: Ints
    column: Ints
    threshold: Floats
    missing_left: Masks
    values: Floats
    roots: Ints
    table: Masks
    table_row: Ints


def _join(trees: Sequence[Tree]) -> _Nodes:
    sizes = [len(tree.left) for tree in trees]
    roots = np.cumsum([0, *sizes[:-1]])
    left, right, column, threshold, missing_left, values = (
        np.concatenate([getattr(tree, name) for tree in trees])
        for name in ("left", "right", "column", "threshold", "missing_left", "values")
    )
    first = np.repeat(roots, sizes)
    left, right = (np.where(child == LEAF, LEAF, child + first) for child in (left, right))
    categories = {
        node + root: members
        for tree, root in zip(trees, roots.tolist(), strict=True)
        for node, members in tree.categories.items()
    }
    width = 1 + max((max(members, default=-1) for members in categories.values()), default=-1)
    table = np.zeros((len(categories), width + 1), dtype=bool)  # the last column stays False
    for row, members in enumerate(categories.values()):
        table[row, list(members)] = True
    table_row = np.full(len(left), -1)
    table_row[list(categories)] = np.arange(len(categories))
    return _Nodes(left, right, column, threshold, missing_left, values, roots, table, table_row)


class _Level:
    """The inner nodes of one depth, with the slots and players whose columns they test."""

    def __init__(self, nodes: _Nodes, is_leaf: Masks, inner: Ints, slot: Ints, player: Ints) -> None:
        self.is_leaf, self.slot, self.player = is_leaf, slot, player
        self._column, self._threshold = nodes.column[inner], nodes.threshold[inner, None]
        self._missing_left = nodes.missing_left[inner, None]
        rows = nodes.table_row[inner]
        self._categorical, self._table = np.flatnonzero(rows >= 0), nodes.table[rows[rows >= 0]]

    def goes_left(self, columns: Floats) -> Masks:
        """Return whether each row of the columns (columns, rows) goes left at each node (nodes, rows)."""
        values = columns[self._column]
        left = values <= self._threshold
        if len(self._categorical):
            last, categories = self._table.shape[1] - 1, values[self._categorical]
            columns_of_table = np.where((categories >= 0) & (categories < last), categories, last).astype(
                np.int64
            )
            left[self._categorical] = np.take_along_axis(self._table, columns_of_table, axis=1)
        missing = np.isnan(values)
        return np.where(missing, self._missing_left, left) if missing.any() else left


class TreeWalk:
    """The leaves of a forest, ordered by the number of players on their path.

    Parameters
    ----------
    forest
        The trees.
    player_of
        Player (feature of the input) of each column.
    n_players
        Number of players.
    """

    def __init__(self, forest: Forest, player_of: Ints, n_players: int) -> None:
        self.n_players, self._offset, self._n_trees = n_players, forest.offset, len(forest.trees)
        nodes = _join(forest.trees)
        self._levels: list[_Level] = []
        at, slots = nodes.roots, np.full((self._n_trees, 0), -1)
        leaves, paths = [], []
        while len(at):
            is_leaf = nodes.left[at] == LEAF
            leaves.append(at[is_leaf])
            paths.append(slots[is_leaf])
            inner, player = at[~is_leaf], player_of[nodes.column[at[~is_leaf]]]
            slots = np.pad(slots[~is_leaf], ((0, 0), (0, 1)), constant_values=-1)
            is_used = slots == player[:, None]
            slot = np.where(is_used.any(axis=1), is_used.argmax(axis=1), (slots < 0).argmax(axis=1))
            slots[np.arange(len(inner)), slot] = player
            slots = slots[:, (slots >= 0).any(axis=0)]
            self._levels.append(_Level(nodes, is_leaf, inner, slot, player))
            at, slots = np.concatenate([nodes.left[inner], nodes.right[inner]]), np.tile(slots, (2, 1))
        width = max(path.shape[1] for path in paths)
        if width > MAX_PATH:
            raise ModelError(f"A path through the trees compares more than {MAX_PATH} features.")
        padded = [np.pad(path, ((0, 0), (0, width - path.shape[1])), constant_values=-1) for path in paths]
        unordered = np.concatenate(padded)
        counts = (unordered >= 0).sum(axis=1)
        order = np.argsort(counts, kind="stable")
        self.slots, self.counts = unordered[order], counts[order]
        self.values = nodes.values[np.concatenate(leaves)[order]]
        ends = np.cumsum([len(indices) for indices in leaves])
        self._numbers = np.split(np.argsort(order), ends[:-1])

    def violations(self, rows: Floats, *, by_player: bool = False) -> Array:
        """Return each leaf's violated conditions for each row (leaves, rows), as a bit per slot of the path.

        With `by_player`, each feature's bit is its index.
        """
        width = self.n_players if by_player else self.slots.shape[1]
        kind = next(dtype for dtype, bits in _BITS if bits >= width)
        violations = np.empty((len(self.slots), len(rows)), dtype=kind)
        step = max(1, CHUNK // max(1, *(len(level.slot) for level in self._levels)))
        for start in range(0, len(rows), step):
            columns = np.ascontiguousarray(rows[start : start + step].T)
            state = np.zeros((self._n_trees, columns.shape[1]), dtype=kind)
            for level, numbers in zip(self._levels, self._numbers, strict=True):
                violations[numbers, start : start + step] = state[level.is_leaf]
                left = level.goes_left(columns)
                bits = kind(1) << (level.player if by_player else level.slot).astype(kind)[:, None]
                state = state[~level.is_leaf]
                state = np.concatenate([state | bits * ~left, state | bits * left])
        return violations

    def sums(self, violations: Array) -> Floats:
        """Return the tree sums (rows, outputs) of rows with these violations."""
        total = np.zeros((violations.shape[1], self.values.shape[1])) + self._offset
        step = max(1, CHUNK // violations.shape[1])
        for start in range(0, len(violations), step):
            leaves = slice(start, start + step)
            total += (violations[leaves] == 0).T.astype(np.float64) @ self.values[leaves]
        return total

    def shapley_values(self, background: Array, rows: Array) -> Floats:
        """Return the Shapley values (rows, outputs, players), summed over the background rows.

        Both arguments are violations (leaves, …).
        """
        n = rows.shape[1]
        phi = np.zeros((self.n_players, n, self.values.shape[1]))
        ends = np.searchsorted(self.counts, np.arange(self.slots.shape[1] + 1), side="right")
        for k in range(1, len(ends)):
            # A table of k 2^k numbers takes about as long as half that many pairs of rows.
            by_table = k << k <= min(background.shape[1] * n // 2, CHUNK)
            weigh, size = (_by_table, max(n, k << k)) if by_table else (_by_pair, n * background.shape[1])
            step = max(1, CHUNK // size)
            for start in range(ends[k - 1], ends[k], step):
                leaves = slice(start, min(start + step, ends[k]))
                for slot, weights in enumerate(weigh(background[leaves], rows[leaves], k)):
                    self._add(phi, leaves, slot, weights)
        return phi.transpose(1, 2, 0)

    def _add(self, phi: Floats, leaves: slice, slot: int, weights: Floats) -> None:
        """Add the weights (leaves, rows) of the players in this slot, times the leaf values."""
        players, values = self.slots[leaves, slot], self.values[leaves]
        order = np.argsort(players, kind="stable")
        present, starts = np.unique(players[order], return_index=True)
        for player, indices in zip(present.tolist(), np.split(order, starts[1:]), strict=True):
            phi[player] += weights[indices].T @ values[indices]

    def all_sums(self, background: Array, row: Array) -> Floats:
        r"""Return the sums (masks, background rows, outputs) for every mask in binary order.

        Both arguments are violations by player. The indicator of a leaf is a polynomial in the bits of the
        mask, :math:`\prod_A s_i \prod_B (1 - s_i)`, whose monomials are collected and then summed.
        """
        n, size = background.shape[1], 2**self.n_players
        leaf, z = np.divmod(np.flatnonzero((background & row[:, None]) == 0), n)
        outside, sign = row[leaf], np.ones(len(leaf))
        cell = background[leaf, z].astype(np.int64) * n + z
        for player in range(self.n_players):
            negative = np.flatnonzero(outside >> player & 1)
            cell = np.concatenate([cell, cell[negative] + (n << player)])
            leaf, outside = (np.concatenate([array, array[negative]]) for array in (leaf, outside))
            sign = np.concatenate([sign, -sign[negative]])
        monomials: list[Any] = [np.bincount(cell, sign * values[leaf], n * size) for values in self.values.T]
        sums = subset_sums(np.stack(monomials, axis=1).reshape(size, -1))
        return sums.reshape(size, n, -1) + self._offset


def _by_table(background: Array, rows: Array, k: int) -> Iterator[Floats]:
    """Yield the weights (leaves, rows) of each slot, from a table over all sets of violated slots."""
    n, size = len(background), 2**k
    cells = np.arange(n)[:, None] * size
    counts = np.bincount((cells + background).ravel(), minlength=n * size).reshape(n, size)
    reached = subset_sums(counts.astype(np.float64).T)  # N(S)
    members = np.bitwise_count(np.arange(size)).astype(np.int64)
    weight = np.array([_factorials(s, k - s - 1) for s in range(k)])  # of a coalition of s other players
    # Sums over the subsets without a slot and with it, before and after it joins.
    before = subset_sums(reached * np.append(weight, 0)[members, None]).T
    after = subset_sums(reached * np.append(0, weight)[members, None]).T
    both = before + after
    kept = size - 1 - np.arange(size)
    for slot in range(k):
        has = (kept >> slot & 1).astype(bool)
        table = np.where(has, after[:, kept] - both[:, kept & ~(1 << slot)], -before[:, kept])
        yield table.ravel()[cells + rows]


def _by_pair(background: Array, rows: Array, k: int) -> Iterator[Floats]:
    """Yield the weights (leaves, rows) of each slot, from each pair of a background row and a row."""
    compatible = np.flatnonzero((background[:, None] & rows[:, :, None]) == 0)
    cell, z = np.divmod(compatible, background.shape[1])
    leaf, row = np.divmod(cell, rows.shape[1])
    a, b = background[leaf, z], rows[leaf, row]
    n_a, n_b = np.bitwise_count(a), np.bitwise_count(b)
    sizes = range(k + 1)
    gains = np.array([[_factorials(i - 1, j) if i else 0.0 for j in sizes] for i in sizes])[n_a, n_b]
    losses = np.array([[_factorials(i, j - 1) if j else 0.0 for j in sizes] for i in sizes])[n_a, n_b]
    for slot in range(k):
        bit = a.dtype.type(1 << slot)
        pair_weights = np.where(a & bit, gains, 0.0) - np.where(b & bit, losses, 0.0)
        weights: Any = np.bincount(cell, pair_weights, rows.size)
        yield weights.reshape(rows.shape)


def _factorials(a: int, b: int) -> float:
    """Return a! b! / (a + b + 1)!."""
    return float(np.exp(lgamma(a + 1) + lgamma(b + 1) - lgamma(a + b + 2)))
