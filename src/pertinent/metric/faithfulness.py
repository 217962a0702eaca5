"""Faithfulness: does the model decide the same from the top features alone?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pertinent.asks import Values
from pertinent.masks import full_mask
from pertinent.metric.base import Measures, metrics
from pertinent.metric.top_features import TopFeatures, same_decision
from pertinent.results.explanation import Explanation


@metrics.register("faithfulness")
@dataclass(frozen=True)
class Faithfulness(TopFeatures):
    r"""Post-hoc accuracy: :math:`[\arg\max f(x_S) = \arg\max f(x)]`, only the top features S kept.

    1 or 0 for one input; the share of inputs over many. The features stay where they are in the input. Of
    labels it is the side of 0.5 of the label explained.
    """

    paper = "Vo et al. 2023, App. B.3; Chen et al. 2018"
    summary = "whether the model decides the same with only the top K features kept"
    better = "higher"
    within = (0, 1)

    def measure(self, explanation: Explanation) -> Measures:
        """Keep the top features."""
        sets = self.sets(explanation)
        answer = yield Values(np.concatenate([full_mask(len(explanation.features)), [*sets.values()]]))
        same = same_decision(explanation, answer[0], answer[1:])
        return dict(zip(sets, same.astype(float).tolist(), strict=True))
