"""Where the values of an image or a table row may go when they are perturbed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from pertinent.array_types import Array, Floats, Ints, Masks
from pertinent.asks import Part
from pertinent.errors import InputError
from pertinent.inputs.array_input import ArrayInput
from pertinent.inputs.base import Input

if TYPE_CHECKING:
    from pertinent.models.base import Model


@dataclass(frozen=True, eq=False)
class AttackSpace:
    """The values that attacks may change (inputs, values), in `units`, their bounds, and the rows' sets.

    The unit of a column is its standard deviation in the background, so that a radius does not depend on
    how columns are scaled. `lower` and `upper` are changes; ``None`` without bounds. `owner` is the feature
    that each value belongs to. Row r attacks the features `sets[r]` of the input `origin[r]`. `known` are
    the values of the background's rows, ``None`` without one.
    """

    values: Floats
    units: Floats
    lower: Floats | None
    upper: Floats | None
    owner: Ints
    sets: Masks
    origin: Ints
    known: Floats | None = None

    @cached_property
    def free(self) -> Masks:
        """Which values of each row may change (rows, values)."""
        return np.take_along_axis(self.sets, self.owner[self.origin], axis=1)

    def changes(self, found: Floats, shape: Sequence[int]) -> Array:
        """Changes found in units, converted to the values of inputs of this shape."""
        return np.asarray(found * self.units[self.origin]).reshape(len(found), *shape)

    def norms(self, found: Floats, norm: str) -> Floats:
        """The norm of each feature's part of each change (rows, features)."""
        return norms_by_feature(found, self.owner[self.origin], self.sets.shape[1], norm)


def space_of(model: Model, parts: Sequence[Part]) -> AttackSpace:
    """The values, bounds and sets that the rows of a batch attack."""
    inputs = [attackable(part.input) for part in parts]
    values, units, lower, upper = zip(*(_ranges(model, input) for input in inputs), strict=True)
    bounded = all(low is not None for low in lower)
    known = inputs[0].known_rows(model.background)
    return AttackSpace(
        np.stack(values),
        np.stack(units),
        np.stack(lower) if bounded else None,
        np.stack(upper) if bounded else None,
        np.stack([input.owners.ravel() for input in inputs]),
        *sets_of(parts),
        known=None if known is None else known / units[0],
    )


def sets_of(parts: Sequence[Part]) -> tuple[Masks, Ints]:
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


def _ranges(model: Model, input: ArrayInput) -> tuple[Floats, Floats, Floats | None, Floats | None]:
    """The values of an input in units, these units, and the largest changes down and up, in units."""
    values = input.array.astype(np.float64)
    units, limits = input.units(model.background), input.limits(model.background)
    if limits is None:
        return (values / units).ravel(), units.ravel(), None, None
    lower, upper = np.minimum(limits[0] - values, 0), np.maximum(limits[1] - values, 0)
    return (values / units).ravel(), units.ravel(), (lower / units).ravel(), (upper / units).ravel()


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
