"""Values of a table row, read from a sequence, a mapping, an array or a pandas row."""

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
from pertinent.inputs.base import objects

NUMBERS = "biuf"
"""The kinds of dtype that hold numbers."""


def as_row(raw: Any, names: Sequence[str] | None) -> tuple[Array, tuple[str, ...]]:
    """Return the values and column names of a row: a sequence, a mapping or a pandas row.

    Named values are matched with `names`; others are read in order. Columns that are not in `names` are
    omitted.
    """
    by_name = _values_by_name(raw)
    if by_name is not None:
        names = tuple(by_name) if names is None else tuple(names)
        if _is_numbered(raw, names):
            raw = list(by_name.values())
        else:
            matched = match_columns(by_name, names, "row")
            raw = [by_name[matched[name]] for name in names]
    values = _sequence(raw)
    names = tuple(names) if names is not None else tuple(f"column {i}" for i in range(len(values)))
    if len(names) != len(values):
        raise InputError(f"The row has {len(values)} values, but the table has {len(names)} columns.")
    if not len(values):
        raise InputError("The row is empty: it must have at least one value.")
    return row_values(values, names), names


def is_row(thing: Any) -> bool:
    """Return whether `thing` holds several values, instead of being the value of one column."""
    return hasattr(thing, "__len__") and not isinstance(thing, str | bytes)


def row_values(values: Array | Sequence[Any], names: Sequence[str]) -> Array:
    """Return a new array of the values: numbers if all are, else objects; a missing value is NaN."""
    if isinstance(values, np.ndarray) and values.dtype.kind in NUMBERS:
        numbers = values.copy()
    else:
        plain = [_plain(value, name) for value, name in zip(values, names, strict=True)]
        numbers = np.array(plain)
        if numbers.dtype.kind not in NUMBERS:
            return objects(plain)
    if numbers.dtype.kind == "f":
        numbers[np.isnan(numbers)] = np.nan  # NaNs with the same bits have the same digest
    return numbers


def missing(values: Array) -> Masks:
    """Return which values of an array are missing (NaN)."""
    return np.asarray(values != values, dtype=np.bool_)  # noqa: PLR0124  NaN


def match_columns(columns: Iterable[str], names: Iterable[str], what: str) -> dict[str, str]:
    """Map each of `names` to one of `columns`; lightgbm replaces spaces in names by underscores."""
    columns = list(columns)
    spellings = {column.replace(" ", "_"): column for column in reversed(columns)}
    spellings |= {column: column for column in columns}
    lacking = [name for name in names if name not in spellings]
    if lacking:
        raise InputError(f"The {what} lacks the columns: {', '.join(lacking)}.")
    return {name: spellings[name] for name in names}


def extra_columns(raw: Any, names: Sequence[str]) -> list[str]:
    """Return the columns of a row that are not in `names`."""
    by_name = _values_by_name(raw)
    if by_name is None or _is_numbered(raw, names):
        return []
    matched = set(match_columns(by_name, names, "row").values())
    return [name for name in by_name if name not in matched]


def _values_by_name(raw: Any) -> dict[str, Any] | None:
    """Return the values of a mapping or a pandas row by name; ``None`` for other rows."""
    if hasattr(raw, "iterrows"):
        raise InputError("A table row must be one row, but got a data frame: pass the frame by itself.")
    if isinstance(raw, Mapping):
        names, values = [str(name) for name in raw], list(raw.values())
    elif hasattr(raw, "index") and hasattr(raw, "iloc"):
        names, values = [str(name) for name in raw.index], raw.tolist()
    else:
        return None
    check_different(names)
    return dict(zip(names, values, strict=True))


def check_different(names: Sequence[str]) -> None:
    """Raise an `InputError` for duplicate column names."""
    twice = [name for name, n in Counter(names).items() if n > 1]
    if twice:
        raise InputError(f"Column names must differ, but these occur twice: {', '.join(sorted(twice))}.")


