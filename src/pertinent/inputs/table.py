"""Rows of a table, cut into columns or groups of columns."""

from __future__ import annotations

import numbers
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np

from pertinent.array_types import Array, Ints
from pertinent.digests import digest
from pertinent.errors import InputError, unknown
from pertinent.inputs.base import Input
from pertinent.inputs.frames import frame_values, is_frame
from pertinent.inputs.rows import NUMBERS, as_row, missing, row_values


@dataclass(frozen=True)
class Columns:
    """The columns of a table: their names, and which of them form one feature.

    `groups` maps the name of a feature to its columns, such as the one-hot columns of one
    category: ``{"colour": ["colour_red", "colour_blue"]}``.
    """

    names: tuple[str, ...]
    groups: Mapping[str, Sequence[str]] | None = None

    def features(self) -> dict[str, tuple[int, ...]]:
        """Feature name to column numbers, in the order of the table."""
        place = {name: i for i, name in enumerate(self.names)}
        if len(place) < len(self.names):
            twice = sorted({name for name in self.names if self.names.count(name) > 1})
            raise InputError(f"Column names must differ, but these occur twice: {', '.join(twice)}.")
        grouped: dict[str, str] = {}
        for group, members in (self.groups or {}).items():
            if not members:
                raise InputError(f"The group {group!r} has no columns.")
            for member in members:
                if member not in place:
                    raise unknown("column", member, self.names)
                if member in grouped:
                    raise InputError(f"Column {member!r} is in two groups.")
                grouped[member] = group
        for group, members in (self.groups or {}).items():
            if group in place and group not in members:
                raise InputError(
                    f"The group {group!r} has the name of a column that is not in it: rename it."
                )
        features: dict[str, tuple[int, ...]] = {}
        for name in self.names:
            feature = grouped.get(name, name)
            features[feature] = (*features.get(feature, ()), place[name])
        return features


class Background:
    """Rows of data from which removed columns are filled; a missing value is NaN.

    >>> Background([[1.0, 2.0], [3.0, 6.0]]).centre("mean")
    array([2., 4.])
    """

    def __init__(self, rows: Any) -> None:
        self.values = frame_values(rows) if is_frame(rows) else _stacked(rows)
        if self.values.ndim != 2 or not self.values.size:
            raise InputError(f"The background must be rows × columns, but has shape {self.values.shape}.")
        self._centres: dict[str, Array] = {}

    @cached_property
    def fingerprint(self) -> bytes:
        """A digest of all values."""
        return digest(self.values)

    def check_width(self, n_columns: int, of: str) -> None:
        """Raise an `InputError` unless it has as many columns as the table or the row."""
        if self.values.shape[1] != n_columns:
            raise InputError(
                f"The background has {self.values.shape[1]} columns, but the {of} has {n_columns}."
            )

    def centre(self, statistic: Literal["mean", "median"]) -> Array:
        """The mean or median of each column, the most frequent value if it is categorical; NaN if empty."""
        if statistic not in self._centres:
            centres = [_centre(column[~missing(column)], statistic) for column in self.values.T]
            averaged = statistic == "mean" and self.values.dtype.kind in "biu"
            self._centres[statistic] = np.array(centres, np.float64 if averaged else self.values.dtype)
        return self._centres[statistic]

    def range(self) -> tuple[Array, Array]:
        """The smallest and largest value of each column of numbers; NaN where it has none."""
        values = self.values.astype(np.float64)
        return np.fmin.reduce(values, axis=0), np.fmax.reduce(values, axis=0)


def _stacked(rows: Any) -> Array:
    """Rows that are not a data frame, as one array."""
    if hasattr(rows, "detach"):
        rows = rows.detach().cpu().numpy()
    if isinstance(rows, np.ndarray) and rows.dtype.kind in NUMBERS:
        return row_values(rows, ())
    if not isinstance(rows, Iterable) or isinstance(rows, str | bytes | Mapping):
        raise InputError(f"The background must be rows × columns, but got {type(rows).__name__}.")
    names = None
    found: list[Array] = []
    for row in rows:
        try:
            values, own = as_row(row, names)
        except InputError as error:
            raise InputError(
                f"The background must be rows × columns, but its row {len(found)} is none: {error}"
            ) from error
        names = names or own
        found.append(values)
    return np.stack(found) if found else np.empty((0, 0))


def _centre(values: Array, statistic: str) -> Any:
    """The mean or median of the values of a column that are there, or the most frequent."""
    if not len(values):
        return np.nan
    if not all(map(_is_number, values.tolist())):
        counts = Counter(values.tolist())
        return min(counts, key=lambda value: (-counts[value], str(value)))
    if statistic == "mean":
        return values.astype(np.float64).mean()
    return np.sort(values)[(len(values) - 1) // 2]


@dataclass(frozen=True, eq=False)
class TableInput(Input):
    """One row: its values, and the columns that each feature covers."""

    values: Array
    columns: tuple[tuple[int, ...], ...]
    names: tuple[str, ...]
    kind: ClassVar[str] = "table"

    @property
    def group(self) -> Hashable:
        """Rows with the same number of columns share batches, but not rows with categories and without."""
        return self.kind, len(self.values), self.values.dtype == object

    @cached_property
    def owners(self) -> Ints:
        """The feature that each column belongs to."""
        feature = np.empty(len(self.values), dtype=np.int64)
        for i, columns in enumerate(self.columns):
            feature[list(columns)] = i
        return feature

    def without_numbers(self) -> list[str]:
        """The names of the columns that hold something else than a number."""
        return [n for n, v in zip(self.names, self.values.tolist(), strict=True) if not _is_number(v)]

    def plain_values(self) -> list[Any]:
        """The values as numbers and texts; a date, or whatever else there is, as text."""
        return [v if isinstance(v, bool | int | float | str) else _show(v) for v in self.values.tolist()]

    def shown(self) -> tuple[str, ...]:
        """The value of each feature as a person would read it."""
        return tuple(
            _show(self.values[group[0]])
            if len(group) == 1
            else ", ".join(f"{self.names[c]}={_show(self.values[c])}" for c in group if self.values[c])
            or "none"
            for group in self.columns
        )


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real | Decimal)


def _show(value: Any) -> str:
    if isinstance(value, float | np.floating) and np.isnan(value):
        return "missing"
    return f"{value:.4g}" if isinstance(value, float | np.floating) else str(value)


def table_input(raw: Any, columns: Columns | None = None) -> TableInput:
    """Cut a row into its columns.

    >>> table_input({"age": 39, "job": "clerk"}).features
    ('age', 'job')
    """
    values, names = as_row(raw, columns.names if columns else None)
    features = (columns or Columns(names)).features()
    return TableInput(
        values if isinstance(raw, np.ndarray) else raw,
        tuple(features),
        "columns",
        (),
        digest(values, names, tuple(features.items())),
        values,
        tuple(features.values()),
        names,
    )
