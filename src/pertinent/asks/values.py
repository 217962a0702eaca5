"""Values: what does the model answer with only these features?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from pertinent.array_types import Floats, Ints, Masks
from pertinent.asks.base import Part, Question, check_masks, usable_rows
from pertinent.masks import mask_bytes
from pertinent.outputs import Output, Scale

if TYPE_CHECKING:
    from pertinent.inputs.base import Input
    from pertinent.models.base import Answer, Model
    from pertinent.removal.base import Removal


@dataclass(frozen=True, eq=False)
class Values(Question):
    """What does the model answer with only these features?

    Answered with an array (masks, columns) of probabilities or values, or of logits. Each distinct
    mask costs 1. If a removal makes several random draws, their mean is the answer; with `groups`, as many
    as the removal has, the columns are repeated for each group of draws, with the group left out of the mean.
    """

    remembered = True
    masks: Masks
    scale: Scale = "natural"
    groups: int = 0

    @cached_property
    def keys(self) -> list[bytes]:
        """A key for each mask."""
        return mask_bytes(self.masks)

    def on_scale(self, scale: Scale, groups: int = 0) -> Values:
        """The same question on this scale, with this number of groups of draws."""
        return replace(self, scale=scale, groups=groups)

    def check(self, input: Input) -> None:
        """Masks must be over the input's features."""
        check_masks(self.masks, input)

    def costs(self, model: Model, input: Input, removal: Removal, rows: Ints) -> Ints:
        """The tokens, rows or bytes that the model will compute for each mask."""
        return model.cost(removal, input, self.masks if len(rows) == len(self.masks) else self.masks[rows])

    @classmethod
    def handle(cls, model: Model, parts: Sequence[Part]) -> Answer:
        """Remove the features and run the model on the rows."""
        return model.submit([p.removal(p.input, p.question.masks[p.rows], p.seed) for p in parts])

    @staticmethod
    def read(model: Model, outputs: Any, parts: Sequence[Part]) -> list[Sequence[Any] | Exception]:
        """For each mask the mean over its draws, or `_means` (1 + groups, columns) if draws have groups."""
        found = usable_rows(model, outputs, parts, [part.removal.draws for part in parts])
        means: list[Any] = [
            rows
            if isinstance(rows, Exception) or part.removal.draws == 1
            else _means(rows, part.removal, model.output)
            for part, rows in zip(parts, found, strict=True)
        ]
        return means

    def assemble(self, model: Model, input: Input, answers: list[Floats]) -> Floats:
        """An array (masks, columns), or (masks, (1 + groups) · columns)."""
        if not answers:
            return np.empty((0, (1 + self.groups) * len(model.columns_of(input))))
        outputs = np.array(answers)
        if outputs.ndim == 3:
            outputs = outputs[:, : 1 + self.groups].reshape(-1, outputs.shape[2])
        return model.output.as_scale(outputs, self.scale).reshape(len(answers), -1)


def _means(rows: Floats, removal: Removal, output: Output) -> Floats:
    """The mean over all draws of each mask (masks, columns).

    If the removal has groups of draws: (masks, 1 + groups, columns), where the further rows are the means
    over all draws outside of each group.
    """
    mean = output.average(rows, removal.draws)
    if not removal.groups:
        return mean
    drawn = rows.reshape(-1, removal.draws, rows.shape[1])
    rests = [np.delete(drawn, group, axis=1) for group in removal.groups]
    means = [output.average(rest.reshape(-1, rows.shape[1]), rest.shape[1]) for rest in rests]
    return np.stack([mean, *means], axis=1)


@dataclass(frozen=True, eq=False)
class RepeatedValues(Values):
    """Like `Values`, but the model is asked again even if the answer is cached."""

    remembered = False
