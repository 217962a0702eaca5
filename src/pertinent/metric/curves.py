"""Insertion and deletion: how the decision changes as features are added or removed by rank."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pertinent.array_types import Masks
from pertinent.asks import Values
from pertinent.metric.base import Measures, Metric, metrics, objective
from pertinent.results.explanation import Explanation
from pertinent.settings import Count


@dataclass(frozen=True)
class Curve(Metric):
    """The area under the curve over the share of features, by the trapezoid rule.

    The curve is the target's probability, or for a plain value, minus its distance to the value for
    the whole input.

    Parameters
    ----------
    steps
        Points of the curve besides its start; fewer if there are fewer features.
    """

    steps: Count = 20

    def _area(self, explanation: Explanation, *, insert: bool) -> Measures:
        masks, share = ranked_masks(explanation, self.steps)
        answer = yield Values(masks if insert else ~masks)
        return {None: float(np.trapezoid(objective(explanation, answer), share))}


def ranked_masks(explanation: Explanation, steps: int) -> tuple[Masks, np.ndarray]:
    """Masks of the best 0 … d features, and the share of features that each keeps."""
    d = len(explanation.features)
    counts = np.unique(np.round(np.linspace(0, d, min(steps, d) + 1)).astype(int))
    rank = np.empty(d, dtype=int)
    rank[explanation.ranking] = np.arange(d)
    return rank[None] < counts[:, None], counts / d


@metrics.register("insertion")
@dataclass(frozen=True)
class Insertion(Curve):
    """Start with no features and add them, the most important first."""

    paper = "Petsiuk, Das & Saenko 2018, Alg. 1"
    summary = "area under the target's probability (closeness of a value) as features are added by rank"
    better = "higher"

    def measure(self, explanation: Explanation) -> Measures:
        """Insert by rank."""
        return (yield from self._area(explanation, insert=True))


@metrics.register("deletion")
@dataclass(frozen=True)
class Deletion(Curve):
    """Start with the whole input and remove features, the most important first."""

    paper = "Petsiuk, Das & Saenko 2018, Alg. 1"
    summary = "area under the target's probability (closeness of a value) as features are removed by rank"
    better = "lower"

    def measure(self, explanation: Explanation) -> Measures:
        """Delete by rank."""
        return (yield from self._area(explanation, insert=False))
