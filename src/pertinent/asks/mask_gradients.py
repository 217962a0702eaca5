"""Mask gradients: how would the answer change with each entry of these masks?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pertinent.asks.base import Part, check_masks
from pertinent.asks.gradients import GradientQuestion
from pertinent.types import Masks

if TYPE_CHECKING:
    from pertinent.inputs.base import Input
    from pertinent.models.base import Answer, Model


@dataclass(frozen=True, eq=False)
class MaskGradients(GradientQuestion):
    """How would the target's log-probability (or plain value) change with each entry of these masks?

    Answered with `Gradients`. Where features are hidden from attention, that is the derivative of
    softmax × mask, renormalised; where values are filled in, of mask · x + (1 − mask) · filler.
    """

    masks: Masks
    target: int

    @property
    def keys(self) -> range:
        """The number of each row."""
        return range(len(self.masks))

    def check(self, input: Input) -> None:
        """Masks must be over the input's features."""
        check_masks(self.masks, input)

    @staticmethod
    def submit(model: Model, parts: Sequence[Part]) -> Answer:
        """Differentiate along the masks."""
        return model.submit_mask_gradients(parts)
