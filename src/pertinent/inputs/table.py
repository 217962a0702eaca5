"""Table rows, whose features are columns or groups of columns."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from pertinent.array_types import Array, Floats, Ints
from pertinent.config.fingerprints import digest
from pertinent.config.serialization import decode, expect
from pertinent.errors import InputError, SettingError, unknown
from pertinent.inputs.background import Background, is_number
from pertinent.inputs.base import ArrayInput, Features, objects
from pertinent.inputs.modality import InputLimits, Modality, modalities
from pertinent.inputs.rows import as_row, check_different, is_row, missing, row_values
from pertinent.number_format import number_text
from pertinent.printable import shorten


@dataclass(frozen=True)
class Columns:
    """Columns of a table, and groups of columns that form one feature.

    `groups` maps the name of a feature to its columns, such as the one-hot columns of a
    category: ``{"colour": ["colour_red", "colour_blue"]}``.
    """

    names: tuple[str, ...]
    groups: Mapping[str, Sequence[str]] | None = None

    def features(self) -> dict[str, tuple[int, ...]]:
        """Return the column numbers of each feature, in the order of the table."""
        check_different(self.names)
        numbers = {name: i for i, name in enumerate(self.names)}
        owners: dict[str, str] = {}
        for group, members in (self.groups or {}).items():
            if not members:
                raise InputError(f"The group {group!r} has no columns.")
            if group in numbers and group not in members:
                raise InputError(f"The group {group!r} has the name of a column outside of it: rename it.")
            for member in members:
                if member not in numbers:
                    raise unknown("column", member, self.names)
                if member in owners:
                    raise InputError(f"Column {member!r} is in two groups.")
                owners[member] = group
        features: dict[str, tuple[int, ...]] = {}
        for name, number in numbers.items():
            feature = owners.get(name, name)
            features[feature] = (*features.get(feature, ()), number)
        return features


@dataclass(frozen=True, eq=False)
class TableInput(ArrayInput):
    """A table row, with the columns of each feature."""

    values: Array
    columns: tuple[tuple[int, ...], ...]
    names: tuple[str, ...]
    kind: ClassVar[str] = "table"
    has_columns = True

    @cached_property
    def owners(self) -> Ints:
        """Return the feature of each column."""
        feature = np.empty(len(self.values), dtype=np.int64)
        for i, columns in enumerate(self.columns):
            feature[list(columns)] = i
        return feature

    @property
    def group(self) -> Hashable:
        """Return a key of rows with the same number of columns and kind of values."""
        return self.kind, len(self.values), self.values.dtype == object

    def without_numbers(self) -> list[str]:
        """Return the names of the columns whose values are not numbers."""
        return [n for n, v in zip(self.names, self.values.tolist(), strict=True) if not is_number(v)]

    def missing_features(self) -> list[str]:
        """Return the names of the features with a missing value (NaN)."""
        empty = missing(self.values)
        groups = zip(self.features, self.columns, strict=True)
        return [name for name, group in groups if empty[list(group)].all()]

    def background_rows(self, background: Background | None) -> Background:
        """Return the background; raise an error unless it has the columns of the row."""
        if background is None:
            raise SettingError(
                "This removal needs a background: wrap the model with "
                "`background=` some rows, such as a sample of the training data."
            )
        background.check_width(len(self.values), "row")
        return background

    def mean(self, background: Background | None) -> Array:
        """Return the mean of each column of the background, or its most frequent category."""
        return self.background_rows(background).centre("mean")

    def value_range(self, background: Background | None) -> tuple[Array, Array]:
        """Return the smallest and largest value of each column of the background."""
        background = self.background_rows(background)
        if background.values.dtype == object:
            raise SettingError("Uniform noise needs a background of numbers; use 'background' instead.")
        low, high = background.range()
        finite = np.isfinite(low) & np.isfinite(high)
        if not finite.all():
            names = ", ".join(self.names[i] for i in np.flatnonzero(~finite))
            raise SettingError(f"The background has no finite range in: {names}; use 'background' instead.")
        return low, high

    def units(self, background: Background | None) -> Floats:
        """Return the standard deviation of each column of the background; 1 without one."""
        return np.ones(len(self.values)) if background is None else background.deviation()

    def limits(self, background: Background | None) -> tuple[Array, Array] | None:
        """Return the range of each column of the background; ``None`` without one."""
        return None if background is None else background.range()

    deviation = units

    def absent(self, background: Background | None) -> Any:
        """Return the mean of each column of the background; 0 without one."""
        return 0.0 if background is None else background.centre("mean")

    def start_rows(self, background: Background | None) -> Floats | None:
        """Return the rows of the background; ``None`` without one."""
        return None if background is None else np.asarray(background.values, dtype=np.float64)

    def value_texts(self) -> tuple[str, ...]:
        """Return the value of each feature as text."""
        return tuple(
            _show(self.values[group[0]])
            if len(group) == 1
            else ", ".join(f"{self.names[c]}={_show(self.values[c])}" for c in group if self.values[c])
            or "none"
            for group in self.columns
        )

    def feature_values(self) -> Array:
        """Return the value of each column; the text of a group."""
        if all(len(group) == 1 for group in self.columns):
            return self.values[[group[0] for group in self.columns]]
        groups = zip(self.columns, self.value_texts(), strict=True)
        return objects([self.values[group[0]] if len(group) == 1 else text for group, text in groups])

    def restore(self) -> TableInput:
        """Check the columns, and return the row with its values by name as `raw`."""
        names, columns, n = self.names, self.columns, len(self.values)
        expect(len(set(names)) == len(names) == n, "names", "different, one for each value", names)
        covered = sorted(column for group in columns for column in group)
        is_complete = len(columns) == self.n_features and all(columns) and covered == list(range(n))
        expect(is_complete, "columns", f"{self.n_features} groups of the {n} columns", columns)
        raw = dict(zip(names, self.values.tolist(), strict=True))
        return replace(self, raw=raw, values=row_values(self.values, names))


def _show(value: Any) -> str:
    if isinstance(value, float | np.floating) and np.isnan(value):
        return "missing"
    shows_number = isinstance(value, float | int | np.number) and not isinstance(value, bool)
    return number_text(value) if shows_number else str(value)


MOST_CATEGORIES = 200
"""Maximum number of categories: a column with more distinct texts may hold names or comments."""

_LONGEST = 60


def find_categories(background: Background, names: Sequence[str]) -> dict[str, list[str]]:
    """Return the sorted categories of each categorical column of the background."""
    categories = {}
    for name, column in zip(names, background.values.T, strict=True):
        values = set(column[~missing(column)].tolist())
        if values and len(values) <= MOST_CATEGORIES and all(isinstance(value, str) for value in values):
            categories[name] = sorted(values)
    return categories


def find_unknown_values(row: TableInput, categories: Mapping[str, Sequence[str]]) -> list[str]:
    """Return a note for each category that is not in the background, with the nearest ones."""
    notes = []
    for name, value, is_missing in zip(row.names, row.values.tolist(), missing(row.values), strict=True):
        values = categories.get(name)
        if values is None or is_missing or value in values:
            continue
        nearest = get_close_matches(str(value)[:_LONGEST], values, n=3, cutoff=0.0)
        listed = ", ".join(shorten(repr(each), _LONGEST) for each in nearest)
        got = shorten(repr(value), _LONGEST)
        notes.append(f"{name} is {got}, which no row of the background has; the nearest values: {listed}")
    return notes


def table_input(raw: Any, columns: Columns | None = None) -> TableInput:
    """Divide a row into its columns.

    >>> table_input({"age": 39, "job": "clerk"}).features
    ('age', 'job')
    """
    values, names = as_row(raw, columns.names if columns else None)
    features = (columns or Columns(names)).features()
    fingerprint = digest(values, names, tuple(features.items()))
    raw = values if isinstance(raw, np.ndarray) else raw
    columns_of = tuple(features.values())
    return TableInput(raw, tuple(features), "columns", (), fingerprint, values, columns_of, names)


@modalities.register("table")
@dataclass(frozen=True)
class TableModality(Modality):
    """Rows of a table; `columns` are those of the model, if known."""

    summary = "a table row: an array, a list, a mapping from columns to values, or a pandas row"
    plural = "table rows"
    nouns = ("row", "column")
    input_type = TableInput
    features = "columns"
    dimensions = (1,)
    precedence = 3
    default_removal = "background"
    drawn_baseline = "background"
    scorer = "pertinent.learners.networks.table_scorer:TableScorer"
    drawing = "pertinent.rendering.drawings.table:RowDrawing"
    columns: Columns | None = None

    def recognises(self, raw: Any) -> bool:
        """Return whether `raw` is a mapping, a sequence or an array."""
        return isinstance(raw, Mapping | tuple | list) or hasattr(raw, "shape")

    def is_one(self, raw: Any) -> bool:
        """Return whether `raw` is a list or tuple of values, not of rows."""
        return isinstance(raw, list | tuple) and len(raw) > 0 and not any(map(is_row, raw))

    def with_columns(self, columns: Columns | None) -> TableModality:
        """Return the modality of rows with these columns."""
        return replace(self, columns=columns)

    def prepare(self, raw: Any, features: Features | None = None) -> TableInput:
        """Divide a row into its columns."""
        if features is not None and (not isinstance(features, str) or features != self.features):
            raise unknown("table feature", features, [self.features])
        return table_input(raw, self.columns)

    def to_fields(self, input: TableInput) -> dict[str, Any]:
        """Return the row by column, ``None`` where a value is missing."""
        values = [None if value != value else value for value in input.values.tolist()]  # noqa: PLR0124  NaN
        return {"row": dict(zip(input.names, values, strict=True))}

    def from_fields(self, fields: Mapping[str, Any], limits: InputLimits) -> dict[str, Any]:
        """Return the row by column; an empty value is missing."""
        row: Any = fields.get("row")
        if isinstance(row, Mapping) and len(row) > limits.features:
            raise InputError(f"`row` must have at most {limits.features:,} columns, but has {len(row):,}.")
        row = decode(Mapping[str, str | float | None], row, "row")
        limits.check_text(*row, *row.values())
        return {name: np.nan if value in (None, "") else value for name, value in row.items()}

    def background_notes(self, input: TableInput, background: Background | None) -> tuple[str, ...]:
        """Return a note for each category that is not in the background."""
        if background is None:
            return ()
        return tuple(find_unknown_values(input, find_categories(background, input.names)))

    def default_removal_for(self, background: Background | None) -> str:
        """Return ``background``, or ``constant`` without a background."""
        return "constant" if background is None else self.default_removal

    def removal_warning(self, background: Background | None) -> str:
        """Return a warning if there is no background: 0 may be an unusual value of a column."""
        if background is not None:
            return ""
        return (
            "Removed columns became 0, because the model was wrapped without a background, and 0 may be an "
            "unusual value of a column: pass `background=` some rows, such as a sample of the training data, "
            "to `wrap`, or `removal='constant'` if 0 is intended."
        )