def _is_numbered(raw: Any, names: Sequence[str]) -> bool:
    """Return whether a pandas row has numbers as column names, and as many values as there are `names`."""
    if isinstance(raw, Mapping) or len(raw) != len(names):
        return False
    return not any(isinstance(name, str) or str(name) in names for name in raw.index)


def _sequence(raw: Any) -> Array | list[Any]:
    """Return the values of a row without names."""
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
    """Return a value as a Python object; NaN if it is missing."""
    if isinstance(value, np.datetime64 | np.timedelta64):
        value = value.astype(f"{value.dtype.kind}8[us]").item()  # nanoseconds would become a number
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
    """Return whether `thing` is a pandas frame."""
    return hasattr(thing, "iterrows") and hasattr(thing, "dtypes")


def frame_values(frame: Any) -> Array:
    """Return an array (rows, columns): numbers if all are, else objects; a missing value is NaN."""
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
    """Return the columns of a frame in the order of `names`, and the names of the other columns."""
    labels = [str(label) for label in frame.columns]
    matched = match_columns(labels, names, "background")
    chosen = [labels.index(matched[name]) for name in names]
    return frame.iloc[:, chosen], [label for i, label in enumerate(labels) if i not in chosen]


@dataclass(frozen=True)
class Frame:
    """Labels and, if known, dtypes of the columns of a data frame."""

    labels: tuple[Any, ...]
    dtypes: tuple[Any, ...] = ()

    @classmethod
    def from_data_frame(cls, frame: Any) -> Frame:
        """Return the labels and dtypes of a frame."""
        return cls(tuple(frame.columns), tuple(frame.dtypes))

    @cached_property
    def fingerprint(self) -> bytes:
        """Return a digest of the labels and dtypes."""
        categories = [[str(c) for c in getattr(dtype, "categories", ())] for dtype in self.dtypes]
        return digest([str(label) for label in self.labels], [str(d) for d in self.dtypes], categories)

    def from_array(self, rows: Array) -> Any:
        """Return a frame of the rows. A column gets its dtype if that changes no value."""
        pandas = optional("pandas")
        if all(dtype == rows.dtype for dtype in self.dtypes):
            frame = pandas.DataFrame(rows, columns=list(self.labels))
            return frame if self.dtypes else frame.infer_objects()
        columns = {
            i: _convert(pandas.Series(rows[:, i]), dtype, self.labels[i])
            for i, dtype in enumerate(self.dtypes)
        }
        frame = pandas.DataFrame(columns)
        frame.columns = list(self.labels)
        return frame


def _convert(column: Any, dtype: Any, label: Any) -> Any:
    """Return a column with another dtype if that changes no value, else the column."""
    if hasattr(dtype, "categories"):
        return _categorical(column, dtype, label)
    column = column.infer_objects()
    try:
        converted = column.astype(dtype)
        present = column.notna()
        is_same = converted.notna().equals(present) and (converted[present] == column[present]).all()
    except (TypeError, ValueError):
        return column
    is_rounded = dtype.kind == "f" and column.dtype.kind in NUMBERS
    is_date = dtype.kind in "mM" and column.dtype.kind == "O"  # saved as text
    return converted if is_same or is_rounded or is_date else column


def _categorical(column: Any, dtype: Any, label: Any) -> Any:
    """Return a column of categories; raise an error for an unknown one, which pandas would make NaN."""
    codes = dtype.categories.get_indexer(column)
    unknown = column[(codes < 0) & column.notna().to_numpy()]
    if len(unknown):
        names = ", ".join(map(str, dtype.categories[:10])) + (", …" if len(dtype.categories) > 10 else "")
        raise InputError(
            f"The column {str(label)!r} must hold one of the categories {names}, got {unknown.iloc[0]!r}."
        )
    pandas = optional("pandas")
    return pandas.Series(pandas.Categorical.from_codes(codes, dtype=dtype), index=column.index)
