"""Path gradients: how does the answer change at points on a straight line to the input?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from pertinent.asks.base import Part
from pertinent.asks.gradients import GradientQuestion, Gradients
from pertinent.types import Array, Floats, Ints

if TYPE_CHECKING:
    from pertinent.models.base import Answer, Model
    from pertinent.removal.base import Removal


@dataclass(frozen=True, eq=False)
class PathGradients(GradientQuestion):
    """How does the target's probability (or plain value) change at points on a line to the input?

    The points are x′ + α (x − x′) for the α in `shares`; x′ is what `baseline` makes of the input
    when all its features are removed, or an array; by default what suits it, and ``"drawn"`` is a
    random one that does. A random baseline has a draw for each of `draws`. Answered with
    `Gradients`, which are summed over each feature's parts: times x − x′, times x, or as they are;
    times themselves, the root is taken of the sum, which is their length.
    """

    shares: Floats
    target: int
    baseline: str | Removal | Array | None = None
    times: Literal["difference", "input", "nothing", "itself"] = "difference"
    draws: Ints = field(default_factory=lambda: np.zeros(1, dtype=np.int64))

    @property
    def keys(self) -> range:
        """The number of each row."""
        return range(len(self.shares))

    @staticmethod
    def submit(model: Model, parts: Sequence[Part]) -> Answer:
        """Differentiate at the points."""
        return model.submit_path_gradients(parts)

    def assemble(self, model: Model, answers: list[Any]) -> Gradients:
        """Gradients of the probability: of its logarithm, times itself."""
        found = super().assemble(model, answers)
        if model.output.kind == "value":
            return found
        return Gradients(found.values, found.gradients * found.values[:, [self.target]])
