"""What an algorithm may yield. The engine answers asks of the same kind together, across inputs."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

from pertinent.inputs.base import mask_bytes
from pertinent.types import Masks


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
class Fork:
    """Run these algorithms side by side on the same input.

    Answered with the list of what they returned.
    """

    branches: Sequence[Algorithm]


Ask: TypeAlias = Values | Fork
Algorithm: TypeAlias = Generator[Ask, Any, Any]
