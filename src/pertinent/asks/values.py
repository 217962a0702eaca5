"""Values: the model's outputs with only some of the features."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from pertinent.array_types import Floats, Ints, Masks
from pertinent.asks.base import BatchPart, Question, check_masks, usable_rows
from pertinent.masks import mask_bytes
from pertinent.outputs import Scale

if TYPE_CHECKING:
    from pertinent.inputs.base import Input
    from pertinent.models.base import Answer, Model
    from pertinent.removals.base import Removal


@dataclass(frozen=True, eq=False)
class Values(Question):
    """Requests the model's predictions with only some of the features.

    Answered with an array (masks, columns) on the scale. Each distinct mask costs 1, regardless of the scale.
    If a removal makes several random draws, the answer is their mean on that scale. With `groups`, the number
    of groups of draws, the columns are repeated for each group, using the mean over all draws outside it.
    """

    remembered = True
    masks: Masks
    scale: Scale = "natural"
    groups: int = 0

    @cached_property
    def mask_keys(self) -> list[bytes]:
        """Return a key for each mask that does not depend on the scale."""
        return mask_bytes(self.masks)

    @cached_property
    def keys(self) -> list[bytes]:
        """Return a key for each mask on the scale."""
        scale = self.scale.encode()
        return self.mask_keys if self.scale == "natural" else [mask + scale for mask in self.mask_keys]

    def price(self, paid: set[Hashable]) -> int:
        """Return 1 for each new mask, regardless of the scale."""
        before = len(paid)
        paid.update(self.mask_keys)
        return len(paid) - before

    def on_scale(self, scale: Scale, groups: int = 0) -> Values:
        """Return the question on a scale and for a number of groups of draws."""
        return replace(self, scale=scale, groups=groups)

    def check(self, input: Input) -> None:
        """Raise a `TypeError` unless the masks fit the input's features."""
        check_masks(self.masks, input)

    def costs(self, model: Model, input: Input, removal: Removal, rows: Ints) -> Ints:
        """Return the number of tokens, rows or bytes that the model computes for each mask."""
        return model.cost(removal, input, self.masks if len(rows) == len(self.masks) else self.masks[rows])

    @classmethod
    def handle(cls, model: Model, parts: Sequence[BatchPart]) -> Answer:
        """Remove the features and run the model on the rows."""
        return model.submit([p.removal(p.input, p.question.masks.take(p.rows, 0), p.seed) for p in parts])

    def n_pieces(self, removal: Removal) -> int:
        """Return the number of draws of the removal."""
        return removal.draws

    @classmethod
    def submit_divided(cls, model: Model, part: BatchPart, n_at_once: int) -> Answer:
        """Run the model on a few draws of a mask at a time."""
        rows = part.removal(part.input, part.question.masks[part.rows], part.seed)
        firsts = range(0, part.removal.draws, n_at_once)
        answers = [model.submit([rows[first : first + n_at_once]]) for first in firsts]
        outputs = np.concatenate([np.asarray(answer.outputs()) for answer in answers])
        return replace(
            answers[0], outputs=lambda: outputs, seconds=lambda: sum(answer.seconds() for answer in answers)
        )

    @staticmethod
    def read(model: Model, outputs: Any, parts: Sequence[BatchPart]) -> list[Sequence[Any] | Exception]:
        """Return the mean over the draws of each mask, or `_means` if the draws have groups."""
        answers: list[Any] = usable_rows(model, outputs, parts, [part.removal.draws for part in parts])
        usable = [i for i in range(len(parts)) if not isinstance(answers[i], Exception)]
        for scale in {part.question.scale for part in parts}:
            indexes = [i for i in usable if parts[i].question.scale == scale]
            scaled = _on_scale(model, [(parts[i].input, answers[i]) for i in indexes], scale)
            for i, rows in zip(indexes, scaled, strict=True):
                answers[i] = _means(rows, parts[i].removal)
        return answers

    def assemble(self, model: Model, input: Input, answers: list[Floats]) -> Floats:
        """Return an array (masks, columns), or (masks, (1 + groups) · columns)."""
        if not answers:
            return np.empty((0, (1 + self.groups) * len(model.columns_of(input))))
        outputs = np.array(answers)
        if outputs.ndim == 3:
            outputs = outputs[:, : 1 + self.groups]
        return outputs.reshape(len(answers), -1)


def _on_scale(model: Model, answers: list[tuple[Input, Floats]], scale: Scale) -> list[Floats]:
    """Convert the rows of each input to a scale, together if all inputs have the same columns."""
    if model.columns_differ or len(answers) < 2:
        return [model.as_scale(input, rows, scale) for input, rows in answers]
    ends = np.cumsum([len(rows) for _, rows in answers]).tolist()
    scaled = model.as_scale(answers[0][0], np.concatenate([rows for _, rows in answers]), scale)
    return [scaled[first:end] for first, end in pairwise([0, *ends])]


def _means(rows: Floats, removal: Removal) -> Floats:
    """Return the mean over all draws of each mask (masks, columns).

    If the removal has groups of draws, return (masks, 1 + groups, columns), where the additional rows are the
    means over all draws outside each group.
    """
    if removal.draws == 1:
        return rows
    drawn = rows.reshape(-1, removal.draws, rows.shape[1])
    means = [drawn.mean(axis=1), *(np.delete(drawn, group, axis=1).mean(axis=1) for group in removal.groups)]
    return np.stack(means, axis=1) if removal.groups else means[0]


@dataclass(frozen=True, eq=False)
class RepeatedValues(Values):
    """Like `Values`, but evaluated by the model even if the answer is cached."""

    remembered = False

    @classmethod
    def handle(cls, model: Model, parts: Sequence[BatchPart]) -> Answer:
        """Remove the features and run the model on the rows again."""
        return model.resubmit([p.removal(p.input, p.question.masks.take(p.rows, 0), p.seed) for p in parts])
