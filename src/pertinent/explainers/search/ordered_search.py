"""Ordered search: evaluate sets in the order of a linear score."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from itertools import count, islice
from typing import Any

import numpy as np

from pertinent.array_types import Floats, Masks
from pertinent.asks import Asking, Values
from pertinent.config.settings import ProperShare
from pertinent.explainers.base import Task, explainers
from pertinent.explainers.lime import WIDTH, Lime, draw_masks, proximity, ridge
from pertinent.explainers.search.base import SeparateSearches, in_chunks

MOST_SAMPLES = 10_000
"""Largest number of LIME masks, which are evaluated together; more would not change the order."""


@explainers.register("ordered-search")
@dataclass(frozen=True)
class OrderedSearch(SeparateSearches):
    """Hase et al.'s Ordered Search.

    1. Compute LIME scores θ with a `share` of the budget, at most 10,000 evaluations.
    2. Spend the rest on the sets of k features in decreasing order of θᵀe. A priority queue generates them
       one by one, so the C(d, k) sets are never all in memory.

    Parameters
    ----------
    share
        Share of the budget spent on the LIME scores.
    """

    paper = "Hase et al. 2021, Sec. 6.1 (6) and App. A.2"
    summary = "sets in the order of their LIME score, for each sparsity"
    traits = replace(SeparateSearches.traits, min_budget=3)  # two masks for LIME, and one set
    share: ProperShare = 0.25

    def search(self, task: Task, k: int, rng: np.random.Generator) -> Asking[Masks]:
        """Compute LIME scores, then evaluate the sets in order."""
        d = task.n_features
        samples = min(max(2, round(self.share * task.budget)), task.budget - 1, MOST_SAMPLES)
        masks = draw_masks(rng, samples, d)
        values = yield Values(masks)
        objective, weight = task.objective(values)[:, None], proximity(masks, WIDTH)
        scores = ridge(masks, objective, weight, Lime().alpha)[0][:, 0]
        sets = in_chunks(islice(in_order(scores, k), task.budget - samples))
        return (yield from self.best_in(task, map(np.array, sets)))


def in_order(scores: Floats, k: int) -> Iterator[Masks]:
    """Yield every set of k features once, in decreasing order of total score.

    Features are sorted by score, and the first set contains the first k. Every other set is reached from it
    in exactly one way: the last feature moves down to its final position, then the one before it, and so on.
    A set therefore has at most two successors, neither with a larger total: the moving feature takes one more
    step, or the one before it takes its first step.

    >>> [np.flatnonzero(mask).tolist() for mask in in_order(np.array([3.0, 1.0, 2.0]), 2)]
    [[0, 2], [0, 1], [1, 2]]
    """
    order = np.argsort(-scores, kind="stable")
    score = scores[order].tolist()
    d = len(score)
    tie = count()
    # The negative total, a tie-breaker, the moving feature, its position, the limit of its position, and the
    # completed moves: a linked list of (feature, position).
    queue: list[tuple[float, int, int, int, int, Any]] = []
    heappush(queue, (-sum(score[:k]), next(tie), k - 1, k - 1, d, None))
    while queue:
        total, _, feature, position, limit, finished = heappop(queue)
        positions = list(range(k))
        positions[feature] = position
        move = finished
        while move is not None:
            positions[move[0]], move = move[1], move[2]
        mask = np.zeros(d, dtype=np.bool_)
        mask[order[positions]] = True
        yield mask
        if position + 1 < limit:
            further = total + score[position] - score[position + 1]
            heappush(queue, (further, next(tie), feature, position + 1, limit, finished))
        if feature >= 1 and feature < position:
            first = total + score[feature - 1] - score[feature]
            moves = (feature, position, finished)
            heappush(queue, (first, next(tie), feature - 1, feature, position, moves))
