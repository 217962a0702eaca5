"""What an image or a table row is made of, and what it is where there is nothing."""

from __future__ import annotations

import numpy as np

from pertinent.inputs.base import Input
from pertinent.inputs.image import ImageInput
from pertinent.inputs.numbers import Numbers
from pertinent.inputs.table import TableInput
from pertinent.models.attack_space import pixel_range
from pertinent.models.base import Model
from pertinent.removal.base import Removal
from pertinent.removal.constant import Constant
from pertinent.removal.fill import owners


def numbers_of(model: Model, input: Input, removal: Removal) -> Numbers | None:
    """The numbers of an input; ``None`` for texts, and for rows that hold categories."""
    if isinstance(input, ImageInput):
        values = input.pixels
    elif isinstance(input, TableInput) and input.values.dtype != object:
        values = input.values
    else:
        return None
    values = values.astype(np.float64)
    absent = np.zeros(())
    if isinstance(removal, Constant):
        absent = np.array(removal.value)
    elif isinstance(input, ImageInput):
        absent = np.array(pixel_range(values)[0])
    elif model.background is not None:
        centre = model.background.centre("mean")
        if centre.dtype == object:
            return None
        absent = centre.astype(np.float64)
    return Numbers(values, np.broadcast_to(absent, values.shape), owners(input))
