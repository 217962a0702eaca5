"""Removed columns take the background's median, or its mode where the column is a category."""

from __future__ import annotations

from dataclasses import dataclass

from pertinent.array_types import Array, Masks
from pertinent.inputs.base import Input
from pertinent.inputs.table import TableInput
from pertinent.removal.background import NeedsBackground
from pertinent.removal.base import Removal, removals
from pertinent.removal.fill import fill_row


@removals.register("median-mode")
@dataclass(frozen=True)
class MedianMode(NeedsBackground, Removal):
    """The median or mode of each column, a value that occurs: one-hot and integer columns stay valid."""

    kinds = ("table",)
    summary = "set to the column's median, or mode for a category"

    def __call__(self, input: Input, masks: Masks, seed: int) -> Array:
        """Rows with medians or modes in place of removed features."""
        del seed
        assert isinstance(input, TableInput)
        return fill_row(input, masks, self.rows_of(input).centre("median"))
