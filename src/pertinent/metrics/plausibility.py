"""Agreement with human annotations: precision at k and average precision."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pertinent.array_types import Floats, Ints
from pertinent.config.settings import Count
from pertinent.errors import InputError
from pertinent.inputs.annotations import mark_features
from pertinent.metrics.base import Measures, Metric, metrics
from pertinent.results.explanation import Explanation


@metrics.register("precision-at-k")
@dataclass(frozen=True)
class PrecisionAtK(Metric):
    """The share of the k most important features that annotators marked.

    If only some of the features with equal scores are among the first k, each counts with its probability of
    being among them in a random order.

    Parameters
    ----------
    k
        Number of features; all features if there are fewer.
    """

    k: Count = 5
    paper = "Manning, Raghavan & Schütze 2008, Sec. 8.4"
    summary = "share of the k most important features that annotators marked"
    better = "higher"

    def measure(self, explanation: Explanation) -> Measures:
        """Count the marked features among the first k."""
        sizes, hits = _levels(explanation)
        k = min(self.k, int(sizes.sum()))
        before = np.cumsum(sizes) - sizes
        inside = np.clip(k - before, 0, sizes)
        yield from ()
        return {None: float((inside / sizes * hits).sum() / k)}


@metrics.register("average-precision")
@dataclass(frozen=True)
class AveragePrecision(Metric):
    """The mean, over the features that annotators marked, of the precision down to their rank.

    ``Σ (R_n − R_{n−1}) P_n`` over the distinct scores, highest first. Features with equal scores form one
    step, as in scikit-learn. The mean over inputs is the mean average precision (mAP).
    """

    paper = "Manning, Raghavan & Schütze 2008, Sec. 8.4"
    summary = "mean precision down to the rank of each feature that annotators marked"
    better = "higher"

    def measure(self, explanation: Explanation) -> Measures:
        """Sum the precision over the distinct scores."""
        sizes, hits = _levels(explanation)
        precision = np.cumsum(hits) / np.cumsum(sizes)
        yield from ()
        return {None: float((hits * precision).sum() / hits.sum())}


def _levels(explanation: Explanation) -> tuple[Ints, Floats]:
    """Return the number of features and of marked features for each distinct score, highest first."""
    if explanation.annotations is None:
        raise InputError("The human annotations are missing: pass `annotations` to `evaluate`.")
    marked = mark_features(explanation.annotations, explanation.input)
    order = explanation.ranking
    importance = explanation.output.importance(explanation.scores[order])
    firsts = np.flatnonzero(np.concatenate([[True], importance[1:] != importance[:-1]]))
    hits = np.add.reduceat(marked[order].astype(np.float64), firsts)
    return np.diff(np.append(firsts, len(order))), hits
