"""Removed columns take the values of rows drawn from a background set."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from pertinent.array_types import Array, Ints, Masks
from pertinent.digests import generator
from pertinent.errors import SettingError
from pertinent.inputs.base import Input
from pertinent.inputs.table import Background, TableInput
from pertinent.registry import settings_of
from pertinent.removal.base import NOT_KEPT, Removal, removals
from pertinent.removal.fill import fill_row
from pertinent.settings import Count

if TYPE_CHECKING:
    from typing_extensions import Self

    from pertinent.models.base import Model


@dataclass(frozen=True)
class NeedsBackground:
    """A removal that fills table columns from background rows given when the model was wrapped."""

    background: Background | None = field(default=None, kw_only=True, compare=False, repr=False)

    def bind(self, model: Model) -> Self:
        """The same removal with the model's background rows, unless it has its own."""
        return self if self.background is not None else replace(self, background=model.background)

    def settings(self, model: Model) -> dict[str, Any]:
        """The settings; the model's own background is left out, any other is saved as a placeholder."""
        settings = settings_of(self)
        background = settings.pop("background", None)
        return settings if background is model.background else {**settings, "background": NOT_KEPT}

    def rows_of(self, input: TableInput) -> Background:
        """The background, after a check that it has the columns of the row."""
        if self.background is None:
            raise SettingError(
                "This removal fills columns from a background set: wrap the model with "
                "`background=` some rows, such as a sample of the training data."
            )
        self.background.check_width(len(input.values), "row")
        return self.background


@removals.register("background")
@dataclass(frozen=True)
class FromBackground(NeedsBackground, Removal):
    """Interventional removal: all removed columns of a row come from one background row.

    The prediction is averaged over `rows` background rows, drawn once for a seed: the same for all masks
    and inputs, so that a column that the model does not use scores exactly 0. If the background has no
    more rows than that, all are used and nothing is random.
    """

    kinds = ("table",)
    summary = "filled from background rows and averaged (interventional)"
    rows: Count = 100

    @property
    def draws(self) -> int:
        """Rows per mask."""
        return min(self.rows, len(self.background.values)) if self.background else self.rows

    @property
    def is_random(self) -> bool:
        """True unless all rows are used."""
        return self.background is not None and len(self.background.values) > self.rows

    @property
    def undrawn(self) -> float:
        """The share of background rows that are not used."""
        return 1 - self.draws / len(self.background.values) if self.background else 1.0

    def __call__(self, input: Input, masks: Masks, seed: int) -> Array:
        """`draws` rows per mask."""
        assert isinstance(input, TableInput)
        background = self.rows_of(input).values
        if self.is_random:
            background = background[_draw_rows(len(background), self.rows, seed)]
        return fill_row(input, np.repeat(masks, self.draws, axis=0), np.tile(background, (len(masks), 1)))


@lru_cache
def _draw_rows(n: int, rows: int, seed: int) -> Ints:
    """The numbers of some background rows."""
    return np.sort(generator(seed, "background", n).choice(n, rows, replace=False))
