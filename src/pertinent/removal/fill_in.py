"""Removals that fill in one value for each removed value: a constant, a mean, a median, a blur."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pertinent.array_types import Array, Masks
from pertinent.errors import SettingError
from pertinent.inputs.array_input import ArrayInput
from pertinent.inputs.image import ImageInput
from pertinent.inputs.table import TableInput
from pertinent.removal.base import Removal, removals
from pertinent.removal.drawn_values import NeedsBackground
from pertinent.settings import Positive


@removals.register("constant")
@dataclass(frozen=True)
class Constant(Removal):
    """Every removed pixel or column becomes `value`."""

    inputs = ArrayInput
    summary = "set to one value, 0 by default"
    value: float = 0.0

    @property
    def constant(self) -> float:
        """The value."""
        return self.value

    def check(self, input: ArrayInput) -> None:
        """Table columns must hold numbers."""
        super().check(input)
        if others := input.without_numbers():
            raise SettingError(
                f"The removal 'constant' puts {self.value:g} into removed columns, but these do not hold "
                f"numbers: {', '.join(others)}. Pass background= some rows, such as a sample of the training "
                "data, to wrap()."
            )

    def __call__(self, input: ArrayInput, masks: Masks, seed: int) -> Array:
        """Rows with the constant in place of removed features."""
        return input.fill(masks, np.array(self.value))


@removals.register("mean")
@dataclass(frozen=True)
class Mean(NeedsBackground, Removal):
    """The mean over the image per channel, or over the background per column (mode for categories)."""

    inputs = ArrayInput
    summary = "set to the mean: of the image's colour, or of the column in the background"

    def __call__(self, input: ArrayInput, masks: Masks, seed: int) -> Array:
        """Rows with means in place of removed features."""
        return input.fill(masks, input.mean(self.background))


@removals.register("median-mode")
@dataclass(frozen=True)
class MedianMode(NeedsBackground, Removal):
    """The median or mode of each column, a value that occurs: one-hot and integer columns stay valid."""

    inputs = TableInput
    summary = "set to the column's median, or mode for a category"

    def __call__(self, input: TableInput, masks: Masks, seed: int) -> Array:
        """Rows with medians or modes in place of removed features."""
        return input.fill(masks, input.background_rows(self.background).centre("median"))


@removals.register("blur")
@dataclass(frozen=True)
class Blur(Removal):
    """Removed pixels come from a Gaussian blur of the image.

    `sigma` is in pixels; by default an eighth of the longer side.
    """

    inputs = ImageInput
    summary = "replaced by a Gaussian blur of the image"
    sigma: Positive | None = None

    def __call__(self, input: ImageInput, masks: Masks, seed: int) -> Array:
        """Rows with blurred pixels in place of removed features."""
        sigma = self.sigma or max(input.pixels.shape[1:]) / 8
        return input.fill(masks, _gaussian(_gaussian(input.pixels, sigma, 1), sigma, 2))


def _gaussian(pixels: Array, sigma: float, axis: int) -> Array:
    """A Gaussian average along one axis, with the border repeated."""
    reach = int(np.ceil(3 * sigma))
    weights = np.exp(-0.5 * (np.arange(-reach, reach + 1) / sigma) ** 2)
    border = [(reach, reach) if a == axis else (0, 0) for a in range(pixels.ndim)]
    windows = np.lib.stride_tricks.sliding_window_view(
        np.pad(pixels, border, mode="edge"), 2 * reach + 1, axis=axis
    )
    return np.asarray(windows @ (weights / weights.sum()).astype(pixels.dtype))
