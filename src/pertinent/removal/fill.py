"""Filling the removed parts of images and table rows: shared by the removals that replace values."""

from __future__ import annotations

import numpy as np

from pertinent.array_types import Array, Ints, Masks
from pertinent.inputs.base import Input
from pertinent.inputs.image import ImageInput
from pertinent.inputs.table import TableInput


def fill_image(input: ImageInput, masks: Masks, filler: Array) -> Array:
    """Images (rows, channels, height, width), which `filler` broadcasts against, in the order given."""
    images = np.where(masks[:, input.labels][:, None], input.pixels, filler.astype(input.pixels.dtype))
    return np.moveaxis(images, 1, -1) if input.channels_last else images


def fill_row(input: TableInput, masks: Masks, filler: Array) -> Array:
    """Table rows (rows, columns); `filler` broadcasts against them."""
    return np.where(masks[:, owners(input)], input.values, filler)


def owners(input: Input) -> Ints:
    """The feature that each value of an image or a table row belongs to."""
    if isinstance(input, ImageInput):
        return np.broadcast_to(input.labels, input.pixels.shape)
    assert isinstance(input, TableInput)
    return input.owners
