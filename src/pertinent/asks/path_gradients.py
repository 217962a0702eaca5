"""Path gradients: how does the answer change at points on a straight line to the input?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from pertinent.array_types import Array, Floats, Ints
from pertinent.asks.base import Part
from pertinent.asks.gradients import GradientQuestion, Gradients

if TYPE_CHECKING:
    from pertinent.models.base import Answer, Model
    from pertinent.removal.base import Removal


@dataclass(frozen=True, eq=False)
class PathGradients(GradientQuestion):
    """How does the target's probability (or plain value) change at points on a line to the input?

    The points are x′ + α (x − x′) for the α in `shares`. The baseline x′ is an array, or the input
    with all features removed by the removal `baseline`: by default a fixed one that suits the input,
    with ``"drawn"`` a random one. A random baseline is drawn once for each of `draws`. Answered with
    `Gradients`, which are multiplied as `times` says (by x − x′, by x, or not at all) and summed over
    each feature's parts; if they are multiplied by themselves, the root of the sum is their L2 norm.

    With `noise` each point is moved by σ ε, with ε standard normal, drawn once for each of `draws`, and
    the gradient is taken along ε. σ is `noise` times the standard deviation of the text's word embeddings,
    of the image's values, or of the column in the background (1 without one).
    """

    shares: Floats
    target: int
    baseline: str | Removal | Array | None = None
    times: Literal["difference", "input", "nothing", "itself"] = "difference"
    draws: Ints = field(default_factory=lambda: np.zeros(1, dtype=np.int64))
    noise: float = 0.0

    @property
    def keys(self) -> range:
        """The number of each row."""
        return range(len(self.shares))

    @staticmethod
    def submit(model: Model, parts: Sequence[Part]) -> Answer:
        """Differentiate at the points."""
        return model.submit_path_gradients(parts)

    def assemble(self, model: Model, answers: list[Any]) -> Gradients:
        """Gradients of the probability: those of its logarithm times the probability."""
        found = super().assemble(model, answers)
        if model.output.kind == "value":
            return found
        return Gradients(found.values, found.gradients * found.values[:, [self.target]])
