"""Inputs that are arrays of values, each of which belongs to one feature: images, table rows, time series."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from pertinent.array_types import Array, Floats, Ints, Masks
from pertinent.digests import digest
from pertinent.inputs.base import Input, Numbers

if TYPE_CHECKING:
    from typing_extensions import Self

    from pertinent.inputs.table import Background


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

    def restored(self) -> Self:
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

    def moved(self, change: Array) -> Self:
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

    def known_rows(self, background: Background | None) -> Floats | None:
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
        return Numbers(values, np.broadcast_to(absent.astype(np.float64), values.shape), self.owners)
