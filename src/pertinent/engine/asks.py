"""What an algorithm may yield. The engine answers asks of the same kind together, across inputs."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from pertinent.inputs.base import mask_bytes
from pertinent.types import Array, Floats, Ints, Masks

if TYPE_CHECKING:
    from pertinent.removal.base import Removal


@dataclass(frozen=True, eq=False)
class Values:
    """What does the model say with only these features?

    Answered with an array (masks, classes) of probabilities or logits.
    """

    masks: Masks
    output: Literal["probability", "logit"] = "probability"

    @cached_property
    def keys(self) -> list[bytes]:
        """A hashable name for each mask."""
        return mask_bytes(self.masks)


@dataclass(frozen=True, eq=False)
class Gradients:
    """The answer to an ask for gradients: class probabilities (rows, classes), slopes (rows, features)."""

    values: Floats
    slopes: Floats


@dataclass(frozen=True, eq=False)
class MaskGradients:
    """How would the target's log-probability change with each entry of these masks?

    Answered with `Gradients`. Where features are hidden from attention, that is the derivative of
    softmax × mask, renormalised; where values are filled in, of mask · x + (1 − mask) · filler.
    """

    masks: Masks
    target: int

    @property
    def keys(self) -> list[int]:
        """The number of each row."""
        return list(range(len(self.masks)))


@dataclass(frozen=True, eq=False)
class PathGradients:
    """How does the target's probability change at points on a straight line to the input?

    The points are x′ + α (x − x′) for the α in `shares`; x′ is what `baseline` makes of the input
    when all its features are removed, or an array; by default what suits it, and ``"drawn"`` is a
    random one that does. A random baseline has a draw for each of `draws`. Answered with
    `Gradients`, whose slopes are summed over each feature's parts: times x − x′, times x, or as
    they are; times themselves, the root is taken of the sum, which is their length.
    """

    shares: Floats
    target: int
    baseline: str | Removal | Array | None = None
    times: Literal["difference", "input", "nothing", "itself"] = "difference"
    draws: Ints = field(default_factory=lambda: np.zeros(1, dtype=np.int64))

    @property
    def keys(self) -> list[int]:
        """The number of each row."""
        return list(range(len(self.shares)))


@dataclass(frozen=True, eq=False)
class Fork:
    """Run these algorithms side by side on the same input.

    Answered with the list of what they returned.
    """

    branches: Sequence[Algorithm]


Slopes: TypeAlias = MaskGradients | PathGradients
Question: TypeAlias = Values | Slopes
Ask: TypeAlias = Question | Fork
Algorithm: TypeAlias = Generator[Ask, Any, Any]
