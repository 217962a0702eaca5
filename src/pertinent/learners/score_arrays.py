"""Functions of arrays of scores (columns, features)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pertinent.array_types import Floats

SMALLEST_DEVIATION = 1e-9
"""Unit of the scores if all scores are zero, as for a constant model."""


def normalize_scores(scores: Floats, total: Floats) -> Floats:
    """Shift all scores (columns, features) of a column equally so that they sum to its total (columns,)."""
    return np.asarray(scores + ((total - scores.sum(axis=1)) / scores.shape[1])[:, None])


def squeeze_columns(rows: Floats) -> Floats:
    """Return scores (columns, features) in the shape of a finding: (features,) for a single column."""
    return rows[0] if len(rows) == 1 else rows


def root_mean_square(rows: Sequence[Floats]) -> Floats:
    """Return the root mean square (columns,) of each column, over several arrays (columns, any).

    It is never 0: a column of zeros gets the value of the largest column, or a tiny number if all are zero.
    """
    roots = np.sqrt((np.concatenate(rows, axis=1) ** 2).mean(axis=1))
    return np.where(roots > 0, roots, roots.max() or SMALLEST_DEVIATION)
