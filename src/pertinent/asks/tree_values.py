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

    With groups of draws the columns come again for each of them.
    """

    scores: Floats
    base_values: Floats


@dataclass(frozen=True, eq=False)
class TreeValues(Question):
    """What are the exact Shapley values of a model that is a sum of trees?

    Answered with `TreeScores`. A mask is worth what the trees answer with the removed columns filled from
    the rows that the removal makes of the empty mask, averaged over these rows. The trees are walked
    once, which costs 1. With `groups`, as many as the removal has, the columns come again for each group of
    rows, with these left out of the mean. If it is `tentative`, the answer is ``None``, and costs nothing,
    where trees do not give the values.
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
        """The trees are walked once, each time they are asked."""
        return 1

    def unspent(self, answer: Any) -> int:
        """The whole price, if trees did not give the values."""
        return int(answer is None)

    def on_scale(self, scale: Scale) -> TreeValues:
        """The same question on this scale."""
        return replace(self, scale=scale)

    def check(self, input: Input) -> None:
        """Trees read the columns of a table."""
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

    def assemble(self, model: Model, input: Input, answers: list[Any]) -> TreeScores | None:
        """The only answer."""
        (found,) = answers
        assert found is None or isinstance(found, TreeScores)
        return found
