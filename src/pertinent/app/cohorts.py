"""Groups of inputs that the page compares: by class, by being right, by the ranges of a column."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pertinent.array_types import Array, Floats, Ints

MOST_GROUPS = 8
"""The most categories of a column."""


def numbers_of(values: Array) -> Floats | None:
    """The values as numbers; ``None`` if some are not, or are missing."""
    try:
        numbers: Floats = values.astype(np.float64)
    except (TypeError, ValueError):
        return None
    return numbers if np.isfinite(numbers).all() else None


def cohorts_of(values: Array, bins: int) -> list[tuple[str, Ints]]:
    """The name and the members of each of `bins` ranges of numbers, or of each of the common categories.

    >>> [(name, own.tolist()) for name, own in cohorts_of(np.array([1, 5, 2, 9]), 2)]
    [('1 to 2', [0, 2]), ('5 to 9', [1, 3])]
    """
    numbers = numbers_of(values)
    if numbers is None:
        names = [str(value) for value in values.tolist()]
        common = sorted(dict.fromkeys(names), key=lambda name: -names.count(name))[:MOST_GROUPS]
        return [(name, np.flatnonzero([own == name for own in names])) for name in common]
    edges = np.unique(np.quantile(numbers, np.linspace(0, 1, bins + 1)))
    places = np.clip(np.searchsorted(edges, numbers, side="right") - 1, 0, max(0, len(edges) - 2))
    found = []
    for place in np.unique(places).tolist():
        members = np.flatnonzero(places == place)
        low, high = numbers[members].min(), numbers[members].max()
        found.append((f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}", members))
    return found


def group_names(values: Sequence[object], bins: int = 2) -> list[str]:
    """The name of the cohort of each value; what is in none of them is among the ``others``."""
    names = ["others"] * len(values)
    for name, members in cohorts_of(np.array(values, dtype=object), bins):
        for place in members.tolist():
            names[place] = name
    return names
