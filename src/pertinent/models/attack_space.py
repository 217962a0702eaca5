"""Where the values of an image or a table row may go when they are perturbed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pertinent.asks import Part
from pertinent.errors import InputError
from pertinent.inputs.base import Input
from pertinent.inputs.image import ImageInput
from pertinent.inputs.table import Background, TableInput
from pertinent.removal.fill import owners
from pertinent.types import Array, Floats, Ints, Masks

if TYPE_CHECKING:
    from pertinent.models.base import Model


@dataclass(frozen=True, eq=False)
class Space:
    """The values of rows (rows, values) in `units`, which are free to change, and how far at most.

    The unit of a column is its standard deviation in the background, so that a radius does not depend on
    how columns are scaled. `lower` and `upper` are changes; ``None`` without bounds.
    """

    values: Floats
    free: Masks
    units: Floats
    lower: Floats | None
    upper: Floats | None

    def changes(self, found: Floats, shape: Sequence[int]) -> Array:
        """Changes in units as changes of inputs of this shape."""
        return np.asarray(found * self.units).reshape(len(found), *shape)


def space_of(model: Model, parts: Sequence[Part]) -> Space:
    """The space of the rows of a batch."""
    made = [_space(model, part) for part in parts]
    values, free, units = (
        np.concatenate([getattr(own, name) for own in made]) for name in ("values", "free", "units")
    )
    if any(own.lower is None for own in made):
        return Space(values, free, units, None, None)
    lower, upper = (np.concatenate([getattr(own, name) for own in made]) for name in ("lower", "upper"))
    return Space(values, free, units, lower, upper)


def values_of(input: Input) -> Array:
    """The numbers of an image or a table row."""
    if not isinstance(input, ImageInput | TableInput):
        raise InputError(
            "An attack perturbs numbers: it needs an image, a table row, or a text under a transformer."
        )
    values = input.pixels if isinstance(input, ImageInput) else input.values
    if values.dtype == object:
        raise InputError("An attack perturbs numbers, but the row holds categories.")
    return values


def _space(model: Model, part: Part) -> Space:
    input, n = part.input, len(part.rows)
    values = values_of(input).astype(np.float64).ravel()
    if isinstance(input, ImageInput):
        units = np.ones_like(values)
        low, high = (np.full_like(values, end) for end in pixel_range(values))
    elif model.background is not None:
        units, low, high = _column_ranges(model.background)
        low, high = np.minimum(low, values), np.maximum(high, values)
    else:
        units, low, high = np.ones_like(values), None, None
    free = part.question.sets[part.rows][:, owners(input).ravel()]

    def tiled(row: Floats) -> Floats:
        return np.tile(row, (n, 1))

    lower, upper = (None if end is None else tiled((end - values) / units) * free for end in (low, high))
    return Space(tiled(values / units), free, tiled(units), lower, upper)


def pixel_range(values: Floats) -> tuple[float, float]:
    """From 0 to 1 or to 255, as the values suggest, else what they are between."""
    low, high = float(values.min()), float(values.max())
    if low < 0:
        return low, high
    return 0.0, next((end for end in (1.0, 255.0) if high <= end), high)


def _column_ranges(background: Background) -> tuple[Floats, Floats, Floats]:
    """The standard deviation, the least and the greatest value of each column."""
    known = background.values.astype(np.float64)
    spread = np.nanstd(known, axis=0)
    return np.where(spread > 0, spread, 1.0), np.nanmin(known, axis=0), np.nanmax(known, axis=0)


def norms_by_feature(changes: Floats, owner: Ints, n_features: int, norm: str) -> Floats:
    """The norm of the part of each change (rows, values) that is each feature's (rows, features).

    `owner` (rows, values) is the feature that each value belongs to, −1 if to none.
    """
    rows = np.broadcast_to(np.arange(len(changes))[:, None], owner.shape)
    found = np.zeros((len(changes), n_features + 1))
    if norm == "linf":
        np.maximum.at(found, (rows, owner), np.abs(changes))
        return found[:, :-1]
    np.add.at(found, (rows, owner), changes.astype(np.float64) ** 2)
    return np.asarray(np.sqrt(found[:, :-1]))


def owners_of(parts: Sequence[Part]) -> Ints:
    """The feature that each value of each row belongs to."""
    return np.concatenate([np.tile(owners(part.input).ravel(), (len(part.rows), 1)) for part in parts])
