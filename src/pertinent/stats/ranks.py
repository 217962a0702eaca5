"""Spearman's rank correlation of rows of numbers."""

from __future__ import annotations

import numpy as np

from pertinent.array_types import Floats


def average_ranks(values: Floats) -> Floats:
    """The rank of each value from 1, the smallest first; equal values share the mean of their ranks.

    >>> average_ranks(np.array([0.2, 0.5, 0.2, 0.1]))
    array([2.5, 4. , 2.5, 1. ])
    """
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[place])


def spearman(rows: Floats) -> Floats:
    """Spearman's correlation of every row with every other (rows, rows); NaN for a constant row."""
    ranks = np.stack([average_ranks(row) for row in rows])
    centred = ranks - ranks.mean(axis=1, keepdims=True)
    squares = (centred**2).sum(axis=1)
    lengths = np.sqrt(np.outer(squares, squares))
    return np.asarray(
        np.divide(centred @ centred.T, lengths, out=np.full_like(lengths, np.nan), where=lengths > 0)
    )
