"""The base of questions for gradients: their price, and how their answers are checked."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pertinent.array_types import Floats, Ints
from pertinent.asks.base import Part, Question, first_reason, split
from pertinent.errors import ModelError

if TYPE_CHECKING:
    from pertinent.inputs.base import Input
    from pertinent.models.base import Model
    from pertinent.removal.base import Removal

PRICE = 2
"""One forward and one backward pass."""


@dataclass(frozen=True, eq=False)
class Gradients:
    """The answer: the model's output (rows, columns), and the gradients (rows, features)."""

    values: Floats
    gradients: Floats


@dataclass(frozen=True, eq=False)
class GradientQuestion(Question):
    """A question that only a model with gradients can answer: a transformer or a torch module.

    Gradients are never cached, so every row counts against the budget.
    """

    def price(self, paid: set[Hashable]) -> int:
        """A forward and a backward pass for each row."""
        del paid
        return PRICE * len(self.keys)

    def costs(self, model: Model, input: Input, removal: Removal, rows: Ints) -> Ints:
        """The same for every row, because a gradient also needs the removed features."""
        del removal
        return np.full(len(rows), model.gradient_cost(input))

    @staticmethod
    def read(model: Model, outputs: Any, parts: Sequence[Part]) -> list[Sequence[Any] | Exception]:
        """Pairs of a row of outputs and a row of gradients."""
        scores, gradients = outputs
        checked = model.checked(scores, sum(len(part.rows) for part in parts))
        reasons = model.output.unusable(checked)
        for row in np.flatnonzero(~np.isfinite(gradients).all(axis=1)):
            reasons.setdefault(int(row), "the model's gradient holds NaN or infinity")
        answers: list[Sequence[Any] | Exception] = []
        first = 0
        own = zip(parts, split(checked, parts), split(gradients, parts), strict=True)
        for part, own_scores, own_gradients in own:
            reason = first_reason(reasons, first, len(own_scores))
            first += len(own_scores)
            d = part.input.n_features
            pairs = list(zip(own_scores, own_gradients[:, :d], strict=True))
            answers.append(pairs if reason is None else ModelError(reason))
        return answers

    def assemble(self, model: Model, answers: list[Any]) -> Gradients:
        """Natural values, and gradients as the model gave them."""
        if not answers:
            return Gradients(np.empty((0, len(model.classes))), np.empty((0, 0)))
        scores, gradients = (np.array(column) for column in zip(*answers, strict=True))
        return Gradients(model.output.natural(scores), gradients)
