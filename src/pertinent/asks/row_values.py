"""Row values: the model's outputs for inputs with different values."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pertinent.array_types import Floats
from pertinent.asks.base import BatchPart, Question, usable_rows
from pertinent.errors import InputError
from pertinent.outputs import Scale

if TYPE_CHECKING:
    from pertinent.inputs.base import Input
    from pertinent.models.base import Answer, Model


@dataclass(frozen=True, eq=False)
class RowValues(Question):
    """Requests the predictions for these `values` (rows, …), each in the shape of the input's values.

    Answered with an array (rows, columns) on the scale. Each row costs 1; nothing is removed.
    """

    values: Floats
    scale: Scale = "natural"

    @property
    def keys(self) -> range:
        """Return the index of each row."""
        return range(len(self.values))

    def price(self, paid: set[Hashable]) -> int:
        """Return 1 for each row."""
        return len(self.values)

    def on_scale(self, scale: Scale, groups: int = 0) -> RowValues:
        """Return the question on a scale; groups of draws are ignored, because nothing is removed."""
        return replace(self, scale=scale)

    def check(self, input: Input) -> None:
        """Raise an `InputError` unless the input is an array of this shape."""
        shape = getattr(input, "array", np.empty(0)).shape
        if self.values.shape[1:] != shape:
            raise InputError(f"`values` must have the input's shape {shape}, got {self.values.shape[1:]}.")

    @classmethod
    def handle(cls, model: Model, parts: Sequence[BatchPart]) -> Answer:
        """Run the model on the rows."""
        return model.submit([part.input.as_read(part.question.values[part.rows]) for part in parts])

    @staticmethod
    def read(model: Model, outputs: Any, parts: Sequence[BatchPart]) -> list[Sequence[Any] | Exception]:
        """Return the answers to each part on its scale."""
        answers: list[Any] = [
            rows if isinstance(rows, Exception) else model.output.as_scale(rows, part.question.scale)
            for part, rows in zip(parts, usable_rows(model, outputs, parts), strict=True)
        ]
        return answers

    def assemble(self, model: Model, input: Input, answers: list[Floats]) -> Floats:
        """Return an array (rows, columns)."""
        return np.array(answers)
