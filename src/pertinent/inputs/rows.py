"""The values of a table row, whatever form it is given in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pertinent._optional import optional
from pertinent.array_types import Array, Masks
from pertinent.config.fingerprints import digest
from pertinent.errors import InputError

NUMBERS = "biuf"
"""The kinds of dtype that hold numbers."""


def as_row(raw: Any, names: Sequence[str] | None) -> tuple[Array, tuple[str, ...]]:
    """The values and column names of whatever the user gave: a sequence, a mapping or a pandas row.

    Values are matched with `names` where they are named, else taken in order. Columns that are not
    among `names` are left out.
    """
    named = _named(raw)
    if named is not None:
        names = tuple(named) if names is None else tuple(names)
        if _is_numbered(raw, names):
            raw = list(named.values())
        else:
            places = match_columns(named, names, "row")
            raw = [named[places[name]] for name in names]
    values = _sequence(raw)
    names = tuple(names) if names is not None else tuple(f"column {i}" for i in range(len(values)))
    if len(names) != len(values):
        raise InputError(f"The row has {len(values)} values, but the table has {len(names)} columns.")
    if not len(values):
        raise InputError("The row is empty: it must have at least one value.")
    return row_values(values, names), names


def is_row(thing: Any) -> bool:
    """Whether `thing` holds several values, so that it cannot be the value of one column."""
    return hasattr(thing, "__len__") and not isinstance(thing, str | bytes)


def row_values(values: Array | Sequence[Any], names: Sequence[str]) -> Array:
    """A new array of the values: of numbers if all are, else of objects; a missing value is NaN."""
    if isinstance(values, np.ndarray) and values.dtype.kind in NUMBERS:
        numbers = values.copy()
    else:
        plain = [_plain(value, name) for value, name in zip(values, names, strict=True)]
        numbers = np.array(plain)
        if numbers.dtype.kind not in NUMBERS:
            objects = np.empty(len(plain), dtype=object)
            objects[:] = plain
            return objects
    if numbers.dtype.kind == "f":
        numbers[np.isnan(numbers)] = np.nan  # all have the same bits, so that digests agree
    return numbers


def missing(values: Array) -> Masks:
    """Which values of an array are missing (NaN)."""
    return np.asarray(values != values, dtype=np.bool_)  # noqa: PLR0124  NaN


def match_columns(given: Iterable[str], names: Iterable[str], what: str) -> dict[str, str]:
    """Map each of `names` to the name that the user gave; lightgbm writes underscores in place of spaces."""
    given = list(given)
    found = {name.replace(" ", "_"): name for name in reversed(given)} | {name: name for name in given}
    lacking = [name for name in names if name not in found]
    if lacking:
        raise InputError(f"The {what} lacks the columns: {', '.join(lacking)}.")
    return {name: found[name] for name in names}


def extra_columns(raw: Any, names: Sequence[str]) -> list[str]:
    """The columns of a row that are not among `names`."""
    named = _named(raw)
    if named is None or _is_numbered(raw, names):
        return []
    known = set(match_columns(named, names, "row").values())
    return [name for name in named if name not in known]


def _named(raw: Any) -> dict[str, Any] | None:
    """The values of a mapping or a pandas row by name, ``None`` if it is neither."""
    if hasattr(raw, "iterrows"):
        raise InputError("A table row must be one row, but got a data frame: give the frame by itself.")
    if isinstance(raw, Mapping):
        names, values = [str(name) for name in raw], list(raw.values())
    elif hasattr(raw, "index") and hasattr(raw, "iloc"):
        names, values = [str(name) for name in raw.index], raw.tolist()
    else:
        return None
    twice = [name for name, n in Counter(names).items() if n > 1]
    if twice:
        raise InputError(f"Column names must differ, but these occur twice: {', '.join(twice)}.")
    return dict(zip(names, values, strict=True))


def _is_numbered(raw: Any, names: Sequence[str]) -> bool:
    """Whether a pandas row has numbers in place of column names, and as many as there are columns."""
    if isinstance(raw, Mapping) or len(raw) != len(names):
        return False
    return not any(isinstance(name, str) or str(name) in names for name in raw.index)


def _sequence(raw: Any) -> Array | list[Any]:
    """The values of a row that has no names."""
    if isinstance(raw, np.ma.MaskedArray):
        raw = raw.tolist()
    if isinstance(raw, Sequence) and not isinstance(raw, str | bytes | bytearray | memoryview):
        return list(raw)
    if hasattr(raw, "detach"):
        raw = raw.detach().cpu().numpy()
    if not hasattr(raw, "__array__") or isinstance(raw, np.generic):
        raise InputError(
            "A table row must be a list or an array of values, a mapping from columns to values or a "
            f"pandas row, but got {type(raw).__name__}."
        )
    values = np.asarray(raw)
    if values.ndim != 1:
        raise InputError(f"A table row must have one dimension, but has shape {values.shape}.")
    return values


def _plain(value: Any, name: str) -> Any:
    """A value as a Python object instead of a numpy one; NaN if it is missing."""
    if isinstance(value, np.datetime64 | np.timedelta64):
        value = value.astype(f"{value.dtype.kind}8[us]").item()  # of nanoseconds `item` makes a number
    elif isinstance(value, np.generic):
        value = value.item()
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return np.nan
    if isinstance(value, complex | bytes) or is_row(value):
        raise InputError(
            f"The column {name!r} must hold a number, a text or a date, but holds a {type(value).__name__}."
        )
    return value


def is_frame(thing: Any) -> bool:
    """Whether `thing` is a pandas frame."""
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
    def from_data_frame(cls, frame: Any) -> Frame:
        """The labels and dtypes of a frame."""
        return cls(tuple(frame.columns), tuple(frame.dtypes))

    @cached_property
    def fingerprint(self) -> bytes:
        """A digest of the labels and dtypes."""
        categories = [[str(c) for c in getattr(dtype, "categories", ())] for dtype in self.dtypes]
        return digest([str(label) for label in self.labels], [str(d) for d in self.dtypes], categories)

    def from_array(self, rows: Array) -> Any:
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
