"""An input, divided into the features that an explanation scores."""

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
"""A granularity; or features that the user cut, such as character spans of a text or segments of an image."""


@dataclass(frozen=True)
class Truncation:
    """A model reads only the beginning of an input.

    Attributes
    ----------
    n_seen, n_total
        Number of features that the model reads, and that the whole input has.
    max_tokens
        Number of tokens to which the input was cut.
    unit
        What is counted: ``"words"``, ``"tokens"``, ``"sentences"`` or ``"spans"``.

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
        The values themselves.
    absent
        For each value, the value that means "nothing is there": what the removal fills in if it is
        constant; else black for pixels, and for a column the background's mean, or 0 without one.
    owners
        For each value, the number of the feature that it belongs to.
    background
        The values of the background's rows (rows, values), if there is a background.
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
        The input as the user gave it, kept so that it can be shown and prepared again.
    features
        A name for each removable feature, in the order of mask columns.
    granularity
        What one feature is: ``"words"``, ``"patches"``, ``"columns"`` …
    notes
        What the user should know about this input, such as that an image was resized.
    fingerprint
        A digest of the content: random draws depend on it, not on the position in a list.
    truncation
        How much of the input the model reads, if not all of it.
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
        """Number of features that can be removed."""
        return len(self.features)

    @property
    def levels(self) -> tuple[Ints, ...]:
        """For an input that is explained from coarse to fine, the part of each feature at each level.

        The coarsest level is first, the features themselves are last; empty otherwise.
        """
        return ()

    @property
    def group(self) -> Hashable:
        """Inputs of different groups, such as images of different sizes, cannot share a batch."""
        return self.kind

    @property
    def length(self) -> int:
        """Number of parts that a network reads: tokens of a text, else features."""
        return self.n_features

    @property
    def nbytes(self) -> int:
        """Memory that one copy of the input takes in a batch, in bytes; 0 if it is negligible."""
        return 0

    @property
    def content(self) -> Hashable:
        """A key that two inputs share if they are the same, however they are divided into features."""
        return self.fingerprint

    @property
    def features_argument(self) -> str | Array:
        """The `features` that give the same features when the input is prepared again."""
        return self.granularity

    @property
    def search_text(self) -> str:
        """The text that searches look through: by default the features and their values."""
        values = self.value_texts() or ()
        return " ".join((*self.features, *values))

    def value_texts(self) -> tuple[str, ...] | None:
        """The value of each feature as text, where a feature has a value beside its name."""
        return None

    def feature_values(self) -> Array:
        """The value of each feature for a data frame; ``None`` where a feature has no single value."""
        return objects([None] * self.n_features)

    def for_shap(self, scores: Floats) -> tuple[Array, Array, tuple[str, ...] | None]:
        """The arguments of shap's plots: scores, the data that they belong to, and feature names, if any."""
        return scores, self.feature_values(), self.features

    def heatmap(self, scores: Floats) -> Floats:
        """The scores as a picture (height, width), which only images have."""
        raise SettingError(
            f"Only an image has a heat map, but the input is a {self.kind}: use `scores`, "
            "`to_dataframe()` or `plot()`."
        )

    def match_annotation(self, annotation: Array) -> Masks | None:
        """The features that an annotation marks, if it has a form that only this modality knows."""
        return None

    def missing_features(self) -> list[str]:
        """The names of the features that have no value, of a table row those that are NaN."""
        return []

    def numbers(self, background: Background | None, constant: float | None) -> Numbers | None:
        """The values of the input and of its absence; ``None`` if the input is not made of numbers.

        `constant` is what the removal fills in, if it fills in one value.
        """
        return None

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings and lists: all fields but `raw`, `features` and those not compared."""
        return {"kind": self.kind, "fingerprint": self.fingerprint.hex(), **encode(self)}

    def restore(self) -> Self:
        """The input after its fields were read from a file: checked, and with `raw` set."""
        return self


def objects(items: Sequence[Any]) -> Array:
    """A one-dimensional array of anything."""
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array


@dataclass(frozen=True, eq=False)
class ArrayInput(Input):
    """An input whose features are parts of an array.

    Removals that fill in values, gradients, attacks and sensitivity need nothing but what is defined
    here. A subclass has the fields or properties named below, and overrides the methods where its
    values mean something else. `background` are the rows that the model was wrapped with, if any.

    Attributes
    ----------
    owners
        For each value, the number of the feature that it belongs to: a field or a property.
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
            """For each value, the number of the feature that it belongs to."""

    @property
    def array(self) -> Array:
        """The values."""
        found: Array = getattr(self, self.values_field)
        return found

    def with_array(self, array: Array) -> Self:
        """An input with the same features and other values, and so with another fingerprint."""
        changed: dict[str, Any] = {self.values_field: array}
        return replace(self, fingerprint=digest(self.fingerprint, array), **changed)

    @property
    def group(self) -> Hashable:
        """Inputs of one shape share batches."""
        return self.kind, self.array.shape

    def restore(self) -> Self:
        """The input with its array for `raw`."""
        return replace(self, raw=self.as_read(self.array[None])[0])

    @property
    def nbytes(self) -> int:
        """The size of the array in bytes."""
        return self.array.nbytes

    def without_numbers(self) -> list[str]:
        """The names of the parts that hold something else than a number."""
        return []

    def fill(self, masks: Masks, filler: Array) -> Array:
        """Rows (masks, …) for the model, with `filler`, which broadcasts against them, where not kept."""
        return self.as_read(np.where(masks[:, self.owners], self.array, filler))

    def as_read(self, rows: Array) -> Array:
        """Rows of arrays in the layout and precision that the model reads."""
        return rows

    def shift(self, change: Array) -> Self:
        """The input after a change of its values, as far as they remain valid."""
        return self.with_array(self.array.astype(self.dtype) + change)

    def mean(self, background: Background | None) -> Array:
        """The values that the removal ``mean`` fills in: by default the mean of the input itself."""
        return np.asarray(self.array.mean())

    def value_range(self, background: Background | None) -> tuple[Array, Array]:
        """The smallest and largest usual value: by default those of the input itself."""
        return np.array(self.array.min()), np.array(self.array.max())

    def units(self, background: Background | None) -> Floats:
        """The change of each value that counts as 1 in the radius of an attack or a neighbourhood."""
        return np.ones(self.array.shape)

    def limits(self, background: Background | None) -> tuple[Any, Any] | None:
        """The least and greatest value that an attack may use, or ``None`` if there is no limit."""
        return self.value_range(background)

    def deviation(self, background: Background | None) -> Floats:
        """The standard deviation of each value, in which noise is measured: by default of all together."""
        return np.full(self.array.shape, self.array.std())

    def absent(self, background: Background | None) -> Any:
        """The values that mean "nothing is there", which pertinence compares with."""
        return self.mean(background)

    def background_rows(self, background: Background | None) -> Background:
        """The background, which must be given and hold arrays of the input's shape."""
        if background is None:
            raise SettingError(
                f"This needs a background: wrap the model with `background=` some {self.kind} inputs, such "
                "as a sample of the training data."
            )
        shapes = background.values.shape[1:], self.array.shape
        if shapes[0] != shapes[1]:
            raise SettingError(
                f"The background has inputs of shape {shapes[0]}, but this one has {shapes[1]}."
            )
        return background

    def start_rows(self, background: Background | None) -> Floats | None:
        """Other inputs from which an attack may start (rows, values), if there are any."""
        return None

    def numbers(self, background: Background | None, constant: float | None) -> Numbers | None:
        """The values and their absence; ``None`` if some are no numbers."""
        if self.array.dtype == object:
            return None
        absent = np.asarray(self.absent(background) if constant is None else constant)
        if absent.dtype == object:
            return None
        values = self.array.astype(np.float64)
        absent = np.broadcast_to(absent.astype(np.float64), values.shape)
        return Numbers(values, absent, self.owners, self.start_rows(background))
