"""Inputs, divided into the features that an explanation scores."""

from __future__ import annotations

from abc import ABC
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

from pertinent.array_types import Array, Floats, Ints, Masks
from pertinent.config.fingerprints import digest
from pertinent.config.serialization import encode
from pertinent.errors import SettingError

if TYPE_CHECKING:
    from typing import Self

    from pertinent.inputs.background import Background

Features: TypeAlias = str | Sequence[Any] | Array
"""A granularity or custom features, such as character spans of a text or segments of an image."""


@dataclass(frozen=True)
class Truncation:
    """Part of a truncated input that the model reads.

    Attributes
    ----------
    n_seen, n_total
        Number of features that the model reads, and total number of features.
    max_tokens
        Maximum number of tokens of the model.
    unit
        The unit of the counts, such as ``"words"``.

    >>> str(Truncation(5, 8, 12, "words"))
    'truncated to 12 tokens: 5 of 8 words are seen'
    """

    n_seen: int
    n_total: int
    max_tokens: int
    unit: str

    def __str__(self) -> str:
        seen = f"{self.n_seen} of {self.n_total} {self.unit} are seen"
        return f"truncated to {self.max_tokens} tokens: {seen}"


@dataclass(frozen=True, eq=False)
class Numbers:
    """The values of an input that is an array.

    Attributes
    ----------
    values
        The values.
    absent
        For each value, the value that means "absent": the fill value of a constant removal; otherwise black
        for pixels, and the background's mean or 0 for columns.
    owners
        The index of the feature of each value.
    background
        The rows of the background (rows, values), if there is one.
    """

    values: Floats
    absent: Floats
    owners: Ints
    background: Floats | None = None


@dataclass(frozen=True, eq=False)
class Input(ABC):
    """One input to explain. Each modality has a subclass.

    Attributes
    ----------
    raw
        The original input, kept so that it can be shown and prepared again.
    features
        A name for each removable feature, in the order of mask columns.
    granularity
        The kind of features: ``"words"``, ``"patches"``, ``"columns"`` …
    notes
        Notes for the user, such as that an image was resized.
    fingerprint
        A digest of the content, which seeds random draws.
    truncation
        The part of the input that the model reads; ``None`` if it reads all of it.
    kind
        The name of its modality.
    has_words, has_columns, is_picture
        Whether its features are parts of a text, columns of a table with a value each, or areas of a picture.
    """

    raw: Any = field(compare=False)
    features: tuple[str, ...] = field(compare=False)
    granularity: str
    notes: tuple[str, ...]
    fingerprint: bytes = field(repr=False, compare=False)
    truncation: Truncation | None = field(default=None, kw_only=True)
    kind: ClassVar[str] = ""
    has_words: ClassVar[bool] = False
    has_columns: ClassVar[bool] = False
    is_picture: ClassVar[bool] = False

    @property
    def n_features(self) -> int:
        """Return the number of removable features."""
        return len(self.features)

    @property
    def remarks(self) -> tuple[str, ...]:
        """Return notes on how the input is divided, which are shown without a warning sign."""
        return ()

    @property
    def levels(self) -> tuple[Ints, ...]:
        """Return the unit of each feature at each level of coarse-to-fine explanation, the coarsest first.

        The last level are the features; empty for inputs that are not explained from coarse to fine.
        """
        return ()

    @property
    def group(self) -> Hashable:
        """Return a key of the inputs that can share a batch, such as images of one size."""
        return self.kind

    @property
    def length(self) -> int:
        """Return the number of elements that a network reads: tokens of a text, else features."""
        return self.n_features

    @property
    def nbytes(self) -> int:
        """Return the memory of one copy of the input in a batch, in bytes; 0 if it is negligible."""
        return 0

    @property
    def content(self) -> Hashable:
        """Return a key of the input that does not depend on its division into features."""
        return self.fingerprint

    @property
    def features_argument(self) -> str | Array:
        """Return the argument `features` that divides the input into the same features."""
        return self.granularity

    @property
    def search_text(self) -> str:
        """Return the text for searches: by default the features and their values."""
        values = self.value_texts() or ()
        return " ".join((*self.features, *values))

    def value_texts(self) -> tuple[str, ...] | None:
        """Return the value of each feature as text, if features have values."""
        return None

    def feature_values(self) -> Array:
        """Return the value of each feature for a data frame; ``None`` for features without a single value."""
        return objects([None] * self.n_features)

    def for_shap(self, scores: Floats) -> tuple[Array, Array, tuple[str, ...] | None]:
        """Return the arguments of shap's plots: scores, their data, and feature names or ``None``."""
        return scores, self.feature_values(), self.features

    def heatmap(self, scores: Floats) -> Floats:
        """Return the score of each pixel (height, width) of an image; raise an error for others."""
        raise SettingError(
            f"Only an image has a heat map, but the input is of kind {self.kind}: use `scores`, "
            "`to_dataframe()` or `plot()`."
        )

    def match_annotation(self, annotation: Array) -> Masks | None:
        """Return the features that an annotation marks, if its form is specific to this modality."""
        return None

    def missing_features(self) -> list[str]:
        """Return the names of the features without a value (NaN)."""
        return []

    def numbers(self, background: Background | None, constant: float | None) -> Numbers | None:
        """Return the values of the input and of its absence; ``None`` unless all values are numbers.

        `constant` is the fill value of a constant removal.
        """
        return None

    def to_dict(self) -> dict[str, Any]:
        """Return the compared fields except `raw` and `features` as numbers, strings and lists."""
        return {"kind": self.kind, "fingerprint": self.fingerprint.hex(), **encode(self)}

    def restore(self) -> Self:
        """Check the fields of an input that was read from a file, and return it with `raw` set."""
        return self


