"""Rows of a table, cut into columns or groups of columns."""

from __future__ import annotations

import numbers
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np

from pertinent.digests import digest
from pertinent.errors import InputError, unknown
from pertinent.inputs.base import Input
from pertinent.types import Array, Ints


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
    """Rows of data from which removed columns are filled.

    >>> Background([[1.0, 2.0], [3.0, 6.0]]).centre("mean")
    array([2., 4.])
    """

    def __init__(self, rows: Any) -> None:
        values = np.asarray(rows.to_numpy() if hasattr(rows, "to_numpy") else rows)
        if values.dtype.kind in "US":
            values = np.array(rows, dtype=object)
        if values.ndim != 2 or not len(values):
            raise InputError(f"The background must be rows × columns, but has shape {values.shape}.")
        self.values = values if values.dtype.kind in "biuf" else values.astype(object)

    @cached_property
    def fingerprint(self) -> bytes:
        """A digest of all values."""
        return digest(self.values)

    def _numeric(self, column: int) -> bool:
        return all(isinstance(v, numbers.Number) for v in self.values[:, column])

    def centre(self, statistic: Literal["mean", "median"]) -> Array:
        """The mean or median of each column; the most frequent value if it is categorical."""
        if self.values.dtype != object and statistic == "mean":
            return np.asarray(self.values.mean(axis=0))
        middle = []
        for column in range(self.values.shape[1]):
            ordered = np.sort(self.values[:, column])
            if not self._numeric(column):
                kinds, counts = np.unique(ordered.astype(str), return_counts=True)
                middle.append(kinds[counts.argmax()])
            elif statistic == "mean":
                middle.append(ordered.astype(float).mean())
            else:
                middle.append(ordered[(len(ordered) - 1) // 2])
        return np.array(middle, dtype=self.values.dtype)

    def range(self) -> tuple[Array, Array]:
        """The smallest and largest value of each column."""
        return self.values.min(axis=0), self.values.max(axis=0)


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

    def shown(self) -> tuple[str, ...]:
        """The value of each feature as a person would read it."""
        return tuple(
            _show(self.values[group[0]])
            if len(group) == 1
            else ", ".join(f"{self.names[c]}={_show(self.values[c])}" for c in group if self.values[c])
            or "none"
            for group in self.columns
        )


def _show(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float | np.floating) else str(value)


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float | np.floating) and bool(np.isnan(value)))


def as_row(raw: Any, names: Sequence[str] | None) -> tuple[Array, tuple[str, ...]]:
    """The values and column names of whatever the user gave: a sequence, a mapping or a pandas row."""
    if hasattr(raw, "to_dict") and hasattr(raw, "index"):
        raw = raw.to_dict()
    if isinstance(raw, Mapping):
        names = tuple(raw) if names is None else tuple(names)
        missing = [name for name in names if name not in raw]
        extra = [str(name) for name in raw if name not in names]
        if missing:
            raise InputError(f"The row lacks the columns: {', '.join(map(str, missing))}.")
        if extra:
            raise InputError(f"The row has columns that the table does not have: {', '.join(extra)}.")
        raw = [raw[name] for name in names]
    if hasattr(raw, "detach"):
        raw = raw.detach().cpu().numpy()
    values = np.array(raw)  # a copy: a stream may hand out one buffer again and again
    if values.dtype.kind not in "biuf":
        values = np.array(list(raw), dtype=object)
    if values.ndim != 1:
        raise InputError(f"A table row must have one dimension, but has shape {values.shape}.")
    names = tuple(names) if names is not None else tuple(f"column {i}" for i in range(len(values)))
    if len(names) != len(values):
        raise InputError(f"The row has {len(values)} values, but the table has {len(names)} columns.")
    missing = [name for name, value in zip(names, values, strict=True) if _is_missing(value)]
    if missing:
        raise InputError(f"The row has no value (NaN) in: {', '.join(map(str, missing))}.")
    return values, tuple(map(str, names))


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
