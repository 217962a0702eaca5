"""Removals for images and tables: background rows, noise, constants, means and blurs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from pertinent.array_types import Array, Ints, Masks
from pertinent.config.fingerprints import generator
from pertinent.config.settings import Count, Positive, changed_settings
from pertinent.errors import SettingError, require
from pertinent.inputs.background import Background
from pertinent.inputs.base import ArrayInput
from pertinent.inputs.image import ImageInput
from pertinent.inputs.table import TableInput
from pertinent.removals.base import NOT_KEPT, Removal, removals, row_generators

if TYPE_CHECKING:
    from typing import Self

    from pertinent.models.base import Model


@dataclass(frozen=True)
class NeedsBackground:
    """A removal that may use the background passed to `wrap`: table rows or images.

    Parameters
    ----------
    background
        Table rows or images; by default those passed to `wrap`.
    """

    background: Background | None = field(default=None, kw_only=True, compare=False, repr=False)

    def bind(self, model: Model) -> Self:
        """Return this removal, with the model's background if it has none."""
        return self if self.background is not None else replace(self, background=model.background)

    def settings(self, model: Model) -> dict[str, Any]:
        """Return the settings without the model's background; another background becomes a placeholder."""
        settings = changed_settings(self)
        background = settings.pop("background", None)
        return settings if background is model.background else {**settings, "background": NOT_KEPT}


@removals.register("background")
@dataclass(frozen=True)
class FromBackground(NeedsBackground, Removal):
    """Interventional removal: all removed columns or pixels come from one row or image of the background.

    The prediction is averaged over `rows` background rows, drawn once per seed. All masks and inputs share
    them, so a column that the model ignores scores exactly 0. A background with at most `rows` rows is used
    in full, and the result is not random.

    Parameters
    ----------
    rows
        Largest number of background rows.
    """

    inputs = ArrayInput
    summary = "filled from background rows or images and averaged (interventional)"
    rows: Count = 100

    @property
    def draws(self) -> int:
        """Return the number of rows per mask."""
        return min(self.rows, len(self.background.values)) if self.background else self.rows

    @property
    def is_random(self) -> bool:
        """Return whether only some background rows are used."""
        return self.background is not None and len(self.background.values) > self.rows

    @property
    def undrawn(self) -> float:
        """Return the share of background rows that are not used, in [0, 1]."""
        return 1 - self.draws / len(self.background.values) if self.background else 1.0

    def __call__(self, input: ArrayInput, masks: Masks, seed: int) -> Array:
        """Return `draws` rows per mask, filled from the background."""
        background = input.background_rows(self.background).values
        if self.is_random:
            background = background[_draw_rows(len(background), self.rows, seed)]
        filler = np.tile(background, (len(masks), *[1] * (background.ndim - 1)))
        return input.fill(np.repeat(masks, self.draws, axis=0), filler)


@lru_cache
def _draw_rows(n: int, rows: int, seed: int) -> Ints:
    return np.sort(generator(seed, "background", n).choice(n, rows, replace=False))


@removals.register("uniform-noise")
@dataclass(frozen=True)
class UniformNoise(NeedsBackground, Removal):
    """Uniform noise between `low` and `high`; the prediction is averaged over `samples` draws per mask.

    Parameters
    ----------
    low, high
        The range of the noise; by default that of the image, or of the column in the background.
    samples
        Draws per mask.
    """

    inputs = ArrayInput
    summary = "replaced by uniform random values"
    is_random = True
    low: float | None = None
    high: float | None = None
    samples: Count = 1

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        both = None not in (self.low, self.high)
        require(not both or self.low < self.high, "low", "below `high`", self.low)  # type: ignore[operator]

    def check(self, input: ArrayInput) -> None:
        """Raise a `SettingError` for table columns that are not numeric."""
        super().check(input)
        if categorical := input.without_numbers():
            raise SettingError(
                f"The removal 'uniform-noise' needs numeric columns, got {', '.join(categorical)}: "
                "use 'background' instead."
            )

    def __call__(self, input: ArrayInput, masks: Masks, seed: int) -> Array:
        """Return `samples` rows per mask, with noise for the removed features."""
        low = high = np.zeros((), input.dtype)
        if self.low is None or self.high is None:
            low, high = input.value_range(self.background)
        low = low if self.low is None else np.full_like(low, self.low)
        high = high if self.high is None else np.full_like(high, self.high)
        shape = (self.samples, *input.array.shape)
        noise = [g.uniform(low, high, shape) for g in row_generators(input, masks, seed, self.name)]
        return input.fill(np.repeat(masks, self.samples, axis=0), np.concatenate(noise))