def objects(items: Sequence[Any]) -> Array:
    """Return items of any type as a one-dimensional array."""
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array


@dataclass(frozen=True, eq=False)
class ArrayInput(Input):
    """An input whose features are parts of an array.

    Removals that fill in values, gradients, attacks and sensitivity use only the methods defined here. A
    subclass defines the attributes below, and overrides methods if its values have another meaning.
    `background` is the background of the model.

    Attributes
    ----------
    owners
        The index of the feature of each value: a field or a property.
    values_field
        The name of the field that holds the values, an array of any shape.
    dtype
        The precision in which new values are computed.
    """

    values_field: ClassVar[str] = "values"
    dtype: ClassVar[type[np.floating[Any]]] = np.float64

    if TYPE_CHECKING:

        @property
        def owners(self) -> Ints:
            """Return the index of the feature of each value."""

    @property
    def array(self) -> Array:
        """Return the values."""
        array: Array = getattr(self, self.values_field)
        return array

    def with_array(self, array: Array) -> Self:
        """Return an input with the same features and other values; its fingerprint changes."""
        changed: dict[str, Any] = {self.values_field: array}
        return replace(self, fingerprint=digest(self.fingerprint, array), **changed)

    @property
    def group(self) -> Hashable:
        """Return the kind and the shape: inputs of one shape share batches."""
        return self.kind, self.array.shape

    def restore(self) -> Self:
        """Return the input with the array as `raw`."""
        return replace(self, raw=self.as_read(self.array[None])[0])

    @property
    def nbytes(self) -> int:
        """Return the size of the array in bytes."""
        return self.array.nbytes

    def without_numbers(self) -> list[str]:
        """Return the names of the values that are not numbers."""
        return []

    def fill(self, masks: Masks, filler: Array) -> Array:
        """Return rows (masks, …) for the model, with `filler` broadcast to the removed features."""
        return self.as_read(np.where(masks[:, self.owners], self.array, filler))

    def as_read(self, rows: Array) -> Array:
        """Return rows of arrays in the layout and precision of the model's input."""
        return rows

    def shift(self, change: Array) -> Self:
        """Return a copy shifted by `change`, clipped to valid values."""
        return self.with_array(self.array.astype(self.dtype) + change)

    def mean(self, background: Background | None) -> Array:
        """Return the fill value of the removal ``mean``: by default the mean of the input."""
        return np.asarray(self.array.mean())

    def value_range(self, background: Background | None) -> tuple[Array, Array]:
        """Return the smallest and largest usual value: by default the input's range."""
        return np.array(self.array.min()), np.array(self.array.max())

    def units(self, background: Background | None) -> Floats:
        """Return the unit of each value in the radius of an attack or a neighbourhood."""
        return np.ones(self.array.shape)

    def limits(self, background: Background | None) -> tuple[Any, Any] | None:
        """Return the range of values that an attack may use, or ``None`` if it is unlimited."""
        return self.value_range(background)

    def deviation(self, background: Background | None) -> Floats:
        """Return the standard deviation of each value, the unit of noise."""
        return np.full(self.array.shape, self.array.std())

    def absent(self, background: Background | None) -> Any:
        """Return the values that mean "absent", the reference of pertinence."""
        return self.mean(background)

    def background_rows(self, background: Background | None) -> Background:
        """Return the background; raise a `SettingError` unless it holds arrays of the input's shape."""
        if background is None:
            raise SettingError(
                f"This needs a background: wrap the model with `background=` some {self.kind} inputs, such "
                "as a sample of the training data."
            )
        shapes = background.values.shape[1:], self.array.shape
        if shapes[0] != shapes[1]:
            raise SettingError(f"The background must have inputs of shape {shapes[1]}, got {shapes[0]}.")
        return background

    def start_rows(self, background: Background | None) -> Floats | None:
        """Return other inputs (rows, values) from which an attack may start, if there are any."""
        return None

    def numbers(self, background: Background | None, constant: float | None) -> Numbers | None:
        """Return the values and their absence; ``None`` if some are not numbers."""
        if self.array.dtype == object:
            return None
        absent = np.asarray(self.absent(background) if constant is None else constant)
        if absent.dtype == object:
            return None
        values = self.array.astype(np.float64)
        absent = np.broadcast_to(absent.astype(np.float64), values.shape)
        return Numbers(values, absent, self.owners, self.start_rows(background))
