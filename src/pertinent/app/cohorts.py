"""Cohorts of inputs: ranges of a numeric column, or its most frequent categories."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pertinent.array_types import Array, Floats, Ints

MAX_CATEGORIES = 8
"""Maximum number of categories that become cohorts."""


def as_numbers(values: Array) -> Floats | None:
    """Return the values as floats; ``None`` unless all of them are finite numbers."""
    try:
        numbers: Floats = values.astype(np.float64)
    except (TypeError, ValueError):
        return None
    return numbers if np.isfinite(numbers).all() else None


def split_cohorts(values: Array, bins: int) -> list[tuple[str, Ints]]:
    """Return the name and the members of each quantile range of numbers, or of each frequent category.

    >>> [(name, members.tolist()) for name, members in split_cohorts(np.array([1, 5, 2, 9]), 2)]
    [('1 to 2', [0, 2]), ('5 to 9', [1, 3])]
    """
    numbers = as_numbers(values)
    if numbers is None:
        texts = [str(value) for value in values.tolist()]
        frequent = sorted(dict.fromkeys(texts), key=lambda name: -texts.count(name))[:MAX_CATEGORIES]
        return [(name, np.flatnonzero([text == name for text in texts])) for name in frequent]
    edges = np.unique(np.quantile(numbers, np.linspace(0, 1, bins + 1)))
    bin_of = np.clip(np.searchsorted(edges, numbers, side="right") - 1, 0, max(0, len(edges) - 2))
    cohorts = []
    for index in np.unique(bin_of).tolist():
        members = np.flatnonzero(bin_of == index)
        low, high = numbers[members].min(), numbers[members].max()
        cohorts.append((f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}", members))
    return cohorts


def name_cohorts(values: Sequence[object], bins: int = 2) -> list[str]:
    """Return the name of each value's cohort, ``"others"`` for values outside all cohorts."""
    names = ["others"] * len(values)
    for name, members in split_cohorts(np.array(values, dtype=object), bins):
        for index in members.tolist():
            names[index] = name
    return names
