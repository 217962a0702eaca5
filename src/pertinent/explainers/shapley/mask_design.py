"""Mask designs with maximally different masks, so that every answer adds information."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from pertinent.array_types import Floats, Ints, Masks
from pertinent.explainers.shapley.kernel_shap import all_pairs, n_pairs_of
from pertinent.masks import empty_mask, mask_bytes

LISTED = 1000
"""Largest number of masks of one size that are enumerated for drawing without replacement."""

CANDIDATES = 32
"""Number of candidates from which each mask is chosen; tripled in the first rounds."""

WORK = 2e9
"""Largest number of multiplications for comparing candidates; beyond it, fewer candidates are drawn."""


@lru_cache(maxsize=64)
def design(d: int, n_pairs: int, seed: int) -> Masks:
    """Return `spread_pairs` of d features without existing masks, cached for inputs of the same size."""
    masks = spread_pairs(empty_mask(d)[:0], n_pairs, np.random.default_rng(seed))
    masks.flags.writeable = False
    return masks


def spread_pairs(existing: Masks, n_pairs: int, rng: np.random.Generator) -> Masks:
    """Return new masks, up to a total of `n_pairs`; none is empty, full, or the complement of another.

    While there are fewer masks than features, each new mask is the random half that is farthest from the span
    of the existing ones, as ±1. After that, sizes are drawn in proportion to the square root of the Shapley
    kernel's weight, and each mask is the candidate of its size with the smallest sum of fourth powers of its
    cosines with the other masks.
    """
    d = existing.shape[1]
    x: Floats = np.ones((n_pairs + 1, d))  # the first is the full mask
    n = 1 + len(existing)
    x[1:n] = np.where(existing, 1, -1)
    basis = _orthogonal(x[: min(n, d)])
    few = int(np.clip(WORK / (d * n_pairs * max(n_pairs, d)), 1, CANDIDATES))
    candidates_of = _Candidates(existing, rng)
    for size in _sizes(existing, n_pairs, rng).tolist():
        if n < d:
            candidates = candidates_of.draw(size, 3 * few)
            similarity = ((candidates @ basis.T) ** 2).sum(axis=1)
        else:
            candidates = candidates_of.draw(size, few)
            squares = (candidates @ x[:n].T / d) ** 2
            similarity = np.einsum("ij,ij->i", squares, squares)
            similarity[squares.max(axis=1) > 1 - 1e-9] = np.inf
        best = int(similarity.argmin())
        if similarity[best] < np.inf:
            candidates_of.remove(size, best)
            x[n] = candidates[best]
            n += 1
            if n < d:
                basis = _orthogonal(x[n - 1 : n], basis)
    return np.asarray(x[1 + len(existing) : n] > 0)


def _orthogonal(rows: Floats, basis: Floats | None = None) -> Floats:
    """Return an orthonormal basis of the span of the rows and an existing basis (Gram–Schmidt)."""
    basis = np.empty((0, rows.shape[1])) if basis is None else basis
    for row in rows:
        remainder = row - (basis @ row) @ basis
        length = np.linalg.norm(remainder)
        if length > 1e-6:
            basis = np.concatenate([basis, remainder[None] / length])
    return basis


def _sizes(existing: Masks, n_pairs: int, rng: np.random.Generator) -> Ints:
    """Return the sizes of the new masks in random order, at most as many per size as there are masks."""
    d = existing.shape[1]
    sizes = np.arange(1, d // 2 + 1)
    possible = np.array([float(min(n_pairs_of(d, s), n_pairs)) for s in sizes.tolist()])
    weight = np.where(2 * sizes == d, 1, 2) / np.sqrt(sizes * (d - sizes))
    target = np.zeros(len(sizes))
    while (more := target < possible).any() and target.sum() < n_pairs - 1e-6:
        target[more] += weight[more] * (n_pairs - target.sum()) / weight[more].sum()
        target = np.minimum(target, possible)
    counts = np.diff(np.floor(np.cumsum(target) + rng.random()), prepend=0)
    present = _count_sizes(existing.sum(axis=1), d)
    first = _count_sizes(rng.binomial(d, 0.5, max(0, min(d - 1, n_pairs) - len(existing))), d)
    first = np.minimum(first, possible - present)
    second = np.maximum(0, counts - present - first)
    parts = [rng.permutation(np.repeat(sizes, n.astype(int))) for n in (first, second)]
    return np.concatenate(parts)[: n_pairs - len(existing)]


def _count_sizes(sizes: Ints, d: int) -> Floats:
    """Return the number of masks of each size from 1 to d / 2; larger masks count as their complements."""
    return np.bincount(np.clip(np.minimum(sizes, d - sizes), 1, None), minlength=d // 2 + 1)[1:].astype(float)


class _Candidates:
    """Candidate masks of one size, as ±1: unused masks of a list, or cyclic shifts of random orders."""

    def __init__(self, existing: Masks, rng: np.random.Generator) -> None:
        self.d, self.rng = existing.shape[1], rng
        self.existing = set(mask_bytes(existing ^ existing[:, :1]))  # equal for a mask and its complement
        self.lists: dict[int, Floats] = {}
        self.drawn: Ints = np.empty(0, dtype=int)
        self.shift = (np.arange(self.d) - np.arange(self.d)[:, None]) % self.d

    def draw(self, size: int, n: int) -> Floats:
        """Return at most n masks of this size."""
        if n_pairs_of(self.d, size) > LISTED:
            shuffles = [self.shift[:n][:, self.rng.permutation(self.d)] for _ in range(-(-n // self.d))]
            return np.where(np.concatenate(shuffles) < size, 1.0, -1.0)
        if size not in self.lists:
            masks = all_pairs(self.d, size)
            new = [key not in self.existing for key in mask_bytes(masks ^ masks[:, :1])]
            self.lists[size] = np.where(masks[new], 1.0, -1.0)
        self.drawn = self.rng.permutation(len(self.lists[size]))[:n]
        return self.lists[size][self.drawn]

    def remove(self, size: int, index: int) -> None:
        """Remove the mask at this index of the last draw."""
        if size in self.lists:
            self.lists[size] = np.delete(self.lists[size], self.drawn[index], axis=0)
