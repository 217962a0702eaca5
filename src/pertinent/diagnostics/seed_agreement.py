"""How well explanations of the same input agree: rank correlation, top features in common, distance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from pertinent.array_types import Floats
from pertinent.decoding import NOT_FINITE, Index
from pertinent.rank_correlation import spearman
from pertinent.results.explanation import Explanation
from pertinent.settings import Count, NotNegative, Range

SAME_SCORE = 1e-6
"""Scores that differ by less than this share of the prediction are the same: the rest is rounding."""


@dataclass(frozen=True)
class Agreement:
    """How well the explanations of one input with several seeds agree (Yang et al. 2023, Sec. 4).

    Means over all pairs of seeds: `spearman` of their scores, the share of the `top_5` and `top_10`
    features in common, and the mean squared difference of their scores, `mse`. NaN where there is
    none: no correlation if a seed's scores are constant, no top k of k features or fewer.

    `input` is the position of the input among those given and `id` the user's own name for it,
    `features` their number; `evaluations` and `seconds` are means over seeds, for one explanation.
    """

    input: Index
    features: Count
    spearman: Annotated[float, Range(at_least=-1, at_most=1), NOT_FINITE]
    top_5: Annotated[float, Range(at_least=0, at_most=1), NOT_FINITE]
    top_10: Annotated[float, Range(at_least=0, at_most=1), NOT_FINITE]
    mse: Annotated[float, Range(at_least=0), NOT_FINITE]
    evaluations: NotNegative
    seconds: NotNegative
    id: str | None = None


def agreement(explanations: Sequence[Explanation]) -> Agreement:
    """Measure explanations of one input and target, one for each seed."""
    first = explanations[0]
    scores = np.stack([e.scores for e in explanations])
    rankings = [e.ranking.tolist() for e in explanations]
    floor = SAME_SCORE * float(np.abs(first.prediction).max())
    varied = bool((np.ptp(scores, axis=1) > floor).all())
    return Agreement(
        input=first.index,
        features=len(first.features),
        spearman=float(_pairs(spearman(scores)).mean()) if varied else np.nan,
        top_5=top_in_common(rankings, 5),
        top_10=top_in_common(rankings, 10),
        mse=mean_squared_difference(scores),
        evaluations=float(np.mean([e.evaluations for e in explanations])),
        seconds=float(np.mean([e.seconds for e in explanations])),
        id=first.id,
    )


def top_in_common(rankings: Sequence[Sequence[int]], k: int) -> float:
    """The share of the first k that two rankings have in common, averaged over all pairs of rankings.

    NaN for rankings of k features or fewer, which all have the same first k.

    >>> top_in_common([[0, 1, 2, 3], [3, 1, 0, 2]], 2)
    0.5
    """
    if len(rankings[0]) <= k:
        return np.nan
    first = np.zeros((len(rankings), len(rankings[0])))
    for row, ranking in zip(first, rankings, strict=True):
        row[list(ranking[:k])] = 1.0
    return float(_pairs(first @ first.T).mean() / k)


def mean_squared_difference(rows: Floats) -> float:
    """The mean squared difference of two rows, averaged over all pairs: twice the variance over rows.

    >>> mean_squared_difference(np.array([[0.0, 0.0], [1.0, 3.0]]))
    5.0
    """
    with np.errstate(over="ignore", invalid="ignore"):
        found = 2.0 * float((rows - rows[0]).var(axis=0, ddof=1).mean())  # exactly 0 for equal rows
    return found if np.isfinite(found) else np.nan


def _pairs(table: Floats) -> Floats:
    """The entries of a symmetric table, each pair of different rows once."""
    return np.asarray(table[np.triu_indices(len(table), 1)])
