"""Removed pixels are blurred."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pertinent.array_types import Array, Masks
from pertinent.inputs.base import Input
from pertinent.inputs.image import ImageInput
from pertinent.removal.base import Removal, removals
from pertinent.removal.fill import fill_image
from pertinent.settings import Positive


@removals.register("blur")
@dataclass(frozen=True)
class Blur(Removal):
    """Removed pixels come from a Gaussian blur of the image.

    `sigma` is in pixels; by default an eighth of the longer side.
    """

    kinds = ("image",)
    summary = "replaced by a Gaussian blur of the image"
    sigma: Positive | None = None

    def __call__(self, input: Input, masks: Masks, seed: int) -> Array:
        """Rows with blurred pixels in place of removed features."""
        del seed
        assert isinstance(input, ImageInput)
        sigma = self.sigma or max(input.pixels.shape[1:]) / 8
        return fill_image(input, masks, _gaussian(_gaussian(input.pixels, sigma, 1), sigma, 2))


def _gaussian(pixels: Array, sigma: float, axis: int) -> Array:
    """A Gaussian average along one axis, with the border repeated."""
    reach = int(np.ceil(3 * sigma))
    weights = np.exp(-0.5 * (np.arange(-reach, reach + 1) / sigma) ** 2)
    border = [(reach, reach) if a == axis else (0, 0) for a in range(pixels.ndim)]
    windows = np.lib.stride_tricks.sliding_window_view(
        np.pad(pixels, border, mode="edge"), 2 * reach + 1, axis=axis
    )
    return np.asarray(windows @ (weights / weights.sum()).astype(pixels.dtype))