@removals.register("constant")
@dataclass(frozen=True)
class Constant(Removal):
    """Replacement of every removed pixel or column by `value`.

    Parameters
    ----------
    value
        The value of removed pixels and columns.
    """

    inputs = ArrayInput
    summary = "set to one value, 0 by default"
    value: float = 0.0

    @property
    def constant(self) -> float:
        """Return the value."""
        return self.value

    def check(self, input: ArrayInput) -> None:
        """Raise a `SettingError` for table columns that are not numeric."""
        super().check(input)
        if categorical := input.without_numbers():
            raise SettingError(
                f"The removal 'constant' sets removed columns to {self.value:g}, but these columns are not "
                f"numeric: {', '.join(categorical)}. Pass some training rows to wrap(…, background=rows)."
            )

    def __call__(self, input: ArrayInput, masks: Masks, seed: int) -> Array:
        """Return one row per mask, with the constant for the removed features."""
        return input.fill(masks, np.array(self.value))


@removals.register("mean")
@dataclass(frozen=True)
class Mean(NeedsBackground, Removal):
    """The mean over the image per channel, or over the background per column (mode for categories)."""

    inputs = ArrayInput
    summary = "set to the mean: of the image's colour, or of the column in the background"

    def __call__(self, input: ArrayInput, masks: Masks, seed: int) -> Array:
        """Return one row per mask, with means for the removed features."""
        return input.fill(masks, input.mean(self.background))


@removals.register("median-mode")
@dataclass(frozen=True)
class MedianMode(NeedsBackground, Removal):
    """The median or mode of each column: an observed value, valid for one-hot and integer columns."""

    inputs = TableInput
    summary = "set to the column's median, or mode for a category"

    def __call__(self, input: TableInput, masks: Masks, seed: int) -> Array:
        """Return one row per mask, with medians or modes for the removed features."""
        return input.fill(masks, input.background_rows(self.background).centre("median"))


@removals.register("blur")
@dataclass(frozen=True)
class Blur(Removal):
    """Gaussian blur of the removed pixels.

    Parameters
    ----------
    sigma
        Standard deviation of the Gaussian in pixels; by default an eighth of the longer side.
    """

    inputs = ImageInput
    summary = "replaced by a Gaussian blur of the image"
    sigma: Positive | None = None

    def __call__(self, input: ImageInput, masks: Masks, seed: int) -> Array:
        """Return one row per mask, with blurred pixels for the removed features."""
        sigma = self.sigma or max(input.pixels.shape[1:]) / 8
        return input.fill(masks, _gaussian(_gaussian(input.pixels, sigma, 1), sigma, 2))


def _gaussian(pixels: Array, sigma: float, axis: int) -> Array:
    """Return Gaussian averages along one axis; the border is padded with its edge values."""
    reach = int(np.ceil(3 * sigma))
    weights = np.exp(-0.5 * (np.arange(-reach, reach + 1) / sigma) ** 2)
    border = [(reach, reach) if a == axis else (0, 0) for a in range(pixels.ndim)]
    windows = np.lib.stride_tricks.sliding_window_view(
        np.pad(pixels, border, mode="edge"), 2 * reach + 1, axis=axis
    )
    return np.asarray(windows @ (weights / weights.sum()).astype(pixels.dtype))
