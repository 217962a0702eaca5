"""Removed pixels or columns take uniform random values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pertinent.array_types import Array, Masks
from pertinent.errors import SettingError, require
from pertinent.inputs.base import Input
from pertinent.inputs.image import ImageInput
from pertinent.inputs.table import TableInput
from pertinent.removal.background import NeedsBackground
from pertinent.removal.base import Removal, removals, row_generators
from pertinent.removal.fill import fill_image, fill_row
from pertinent.settings import Count


@removals.register("uniform-noise")
@dataclass(frozen=True)
class UniformNoise(NeedsBackground, Removal):
    """Uniform noise between `low` and `high`; the prediction is averaged over `samples` draws per mask.

    The range defaults to the image's own, or to the column's in the background.
    """

    kinds = ("image", "table")
    summary = "replaced by uniform random values"
    low: float | None = None
    high: float | None = None
    samples: Count = 1

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        both = None not in (self.low, self.high)
        require(not both or self.low < self.high, "low", "below `high`", self.low)  # type: ignore[operator]

    @property
    def draws(self) -> int:
        """Rows per mask."""
        return self.samples

    @property
    def is_random(self) -> bool:
        """It draws."""
        return True

    def __call__(self, input: Input, masks: Masks, seed: int) -> Array:
        """Rows with noise in place of removed features."""
        low, high = self._range(input)
        shape = input.pixels.shape if isinstance(input, ImageInput) else input.values.shape  # type: ignore[attr-defined]
        generators = row_generators(input, masks, seed, self.name)
        noise = np.concatenate([g.uniform(low, high, (self.samples, *shape)) for g in generators])
        masks = np.repeat(masks, self.samples, axis=0)
        if isinstance(input, ImageInput):
            return fill_image(input, masks, noise)
        assert isinstance(input, TableInput)
        return fill_row(input, masks, noise)

    def check(self, input: Input) -> None:
        """Table columns must hold numbers."""
        super().check(input)
        if isinstance(input, TableInput) and (others := input.without_numbers()):
            raise SettingError(
                f"Uniform noise needs columns of numbers, which these are not: {', '.join(others)}; "
                "use 'background' instead."
            )

    def _column_ranges(self, input: TableInput) -> tuple[Array, Array]:
        """The background's smallest and largest value of each column."""
        background = self.rows_of(input)
        if background.values.dtype == object:
            raise SettingError("Uniform noise needs a background of numbers; use 'background' instead.")
        low, high = background.range()
        finite = np.isfinite(low) & np.isfinite(high)
        if not finite.all():
            names = ", ".join(input.names[i] for i in np.flatnonzero(~finite))
            raise SettingError(f"The background has no finite range in: {names}; use 'background' instead.")
        return low, high

    def _range(self, input: Input) -> tuple[Array, Array]:
        if isinstance(input, ImageInput):
            low, high = np.array(input.pixels.min()), np.array(input.pixels.max())
        else:
            assert isinstance(input, TableInput)
            low = high = np.zeros(len(input.values))
            if None in (self.low, self.high):
                low, high = self._column_ranges(input)
        return (
            low if self.low is None else np.full_like(low, self.low),
            high if self.high is None else np.full_like(high, self.high),
        )
