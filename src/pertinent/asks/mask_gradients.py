"""Mask gradients: how would the answer change with each entry of these masks?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pertinent.array_types import Floats, Masks
from pertinent.asks.base import Part, check_masks
from pertinent.asks.gradients import GradientQuestion

if TYPE_CHECKING:
    from pertinent.inputs.base import Input
    from pertinent.models.base import Answer, Model


@dataclass(frozen=True, eq=False)
class MaskGradients(GradientQuestion):
    """How would the target's log-probability (or plain value) change with each entry of these masks?

    Answered with `Gradients`. Where features are hidden from attention, that is the derivative of
    softmax × mask, renormalised; where values or word embeddings are filled in, of
    mask · x + (1 − mask) · filler. Masks may be soft: of numbers from 0 to 1, the shares that are kept.
    """

    masks: Masks | Floats
    target: int

    @property
    def keys(self) -> range:
        """The number of each row."""
        return range(len(self.masks))

    def check(self, input: Input) -> None:
        """Masks must be over the input's features, and between 0 and 1."""
        if self.masks.dtype.kind != "f":
            check_masks(self.masks, input)  # type: ignore[arg-type]
            return
        check_masks(np.ones(self.masks.shape, dtype=np.bool_), input)
        if not ((self.masks >= 0) & (self.masks <= 1)).all():
            raise TypeError("Soft masks must be from 0 to 1.")

    @staticmethod
    def submit(model: Model, parts: Sequence[Part]) -> Answer:
        """Differentiate along the masks."""
        return model.submit_mask_gradients(parts)
