"""Metrics of context attribution: effects of removing parts of a context (Cohen-Wang et al. 2024)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from pertinent.asks import Values
from pertinent.config.fingerprints import generator
from pertinent.config.settings import Count, ProperShare, Range
from pertinent.errors import SettingError
from pertinent.masks import full_mask
from pertinent.metrics.base import Measures, Metric, metrics
from pertinent.metrics.top_features import TopFeatures
from pertinent.results.explanation import Explanation
from pertinent.stats import spearman


@metrics.register("top-k-drop")
@dataclass(frozen=True)
class TopKDrop(TopFeatures):
    r""":math:`\log p(x) - \log p(x \setminus S)` for the target, with the top K features S removed.

    For a language model's answer, it is the drop of its log-likelihood.
    """

    paper = "Cohen-Wang et al. 2024, Sec. 4.1, Eqn. 2"
    summary = "drop of the target's log-probability when the top K features are removed"
    better = "higher"
    k: Count | None = 1

    def measure(self, explanation: Explanation) -> Measures:
        """Remove the top features."""
        if "log-probability" not in explanation.output.scales:
            raise SettingError(
                "top-k-drop needs probabilities, but this model returns plain values: choose "
                "comprehensiveness."
            )
        sets = self.sets(explanation)
        masks = np.concatenate([full_mask(len(explanation.features)), ~np.array([*sets.values()])])
        answer = (yield Values(masks, "log-probability"))[:, explanation.target]
        return dict(zip(sets, (answer[0] - answer[1:]).tolist(), strict=True))


@metrics.register("linear-datamodeling-score")
@dataclass(frozen=True)
class LinearDatamodelingScore(Metric):
    r"""Spearman's correlation of :math:`\sum_i z_i w_i` with the model's answer, over random masks z.

    It is 1 if the scores w rank masks as the model does, and 0 if all scores are 0.

    Parameters
    ----------
    masks
        Number of random masks.
    keep
        Probability of keeping a feature.
    """

    paper = "Cohen-Wang et al. 2024, Sec. 4.1; Park et al. 2023"
    summary = "rank correlation of the sum of the kept features' scores with the model's answer"
    better = "higher"
    masks: Annotated[int, Range(at_least=3)] = 64
    keep: ProperShare = 0.5

    def measure(self, explanation: Explanation) -> Measures:
        """Evaluate random masks that are independent of the method's masks."""
        d = len(explanation.features)
        masks = generator(explanation.seed, self.name, d).random((self.masks, d)) < self.keep
        answer = (yield Values(masks))[:, explanation.target]
        correlation = spearman(np.stack([masks @ explanation.scores, answer]))[0, 1]
        return {None: float(np.nan_to_num(correlation))}
