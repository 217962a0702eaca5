"""The values of images and table rows that attacks may change, and their bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from pertinent.array_types import Array, Floats, Ints, Masks
from pertinent.asks import BatchPart
from pertinent.errors import InputError
from pertinent.inputs.base import ArrayInput, Input
from pertinent.models.base import Model

if TYPE_CHECKING:
    pass


@dataclass(frozen=True, eq=False)
class AttackSpace:
    """The values that attacks may change (inputs, values), in `units`, their bounds, and the set of each row.

    The unit of a column is its standard deviation in the background, so that a radius does not depend on
    how columns are scaled. `bounds` are the least and the greatest change (2, inputs, values), ``None`` if
    there are none. `owner` is the feature that each value belongs to. Row r attacks the features `sets[r]` of
    the input `origin[r]`. `known` are the values of the background's rows, ``None`` without one.
    """

    values: Floats
    units: Floats
    bounds: Floats | None
    owner: Ints
    sets: Masks
    origin: Ints
    known: Floats | None = None

    @cached_property
    def free(self) -> Masks:
        """Which values of each row may change (rows, values): those of its set that are not missing (NaN)."""
        own = np.take_along_axis(self.sets, self.owner[self.origin], axis=1)
        return own & ~np.isnan(self.values[self.origin])

    def changes(self, found: Floats, shape: Sequence[int]) -> Array:
        """Changes found in units, converted to the values of inputs of this shape."""
        return np.asarray(found * self.units[self.origin]).reshape(len(found), *shape)

    def norms(self, found: Floats, norm: str) -> Floats:
        """The norm of each feature's part of each change (rows, features)."""
        return norms_by_feature(found, self.owner[self.origin], self.sets.shape[1], norm)


def space_of(model: Model, parts: Sequence[BatchPart]) -> AttackSpace:
    """The values, bounds and sets that the rows of a batch attack."""
    inputs = [attackable(part.input) for part in parts]
    values, units, bounds = zip(*(_ranges(model, input) for input in inputs), strict=True)
    stacked = None if bounds[0] is None else np.stack(bounds, axis=1)
    owners = np.stack([input.owners.ravel() for input in inputs])
    known = inputs[0].known_rows(model.background)
    known = None if known is None else known / units[0]
    return AttackSpace(np.stack(values), np.stack(units), stacked, owners, *sets_of(parts), known)


def sets_of(parts: Sequence[BatchPart]) -> tuple[Masks, Ints]:
    """The set that each row of a batch attacks (rows, features), and the number of its part."""
    counts = [len(part.rows) for part in parts]
    sets = np.zeros((sum(counts), max(part.input.n_features for part in parts)), dtype=np.bool_)
    for part, end in zip(parts, np.cumsum(counts).tolist(), strict=True):
        sets[end - len(part.rows) : end, : part.input.n_features] = part.question.sets[part.rows]
    return sets, np.repeat(np.arange(len(parts)), counts)


def attackable(input: Input) -> ArrayInput:
    """The input, or an error unless it is an array of numbers."""
    if not isinstance(input, ArrayInput):
        raise InputError(
            "An attack perturbs numbers: it needs an image, a table row, or a text under a transformer."
        )
    if input.array.dtype == object:
        raise InputError("An attack perturbs numbers, but the row holds categories.")
    return input


def _ranges(model: Model, input: ArrayInput) -> tuple[Floats, Floats, Floats | None]:
    """The values of an input in units, the units, and the least and greatest changes (2, values)."""
    values, bounds = input.array.astype(np.float64), None
    units, limits = input.units(model.background), input.limits(model.background)
    if limits is not None:
        # a missing value, and one whose column has no range, stays as it is
        ends = (np.nan_to_num(end - values, posinf=np.inf, neginf=-np.inf) for end in limits)
        ends = (step(end, 0) for step, end in zip((np.minimum, np.maximum), ends, strict=True))
        bounds = np.stack([(end / units).ravel() for end in ends])
    return (values / units).ravel(), units.ravel(), bounds


def norms_by_feature(changes: Floats, owner: Ints, n_features: int, norm: str) -> Floats:
    """The norm of each feature's part of each change (rows, values), as an array (rows, features).

    `owner` (rows, values) is the feature that each value belongs to, −1 if to none.
    """
    rows = np.broadcast_to(np.arange(len(changes))[:, None], owner.shape)
    found = np.zeros((len(changes), n_features + 1))
    if norm == "linf":
        np.maximum.at(found, (rows, owner), np.abs(changes))
        return found[:, :-1]
    np.add.at(found, (rows, owner), changes.astype(np.float64) ** 2)
    return np.asarray(np.sqrt(found[:, :-1]))
