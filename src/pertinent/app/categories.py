"""Categorical columns of a table: the values in the background, and values that it never has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches

from pertinent.inputs.background import Background
from pertinent.inputs.rows import missing
from pertinent.inputs.table import TableInput
from pertinent.printable import shorten

MOST_CATEGORIES = 200
"""A column of texts with more distinct values is not categorical: it may hold names or comments."""

_LONGEST = 60


def find_categories(background: Background, names: Sequence[str]) -> dict[str, list[str]]:
    """Return the sorted values of each column of texts in the background, by the name of the column."""
    categories = {}
    for name, column in zip(names, background.values.T, strict=True):
        values = set(column[~missing(column)].tolist())
        if values and len(values) <= MOST_CATEGORIES and all(isinstance(value, str) for value in values):
            categories[name] = sorted(values)
    return categories


def find_unknown_values(row: TableInput, categories: Mapping[str, Sequence[str]]) -> list[str]:
    """Return a note for each value that its column never has in the background, with the nearest values."""
    notes = []
    for name, value, is_missing in zip(row.names, row.values.tolist(), missing(row.values), strict=True):
        known = categories.get(name)
        if known is None or is_missing or value in known:
            continue
        nearest = get_close_matches(str(value)[:_LONGEST], known, n=3, cutoff=0.0)
        listed = ", ".join(shorten(repr(each), _LONGEST) for each in nearest)
        shown = shorten(repr(value), _LONGEST)
        notes.append(f"{name} is {shown}, which no row of the background has; the nearest values: {listed}")
    return notes
