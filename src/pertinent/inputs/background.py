"""Background data: rows from which removed columns are filled, or images of one size."""

from __future__ import annotations

import numbers
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from functools import cached_property
from typing import Any, Literal

import numpy as np

from pertinent.array_types import Array, Floats
from pertinent.config.fingerprints import digest
from pertinent.errors import InputError
from pertinent.inputs.base import ArrayInput
from pertinent.inputs.rows import NUMBERS, as_row, frame_values, is_frame, missing, row_values


class Background:
    """Rows from which removed columns are filled, with NaN for missing values; or images of one size.

    >>> Background([[1.0, 2.0], [3.0, 6.0]]).centre("mean")
    array([2., 4.])
    """

    def __init__(self, rows: Any) -> None:
        self.values = frame_values(rows) if is_frame(rows) else _stacked(rows)
        if self.values.ndim != 2 or not self.values.size:
            raise InputError(f"The background must be rows × columns, but has shape {self.values.shape}.")
        self._centres: dict[str, Array] = {}

    @classmethod
    def from_images(cls, images: Sequence[ArrayInput]) -> Background:
        """Return the background of prepared images."""
        sizes = {image.array.shape for image in images}
        if len(sizes) != 1:
            shown = " and ".join(map(str, sorted(sizes)[:2])) or "none"
            raise InputError(f"The background must be images of one size, but there are {shown}.")
        values = np.stack([image.array for image in images])
        background = cls(values.reshape(len(values), -1))
        background.values = values
        return background

    @cached_property
    def fingerprint(self) -> bytes:
        """Return a digest of all values."""
        return digest(self.values)

    def check_width(self, n_columns: int, of: str) -> None:
        """Raise an `InputError` unless the background has `n_columns`, the columns of a table or a row."""
        if self.values.shape[1] != n_columns:
            raise InputError(
                f"The background has {self.values.shape[1]} columns, but the {of} has {n_columns}."
            )

    def centre(self, statistic: Literal["mean", "median"]) -> Array:
        """Return the mean or median of each numeric column, the mode of others; NaN without values."""
        if statistic not in self._centres:
            centres = [_centre(column[~missing(column)], statistic) for column in self.values.T]
            averaged = statistic == "mean" and self.values.dtype.kind in "biu"
            self._centres[statistic] = np.array(centres, np.float64 if averaged else self.values.dtype)
        return self._centres[statistic]

    def range(self) -> tuple[Array, Array]:
        """Return the minimum and maximum of each numeric column; NaN without values."""
        values = self.values.astype(np.float64)
        return np.fmin.reduce(values, axis=0), np.fmax.reduce(values, axis=0)

    def deviation(self) -> Floats:
        """Return the standard deviation of each numeric column; 1 if its values are constant."""
        values = self.values.astype(np.float64)
        empty = np.isnan(values).all(axis=0)
        spread = np.nanstd(np.where(empty, 0.0, values), axis=0)
        return np.where(spread > 0, spread, 1.0)


def _stacked(rows: Any) -> Array:
    """Return rows that are not a data frame as one array."""
    if hasattr(rows, "detach"):
        rows = rows.detach().cpu().numpy()
    if isinstance(rows, np.ndarray) and rows.dtype.kind in NUMBERS:
        return row_values(rows, ())
    if not isinstance(rows, Iterable) or isinstance(rows, str | bytes | Mapping):
        raise InputError(f"The background must be rows × columns, but got {type(rows).__name__}.")
    names = None
    stacked: list[Array] = []
    for row in rows:
        try:
            values, row_names = as_row(row, names)
        except InputError as error:
            raise InputError(
                f"The background must be rows × columns, but row {len(stacked)} is not a row: {error}"
            ) from error
        names = names or row_names
        stacked.append(values)
    return np.stack(stacked) if stacked else np.empty((0, 0))


def _centre(values: Array, statistic: str) -> Any:
    """Return the mean or median of a column without missing values; its mode if it is not numeric."""
    if not len(values):
        return np.nan
    if not all(map(is_number, values.tolist())):
        counts = Counter(values.tolist())
        return min(counts, key=lambda value: (-counts[value], str(value)))
    if statistic == "mean":
        return values.astype(np.float64).mean()
    return np.sort(values)[(len(values) - 1) // 2]


def is_number(value: Any) -> bool:
    """Return whether a value is a real number."""
    return isinstance(value, numbers.Real | Decimal)
