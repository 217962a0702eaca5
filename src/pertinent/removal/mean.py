"""Removed pixels take the image's mean colour, removed columns the background's mean."""

from __future__ import annotations

from dataclasses import dataclass

from pertinent.array_types import Array, Masks
from pertinent.inputs.base import Input
from pertinent.inputs.image import ImageInput
from pertinent.inputs.table import TableInput
from pertinent.removal.background import NeedsBackground
from pertinent.removal.base import Removal, removals
from pertinent.removal.fill import fill_image, fill_row


@removals.register("mean")
@dataclass(frozen=True)
class Mean(NeedsBackground, Removal):
    """The mean over the image per channel, or over the background per column (mode for categories)."""

    kinds = ("image", "table")
    summary = "set to the mean: of the image's colour, or of the column in the background"

    def __call__(self, input: Input, masks: Masks, seed: int) -> Array:
        """Rows with means in place of removed features."""
        del seed
        if isinstance(input, ImageInput):
            return fill_image(input, masks, input.pixels.mean(axis=(1, 2), keepdims=True))
        assert isinstance(input, TableInput)
        return fill_row(input, masks, self.rows_of(input).centre("mean"))
