"""Perplexity of the kept tokens of a prompt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from pertinent.array_types import Floats, Ints, Masks
from pertinent.asks.base import BatchPart, Question, check_masks, split
from pertinent.errors import ModelError
from pertinent.masks import mask_bytes

if TYPE_CHECKING:
    from pertinent.inputs.base import Input
    from pertinent.models.base import Model
    from pertinent.removals.base import Removal


@dataclass(frozen=True, eq=False)
class TokenPerplexity(Question):
    """Asks how surprised a language model is by its prompt with only these features.

    Answered with an array (masks,): the mean of −log p over the kept tokens, each conditioned on the
    preceding tokens, in nats. The first token of a row, fixed tokens and the answer's tokens are not counted.
    Each distinct mask costs 1. If a removal makes several random draws, the answer is their mean.
    """

    refusal = "This model returns no likelihood of its input, so the perplexity cannot be computed."
    masks: Masks

    @cached_property
    def keys(self) -> list[bytes]:
        """Return a key for each mask."""
        return mask_bytes(self.masks)

    def check(self, input: Input) -> None:
        """Raise a `TypeError` unless the masks fit the input's features."""
        check_masks(self.masks, input)

    def costs(self, model: Model, input: Input, removal: Removal, rows: Ints) -> Ints:
        """Return the number of tokens that the model computes for each mask."""
        return model.cost(removal, input, self.masks[rows])

    @staticmethod
    def read(model: Model, outputs: Any, parts: Sequence[BatchPart]) -> list[Sequence[Any] | Exception]:
        """Return the mean over the draws of each mask."""
        drawn = split(outputs, parts, [part.removal.draws for part in parts])
        return [
            values.reshape(len(part.rows), -1).mean(axis=1)
            if np.isfinite(values).all()
            else ModelError("The likelihood of a prompt's tokens is NaN or infinite.")
            for part, values in zip(parts, drawn, strict=True)
        ]

    def assemble(self, model: Model, input: Input, answers: list[float]) -> Floats:
        """Return an array (masks,)."""
        return np.array(answers, dtype=np.float64)
