"""The values of images and table rows that attacks may change, and their bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pertinent.array_types import Array, Floats, Ints, Masks
from pertinent.asks import BatchPart
from pertinent.errors import InputError
from pertinent.inputs.base import ArrayInput, Input
from pertinent.models.base import Model


@dataclass(frozen=True, eq=False)
class AttackSpace:
    """The attackable values of several inputs, for the rows of one batch.

    Attributes
    ----------
    values
        Values of the inputs, in units (inputs, values).
    units
        Unit of each value: the standard deviation of its column in the background, so a radius does not
        depend on the scale of the columns.
    bounds
        Smallest and largest change (2, inputs, values), or ``None``.
    owner
        Feature of each value (inputs, values).
    sets
        Features that each row attacks (rows, features).
    origin
        Index of the input of each row.
    background
        Values of the background rows, in units, or ``None``.
    """

    values: Floats
    units: Floats
    bounds: Floats | None
    owner: Ints
    sets: Masks
    origin: Ints
    background: Floats | None = None

    @classmethod
    def from_parts(cls, model: Model, parts: Sequence[BatchPart]) -> AttackSpace:
        """Return the values, bounds and sets attacked by the rows of a batch."""
        inputs = [require_numbers(part.input) for part in parts]
        values, units, bounds = zip(*(_ranges(model, input) for input in inputs), strict=True)
        stacked = None if bounds[0] is None else np.stack(bounds, axis=1)
        owners = np.stack([input.owners.ravel() for input in inputs])
        rows = inputs[0].start_rows(model.background)
        rows = None if rows is None else rows / units[0]
        return cls(np.stack(values), np.stack(units), stacked, owners, *sets_and_origins(parts), rows)

    @cached_property
    def free(self) -> Masks:
        """Return which values of each row may change (rows, values): those in its set that are not NaN."""
        in_set = np.take_along_axis(self.sets, self.owner[self.origin], axis=1)
        return in_set & ~np.isnan(self.values[self.origin])

    def changes(self, in_units: Floats, shape: Sequence[int]) -> Array:
        """Convert each row's changes from units to values of an input of this shape."""
        return np.asarray(in_units * self.units[self.origin]).reshape(len(in_units), *shape)

    def norms(self, in_units: Floats, norm: str) -> Floats:
        """Return the norm of each change within each feature (rows, features)."""
        return norms_by_feature(in_units, self.owner[self.origin], self.sets.shape[1], norm)


def sets_and_origins(parts: Sequence[BatchPart]) -> tuple[Masks, Ints]:
    """Return the set that each row of a batch attacks (rows, features), and the index of its part."""
    counts = [len(part.rows) for part in parts]
    sets = np.zeros((sum(counts), max(part.input.n_features for part in parts)), dtype=np.bool_)
    for part, end in zip(parts, np.cumsum(counts).tolist(), strict=True):
        sets[end - len(part.rows) : end, : part.input.n_features] = part.question.sets[part.rows]
    return sets, np.repeat(np.arange(len(parts)), counts)


def require_numbers(input: Input) -> ArrayInput:
    """Return the input; raise an `InputError` unless it is an array of numbers."""
    if not isinstance(input, ArrayInput):
        raise InputError(
            "Attacks perturb numbers: they need an image, a numeric table row, or a text and a transformer."
        )
    if input.array.dtype == object:
        raise InputError("Attacks perturb numbers, but the row contains categories.")
    return input


def _ranges(model: Model, input: ArrayInput) -> tuple[Floats, Floats, Floats | None]:
    """Return an input's values in units, the units, and the bounds of changes (2, values)."""
    values, bounds = input.array.astype(np.float64), None
    units, limits = input.units(model.background), input.limits(model.background)
    if limits is not None:
        # Missing values, and values of columns without a range, cannot change.
        ends = (np.nan_to_num(end - values, posinf=np.inf, neginf=-np.inf) for end in limits)
        ends = (clip(end, 0) for clip, end in zip((np.minimum, np.maximum), ends, strict=True))
        bounds = np.stack([(end / units).ravel() for end in ends])
    return (values / units).ravel(), units.ravel(), bounds


def norms_by_feature(changes: Floats, owner: Ints, n_features: int, norm: str) -> Floats:
    """Return the norm of each change (rows, values) within each feature (rows, features).

    `owner` (rows, values) is the feature of each value, −1 for none.
    """
    rows = np.broadcast_to(np.arange(len(changes))[:, None], owner.shape)
    norms = np.zeros((len(changes), n_features + 1))
    if norm == "linf":
        np.maximum.at(norms, (rows, owner), np.abs(changes))
        return norms[:, :-1]
    np.add.at(norms, (rows, owner), changes.astype(np.float64) ** 2)
    return np.asarray(np.sqrt(norms[:, :-1]))
