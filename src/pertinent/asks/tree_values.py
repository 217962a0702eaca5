"""Tree values: what are the exact Shapley values of a model that is a sum of trees?"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pertinent.array_types import Floats, Ints
from pertinent.asks.base import Part, Question
from pertinent.errors import InputError, ModelError
from pertinent.outputs import Scale

if TYPE_CHECKING:
    from pertinent.inputs.base import Input
    from pertinent.models.base import Model
    from pertinent.removal.base import Removal


@dataclass(frozen=True, eq=False)
class TreeScores:
    """The answer: Shapley values (columns, features), and the value of the empty mask (columns,).

    With groups of draws the columns are repeated for each group.
    """

    scores: Floats
    base_values: Floats


@dataclass(frozen=True, eq=False)
class TreeValues(Question):
    """What are the exact Shapley values of a model that is a sum of trees?

    Answered with `TreeScores`. A mask is worth what the trees answer with the removed columns filled from
    the rows that the removal makes of the empty mask, averaged over these rows. The trees are walked
    once, which costs 1. With `groups`, as many as the removal has, the columns are repeated for each group of
    rows, with that group left out of the mean. A `tentative` question is answered with ``None``, at no cost,
    if the model's values are not a sum over trees.
    """

    refusal = (
        "This method walks the trees of a forest or of boosting, which only scikit-learn, xgboost and "
        "lightgbm estimators have; choose one that asks for values, such as kernel-shap."
    )
    scale: Scale = "natural"
    groups: int = 0
    tentative: bool = False

    @property
    def keys(self) -> range:
        """The number of the only row."""
        return range(1)

    def price(self, paid: set[Hashable]) -> int:
        """1 for each time the trees are walked."""
        return 1

    def unspent(self, answer: Any) -> int:
        """The whole price if the answer is ``None``."""
        return int(answer is None)

    def on_scale(self, scale: Scale, groups: int = 0) -> TreeValues:
        """The same question on this scale, with this number of groups of draws."""
        return replace(self, scale=scale, groups=groups)

    def check(self, input: Input) -> None:
        """Raise an `InputError` unless the input is a table row."""
        if input.kind != "table":
            raise InputError(f"Only table rows are explained by trees, but the input is {input.kind}.")

    def costs(self, model: Model, input: Input, removal: Removal, rows: Ints) -> Ints:
        """The number of rows that fill removed columns: the trees are walked for each of them."""
        return np.full(len(rows), removal.draws)

    @staticmethod
    def read(model: Model, outputs: Any, parts: Sequence[Part]) -> list[Sequence[Any] | Exception]:
        """One answer for each part."""
        return [
            [found]
            if found is None or np.isfinite(found.scores).all()
            else ModelError("The trees answer NaN or infinity.")
            for found in outputs
        ]

    def assemble(self, model: Model, input: Input, answers: list[TreeScores | None]) -> TreeScores | None:
        """The only answer."""
        return answers[0]
