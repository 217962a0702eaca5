"""Filling the removed parts of images and table rows: shared by the removals that replace values."""

from __future__ import annotations

import numpy as np

from pertinent.inputs.base import Input
from pertinent.inputs.image import ImageInput
from pertinent.inputs.table import TableInput
from pertinent.types import Array, Ints, Masks


def fill_image(given: ImageInput, masks: Masks, filler: Array) -> Array:
    """Images (rows, channels, height, width); `filler` broadcasts against them."""
    return np.where(masks[:, given.labels][:, None], given.pixels, filler.astype(given.pixels.dtype))


def fill_row(given: TableInput, masks: Masks, filler: Array) -> Array:
    """Table rows (rows, columns); `filler` broadcasts against them."""
    return np.where(masks[:, owners(given)], given.values, filler)


def owners(given: Input) -> Ints:
    """The feature that each value of an image or a table row belongs to."""
    if isinstance(given, ImageInput):
        return np.broadcast_to(given.labels, given.pixels.shape)
    assert isinstance(given, TableInput)
    feature = np.empty(len(given.values), dtype=np.int64)
    for i, columns in enumerate(given.columns):
        feature[list(columns)] = i
    return feature
