"""Masks that differ from one another as much as possible, so that every answer adds information."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from pertinent.array_types import Floats, Ints, Masks
from pertinent.explainers.shapley.kernel_shap import all_pairs, n_pairs_of
from pertinent.masks import empty_mask, mask_bytes

LISTED = 1000
"""Largest number of masks of one size that are listed, to draw without replacement."""

CANDIDATES = 32
"""Number of candidates from which the best mask is taken; at first three times as many."""

WORK = 2e9
"""Largest number of multiplications for comparing candidates; beyond it there are fewer candidates."""


@lru_cache(maxsize=64)
def design(d: int, n_pairs: int, seed: int) -> Masks:
    """`spread_pairs` of d features with nothing known, made once for all inputs of the same size."""
    masks = spread_pairs(empty_mask(d)[:0], n_pairs, np.random.default_rng(seed))
    masks.flags.writeable = False
    return masks


def spread_pairs(known: Masks, n_pairs: int, rng: np.random.Generator) -> Masks:
    """New masks, to have `n_pairs` with the known ones; none is empty, full, or another's complement.

    While there are fewer masks than features, each is the one of several random halves that is farthest
    from the span of the others, as ±1. Then sizes are drawn with the square root of the Shapley kernel's
    weight, and each mask is the candidate of its size that is least similar to the others, by the sum of
    the fourth powers of its cosines with them.
    """
    d = known.shape[1]
    x: Floats = np.ones((n_pairs + 1, d))  # the first is the full mask
    n = 1 + len(known)
    x[1:n] = np.where(known, 1, -1)
    basis = _orthogonal(x[: min(n, d)])
    few = int(np.clip(WORK / (d * n_pairs * max(n_pairs, d)), 1, CANDIDATES))
    left = _Left(known, rng)
    for size in _sizes(known, n_pairs, rng).tolist():
        if n < d:
            candidates = left.some(size, 3 * few)
            likeness = ((candidates @ basis.T) ** 2).sum(axis=1)
        else:
            candidates = left.some(size, few)
            squares = (candidates @ x[:n].T / d) ** 2
            likeness = np.einsum("ij,ij->i", squares, squares)
            likeness[squares.max(axis=1) > 1 - 1e-9] = np.inf
        best = int(likeness.argmin())
        if likeness[best] < np.inf:
            left.take(size, best)
            x[n] = candidates[best]
            n += 1
            if n < d:
                basis = _orthogonal(x[n - 1 : n], basis)
    return np.asarray(x[1 + len(known) : n] > 0)


def _orthogonal(rows: Floats, basis: Floats | None = None) -> Floats:
    """An orthonormal basis of the span of the rows and of a basis (Gram & Schmidt)."""
    found = np.empty((0, rows.shape[1])) if basis is None else basis
    for row in rows:
        rest = row - (found @ row) @ found
        length = np.linalg.norm(rest)
        if length > 1e-6:
            found = np.concatenate([found, rest[None] / length])
    return found


def _sizes(known: Masks, n_pairs: int, rng: np.random.Generator) -> Ints:
    """The sizes of the new masks, in random order; never more of a size than there are masks of it."""
    d = known.shape[1]
    sizes = np.arange(1, d // 2 + 1)
    there = np.array([float(min(n_pairs_of(d, s), n_pairs)) for s in sizes.tolist()])
    weight = np.where(2 * sizes == d, 1, 2) / np.sqrt(sizes * (d - sizes))
    target = np.zeros(len(sizes))
    while (more := target < there).any() and target.sum() < n_pairs - 1e-6:
        target[more] += weight[more] * (n_pairs - target.sum()) / weight[more].sum()
        target = np.minimum(target, there)
    counts = np.diff(np.floor(np.cumsum(target) + rng.random()), prepend=0)
    have = _counted(known.sum(axis=1), d)
    first = _counted(rng.binomial(d, 0.5, max(0, min(d - 1, n_pairs) - len(known))), d)
    first = np.minimum(first, there - have)
    then = np.maximum(0, counts - have - first)
    found = [rng.permutation(np.repeat(sizes, some.astype(int))) for some in (first, then)]
    return np.concatenate(found)[: n_pairs - len(known)]


def _counted(sizes: Ints, d: int) -> Floats:
    """Number of masks of each size from 1 to d / 2; a larger mask has the size of its complement."""
    return np.bincount(np.clip(np.minimum(sizes, d - sizes), 1, None), minlength=d // 2 + 1)[1:].astype(float)


class _Left:
    """Candidates, as ±1, from the list of all masks left of a size, or by cyclic shifts of random orders."""

    def __init__(self, known: Masks, rng: np.random.Generator) -> None:
        self.d, self.rng = known.shape[1], rng
        self.known = set(mask_bytes(known ^ known[:, :1]))  # the same for a mask and its complement
        self.lists: dict[int, Floats] = {}
        self.drawn: Ints = np.empty(0, dtype=int)
        self.shift = (np.arange(self.d) - np.arange(self.d)[:, None]) % self.d

    def some(self, size: int, n: int) -> Floats:
        """At most n masks of this size."""
        if n_pairs_of(self.d, size) > LISTED:
            shuffles = [self.shift[:n][:, self.rng.permutation(self.d)] for _ in range(-(-n // self.d))]
            return np.where(np.concatenate(shuffles) < size, 1.0, -1.0)
        if size not in self.lists:
            masks = all_pairs(self.d, size)
            new = [key not in self.known for key in mask_bytes(masks ^ masks[:, :1])]
            self.lists[size] = np.where(masks[new], 1.0, -1.0)
        self.drawn = self.rng.permutation(len(self.lists[size]))[:n]
        return self.lists[size][self.drawn]

    def take(self, size: int, place: int) -> None:
        """Remove the mask at this place of the last draw."""
        if size in self.lists:
            self.lists[size] = np.delete(self.lists[size], self.drawn[place], axis=0)
