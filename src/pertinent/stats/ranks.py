"""Spearman's rank correlation of rows of numbers."""

from __future__ import annotations

import numpy as np

from pertinent.array_types import Floats


def average_ranks(values: Floats) -> Floats:
    """Return the rank of each value, starting at 1 for the smallest; ties share their mean rank.

    >>> average_ranks(np.array([0.2, 0.5, 0.2, 0.1]))
    array([2.5, 4. , 2.5, 1. ])
    """
    _, group, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[group])


def spearman(rows: Floats) -> Floats:
    """Return Spearman's correlation of each pair of rows (rows, rows); NaN for constant rows."""
    ranks = np.stack([average_ranks(row) for row in rows])
    centred = ranks - ranks.mean(axis=1, keepdims=True)
    squares = (centred**2).sum(axis=1)
    lengths = np.sqrt(np.outer(squares, squares))
    return np.asarray(
        np.divide(centred @ centred.T, lengths, out=np.full_like(lengths, np.nan), where=lengths > 0)
    )
