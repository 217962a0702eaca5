"""Monotonicity over K: is a decision that K features keep also kept by more of them?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pertinent.asks import Values
from pertinent.errors import require
from pertinent.masks import full_mask
from pertinent.metric.base import Measures, Metric, metrics
from pertinent.metric.top_features import same_decision, top_mask
from pertinent.results.explanation import Explanation
from pertinent.settings import Count, Share


@metrics.register("monotonicity")
@dataclass(frozen=True)
class Monotonicity(Metric):
    """The share of steps to a larger K at which faithfulness does not fall.

    "As K increases, the explanation is expected to be more faithful" (Sec. 4.2). 1 where no larger set loses
    a decision that a smaller one keeps, also where none keeps it.

    Parameters
    ----------
    sizes
        The numbers K of top features, at least two.
    sparsities
        Shares of features that count instead of `sizes`: the sets that a search chose for them, else the top.
    """

    paper = "Vo et al. 2023, Sec. 4.2 and App. G"
    summary = "share of steps to more top features at which the model's decision is not lost"
    better = "higher"
    within = (0, 1)
    sizes: tuple[Count, ...] = (5, 10, 20)
    sparsities: tuple[Share, ...] | None = None

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        require(len({*self.sizes}) > 1, "sizes", "at least two different numbers", self.sizes)
        one = self.sparsities is not None and len({*self.sparsities}) < 2
        require(not one, "sparsities", "at least two different shares", self.sparsities)

    def measure(self, explanation: Explanation) -> Measures:
        """Keep more and more features."""
        if self.sparsities:
            masks = [explanation.mask(s) for s in sorted({*self.sparsities})]
        else:
            masks = [top_mask(explanation, k) for k in sorted({*self.sizes})]
        answer = yield Values(np.concatenate([full_mask(len(explanation.features)), masks]))
        same = same_decision(explanation, answer[0], answer[1:])
        return {None: float((same[1:] >= same[:-1]).mean())}
