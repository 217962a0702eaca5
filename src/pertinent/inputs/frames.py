"""Data frames: their values as an array, and rows as a frame again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pertinent._optional import optional
from pertinent.array_types import Array
from pertinent.digests import digest
from pertinent.errors import InputError
from pertinent.inputs.rows import NUMBERS, match_columns, row_values


def is_frame(thing: Any) -> bool:
    """Whether it is a pandas frame."""
    return hasattr(thing, "iterrows") and hasattr(thing, "dtypes")


def frame_values(frame: Any) -> Array:
    """An array (rows, columns) of numbers if all are, else of objects; a missing value is NaN."""
    if not frame.size:
        return np.empty(frame.shape)
    names = [str(label) for label in frame.columns]
    empty = frame.isna().to_numpy()
    if all(dtype.kind in NUMBERS for dtype in frame.dtypes):
        dtypes = [getattr(dtype, "numpy_dtype", dtype) for dtype in frame.dtypes]
        if not empty.any():
            return row_values(frame.to_numpy(dtype=np.result_type(*dtypes)), names)
        return row_values(frame.to_numpy(dtype=np.result_type(*dtypes, np.float16), na_value=np.nan), names)
    values = frame.astype(object).to_numpy(copy=True)
    values[empty] = np.nan
    return np.stack([row_values(row, names).astype(object) for row in values])


def select_columns(frame: Any, names: Sequence[str]) -> tuple[Any, list[str]]:
    """The columns of a frame in the order of `names`, and the names of those that are left out."""
    given = [str(label) for label in frame.columns]
    places = match_columns(given, names, "background")
    chosen = [given.index(places[name]) for name in names]
    return frame.iloc[:, chosen], [name for i, name in enumerate(given) if i not in chosen]


@dataclass(frozen=True)
class Frame:
    """A data frame without its rows: the labels of its columns and, where they are known, their dtypes."""

    labels: tuple[Any, ...]
    dtypes: tuple[Any, ...] = ()

    @classmethod
    def like(cls, frame: Any) -> Frame:
        """The labels and dtypes of a frame."""
        return cls(tuple(frame.columns), tuple(frame.dtypes))

    @cached_property
    def fingerprint(self) -> bytes:
        """A digest of the labels and dtypes."""
        categories = [[str(c) for c in getattr(dtype, "categories", ())] for dtype in self.dtypes]
        return digest([str(label) for label in self.labels], [str(d) for d in self.dtypes], categories)

    def of(self, rows: Array) -> Any:
        """A frame of these rows. A column gets its dtype if that changes no value, else it stays as it is."""
        pandas = optional("pandas")
        if all(dtype == rows.dtype for dtype in self.dtypes):
            frame = pandas.DataFrame(rows, columns=list(self.labels))
            return frame if self.dtypes else frame.infer_objects()
        columns = {
            place: _with_dtype(pandas.Series(rows[:, place]), dtype, self.labels[place])
            for place, dtype in enumerate(self.dtypes)
        }
        frame = pandas.DataFrame(columns)
        frame.columns = list(self.labels)
        return frame


def _with_dtype(column: Any, dtype: Any, label: Any) -> Any:
    if hasattr(dtype, "categories"):
        return _categorical(column, dtype, label)
    column = column.infer_objects()
    try:
        converted = column.astype(dtype)
        there = column.notna()
        same = converted.notna().equals(there) and (converted[there] == column[there]).all()
    except (TypeError, ValueError):
        return column
    rounded = dtype.kind == "f" and column.dtype.kind in NUMBERS
    read = dtype.kind in "mM" and column.dtype.kind == "O"  # a date that was saved as text
    return converted if same or rounded or read else column


def _categorical(column: Any, dtype: Any, label: Any) -> Any:
    """A column with its categories; an `InputError` for an unknown value, which pandas would make NaN."""
    codes = dtype.categories.get_indexer(column)
    unknown = column[(codes < 0) & column.notna().to_numpy()]
    if len(unknown):
        known = ", ".join(map(str, dtype.categories[:10])) + (", …" if len(dtype.categories) > 10 else "")
        raise InputError(
            f"The column {str(label)!r} cannot hold {unknown.iloc[0]!r}: its categories are {known}."
        )
    categorical = optional("pandas").Categorical
    return optional("pandas").Series(categorical.from_codes(codes, dtype=dtype), index=column.index)
