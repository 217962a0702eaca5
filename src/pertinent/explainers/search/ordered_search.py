"""Ordered search: sets in the order of a linear score."""

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
"""Largest number of masks for LIME, which takes them all at once; more would not change the order."""


@explainers.register("ordered-search")
@dataclass(frozen=True)
class OrderedSearch(SeparateSearches):
    """Hase et al.'s Ordered Search.

    1. Compute LIME scores θ with a `share` of the budget, at most 10,000 evaluations.
    2. Spend the rest on the sets of k features in the order of θᵀe, the largest first. A priority
       queue generates them one by one, so that never all C(d, k) are needed.
    """

    paper = "Hase et al. 2021, Sec. 6.1 (6) and App. A.2"
    summary = "sets in the order of their LIME score, for each sparsity"
    traits = replace(SeparateSearches.traits, min_budget=3)  # two masks for LIME, and one set
    share: ProperShare = 0.25

    def search(self, task: Task, k: int, rng: np.random.Generator) -> Asking[Masks]:
        """Score the features, then evaluate the sets in order."""
        d = task.n_features
        samples = min(max(2, round(self.share * task.budget)), task.budget - 1, MOST_SAMPLES)
        masks = draw_masks(rng, samples, d)
        values = yield Values(masks)
        lime = Lime()
        weight = proximity(masks, WIDTH)
        scores = ridge(masks, task.objective(values)[:, None], weight, lime.alpha)[0][:, 0]
        sets = in_chunks(islice(in_order(scores, k), task.budget - samples))
        return (yield from self.best_in(task, map(np.array, sets)))


def in_order(scores: Floats, k: int) -> Iterator[Masks]:
    """Every set of k features once, the largest total score first.

    Features are sorted by score, and the first set is the first k of them. Every other set is reached
    from it in exactly one way: the last feature moves down the order to its final position, then the
    one before it, and so on. So a set has at most two successors, neither with a larger total: the
    moving feature takes one more step, or the one before it takes its first step.

    >>> [np.flatnonzero(mask).tolist() for mask in in_order(np.array([3.0, 1.0, 2.0]), 2)]
    [[0, 2], [0, 1], [1, 2]]
    """
    line = np.argsort(-scores, kind="stable")
    worth = scores[line].tolist()
    d = len(worth)
    tie = count()
    # Minus the total, a number to break ties, the moving feature, its position, the limit of its
    # position, and the finished moves: a linked list of (feature, position).
    queue: list[tuple[float, int, int, int, int, Any]] = []
    heappush(queue, (-sum(worth[:k]), next(tie), k - 1, k - 1, d, None))
    while queue:
        total, _, feature, place, limit, over = heappop(queue)
        places = list(range(k))
        places[feature] = place
        moved = over
        while moved is not None:
            places[moved[0]], moved = moved[1], moved[2]
        mask = np.zeros(d, dtype=np.bool_)
        mask[line[places]] = True
        yield mask
        if place + 1 < limit:
            further = total + worth[place] - worth[place + 1]
            heappush(queue, (further, next(tie), feature, place + 1, limit, over))
        if feature >= 1 and feature < place:
            first = total + worth[feature - 1] - worth[feature]
            moves = (feature, place, over)
            heappush(queue, (first, next(tie), feature - 1, feature, place, moves))
