"""Tree values: the exact Shapley values of a model that is a sum of trees."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pertinent.array_types import Floats, Ints
from pertinent.asks.base import BatchPart, Question
from pertinent.errors import InputError, ModelError
from pertinent.outputs import Scale

if TYPE_CHECKING:
    from pertinent.inputs.base import Input
    from pertinent.models.base import Model
    from pertinent.removals.base import Removal


@dataclass(frozen=True, eq=False)
class TreeScores:
    """Shapley values (columns, features), and the value of the empty mask (columns,).

    With groups of draws, the columns are repeated for each group.
    """

    scores: Floats
    base_values: Floats


@dataclass(frozen=True)
class NotWalked:
    """The reason why a tentative question cannot be answered from trees."""

    reason: str


@dataclass(frozen=True, eq=False)
class TreeValues(Question):
    """Requests the exact Shapley values of a model that is a sum of trees.

    Answered with `TreeScores`. The value of a mask is the trees' prediction with removed columns filled from
    the rows that the removal creates for the empty mask, averaged over these rows. The trees are walked once,
    which costs 1. With `groups`, the number of groups of the removal's rows, the columns are repeated for
    each group, using the mean over all other rows. A `tentative` question is answered with `NotWalked`, at no
    cost, if the model's values cannot be computed from trees.
    """

    refusal = (
        "This method needs a forest or boosted trees from scikit-learn, xgboost, lightgbm or catboost; "
        "choose a model-agnostic method, such as kernel-shap."
    )
    scale: Scale = "natural"
    groups: int = 0
    tentative: bool = False

    @property
    def keys(self) -> range:
        """Return the index of the only row."""
        return range(1)

    def price(self, paid: set[Hashable]) -> int:
        """Return 1, because the trees are walked once."""
        return 1

    def unspent(self, answer: Any) -> int:
        """Return the whole price if the trees were not walked."""
        return int(isinstance(answer, NotWalked))

    def on_scale(self, scale: Scale, groups: int = 0) -> TreeValues:
        """Return the question on a scale and for a number of groups of draws."""
        return replace(self, scale=scale, groups=groups)

    def check(self, input: Input) -> None:
        """Raise an `InputError` unless the input is a table row."""
        if not input.has_columns:
            raise InputError(f"Tree methods explain only table rows, but the input is {input.kind}.")

    def costs(self, model: Model, input: Input, removal: Removal, rows: Ints) -> Ints:
        """Return 1, because a batch shares the computation for the rows that fill removed columns."""
        return np.ones(len(rows), dtype=np.int64)

    @staticmethod
    def read(model: Model, outputs: Any, parts: Sequence[BatchPart]) -> list[Sequence[Any] | Exception]:
        """Return one answer for each part."""
        return [
            [answer]
            if isinstance(answer, NotWalked) or np.isfinite(answer.scores).all()
            else ModelError("The trees predict NaN or infinity.")
            for answer in outputs
        ]

    def assemble(
        self, model: Model, input: Input, answers: list[TreeScores | NotWalked]
    ) -> TreeScores | NotWalked:
        """Return the only answer."""
        return answers[0]
