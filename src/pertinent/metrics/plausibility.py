"""Precision at k and average precision: does the ranking find the features that people marked?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pertinent.array_types import Floats, Ints
from pertinent.config.settings import Count
from pertinent.errors import InputError
from pertinent.inputs.annotations import marked_features
from pertinent.metrics.base import Measures, Metric, metrics
from pertinent.results.explanation import Explanation


@metrics.register("precision-at-k")
@dataclass(frozen=True)
class PrecisionAtK(Metric):
    """The share of the k most important features that people marked.

    Of features with equal scores, of which only some are among the first k, each counts by the
    probability that it is, in a random order of them.

    Parameters
    ----------
    k
        How many features; all, if there are fewer.
    """

    k: Count = 5
    paper = "Manning, Raghavan & Schütze 2008, Sec. 8.4"
    summary = "share of the k most important features that people marked"
    better = "higher"

    def measure(self, explanation: Explanation) -> Measures:
        """Look at the first k."""
        sizes, hits = _levels(explanation)
        k = min(self.k, int(sizes.sum()))
        before = np.cumsum(sizes) - sizes
        inside = np.clip(k - before, 0, sizes)
        yield from ()
        return {None: float((inside / sizes * hits).sum() / k)}


@metrics.register("average-precision")
@dataclass(frozen=True)
class AveragePrecision(Metric):
    """The mean, over the features that people marked, of the precision down to their rank.

    ``Σ (R_n − R_{n−1}) P_n`` over the distinct scores, the highest first: features with equal scores are
    taken together, as scikit-learn does. The mean over inputs is the mean average precision (mAP).
    """

    paper = "Manning, Raghavan & Schütze 2008, Sec. 8.4"
    summary = "mean precision down to the rank of each feature that people marked"
    better = "higher"

    def measure(self, explanation: Explanation) -> Measures:
        """Go down the distinct scores."""
        sizes, hits = _levels(explanation)
        precision = np.cumsum(hits) / np.cumsum(sizes)
        yield from ()
        return {None: float((hits * precision).sum() / hits.sum())}


def _levels(explanation: Explanation) -> tuple[Ints, Floats]:
    """How many features have each distinct score, the highest first, and how many of them are marked."""
    if explanation.annotations is None:
        raise InputError("The features that people marked are not known: evaluate(…, annotations=…).")
    marked = marked_features(explanation.annotations, explanation.input)
    order = explanation.ranking
    scores = explanation.scores[order]
    size = explanation.output.importance(scores)
    firsts = np.flatnonzero(np.concatenate([[True], size[1:] != size[:-1]]))
    hits = np.add.reduceat(marked[order].astype(np.float64), firsts)
    return np.diff(np.append(firsts, len(order))), hits
