"""Removed pixels or columns take one constant value."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pertinent.array_types import Array, Masks
from pertinent.errors import SettingError
from pertinent.inputs.base import Input
from pertinent.inputs.image import ImageInput
from pertinent.inputs.table import TableInput
from pertinent.removal.base import Removal, removals
from pertinent.removal.fill import fill_image, fill_row


@removals.register("constant")
@dataclass(frozen=True)
class Constant(Removal):
    """Every removed pixel or column becomes `value`."""

    kinds = ("image", "table")
    summary = "set to one value, 0 by default"
    value: float = 0.0

    def check(self, input: Input) -> None:
        """Table columns must hold numbers."""
        super().check(input)
        if isinstance(input, TableInput) and (others := input.without_numbers()):
            raise SettingError(
                f"The removal 'constant' puts {self.value:g} into removed columns, but these do not hold "
                f"numbers: {', '.join(others)}. Pass background= some rows, such as a sample of the training "
                "data, to wrap()."
            )

    def __call__(self, input: Input, masks: Masks, seed: int) -> Array:
        """Rows with the constant in place of removed features."""
        del seed
        filler = np.array(self.value)
        if isinstance(input, ImageInput):
            return fill_image(input, masks, filler)
        assert isinstance(input, TableInput)
        return fill_row(input, masks, filler)
