"""Insertion and deletion: the target's probability as features come or go by rank."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pertinent.asks import Values
from pertinent.errors import require
from pertinent.metric.base import Measures, Metric, metrics, objective
from pertinent.results.explanation import Explanation
from pertinent.types import Masks


@dataclass(frozen=True)
class Curve(Metric):
    """The area under the curve over the share of features, by the trapezoid rule.

    The curve is of the target's probability; of a plain value, of minus its distance to that of the
    whole input.

    Parameters
    ----------
    steps
        Points of the curve beside its start; fewer where there are fewer features.
    """

    steps: int = 20

    def __post_init__(self) -> None:
        """Check the settings."""
        require(self.steps >= 1, "steps", "at least 1", self.steps)

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
    """Features are added to nothing, the most important first."""

    paper = "Petsiuk, Das & Saenko 2018, Alg. 1"
    summary = "area under the target's probability as features are added by rank"
    better = "higher"

    def measure(self, explanation: Explanation) -> Measures:
        """Insert by rank."""
        return (yield from self._area(explanation, insert=True))


@metrics.register("deletion")
@dataclass(frozen=True)
class Deletion(Curve):
    """Features are taken from the whole input, the most important first."""

    paper = "Petsiuk, Das & Saenko 2018, Alg. 1"
    summary = "area under the target's probability as features are removed by rank"
    better = "lower"

    def measure(self, explanation: Explanation) -> Measures:
        """Delete by rank."""
        return (yield from self._area(explanation, insert=False))
