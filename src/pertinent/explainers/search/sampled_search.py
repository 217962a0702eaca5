"""Random, ordered and exhaustive search: the best of random sets, of those with the best score, or of all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count, islice
from math import comb
from typing import Any

import numpy as np

from pertinent.array_types import Floats, Masks
from pertinent.asks import Asking, Values
from pertinent.errors import BudgetError
from pertinent.explainers.base import Steps, Task, explainers, n_kept
from pertinent.explainers.lime import Lime, draw_masks, proximity, ridge
from pertinent.explainers.search.base import SeparateSearches, uniform_sets
from pertinent.settings import Count, ProperShare


@explainers.register("random-search")
@dataclass(frozen=True)
class RandomSearch(SeparateSearches):
    """The best of as many distinct k-sparse sets as the budget allows, uniform over all of them."""

    paper = "Hase et al. 2021, Sec. 6.1 (1)"
    summary = "the best of random sets, for each sparsity"

    def search(self, task: Task, k: int, rng: np.random.Generator) -> Asking[Masks]:
        """Draw sets, evaluate them, keep the best."""
        sets = uniform_sets(rng, task.budget, task.n_features, k)
        objective = yield from self.judge(task, sets)
        return np.asarray(sets[objective.argmax()])


@explainers.register("exhaustive-search")
@dataclass(frozen=True)
class ExhaustiveSearch(SeparateSearches):
    """The best of all C(d, k) sets: the optimum itself, for short inputs.

    Parameters
    ----------
    most
        The largest number of sets to search; more raises an error instead of starting a run that
        would not finish.
    """

    paper = "Hase et al. 2021, Sec. 6.1 (3)"
    summary = "the best of all sets, for each sparsity (short inputs)"
    most: Count = 200_000

    def evaluations(self, n_features: int) -> int:
        """The largest number allowed; the sets are counted in `explain`, where their sizes are known."""
        del n_features
        return self.most

    def min_budget(self, n_features: int) -> int:
        """One set, for the case that all features are kept."""
        del n_features
        return 1

    def explain(self, task: Task) -> Steps:
        """Raise an error if there are too many sets; else search."""
        d = task.n_features
        sizes = {n_kept(s, d) for s in task.sparsities}
        largest = max(comb(d, k) for k in sizes)
        allowed = min(self.most, task.budget // len(sizes) if self.spread else task.budget)
        if largest > allowed:
            raise BudgetError(
                f"exhaustive-search would ask for {_said(largest)} sets of {d} features, but at most "
                f"{allowed:,} are allowed. Use parallel-local-search, coarser "
                "features, or raise `most` and `budget`."
            )
        return (yield from super().explain(task))

    def search(self, task: Task, k: int, rng: np.random.Generator) -> Asking[Masks]:
        """Evaluate all sets."""
        del rng
        return (yield from self.best_of_all(task, k))


def _said(number: int) -> str:
    return f"{number:,}" if number < 10**15 else f"about 10^{len(str(number)) - 1}"


@explainers.register("ordered-search")
@dataclass(frozen=True)
class OrderedSearch(SeparateSearches):
    """Hase et al.'s Ordered Search.

    1. Compute LIME scores θ with a `share` of the budget.
    2. Spend the rest on the sets of k features in the order of θᵀe, the largest first. A priority
       queue generates them one by one, so that never all C(d, k) are needed.
    """

    paper = "Hase et al. 2021, Sec. 6.1 (6) and App. A.2"
    summary = "sets in the order of their LIME score, for each sparsity"
    smallest_budget = 3  # two masks for LIME, and one set
    share: ProperShare = 0.25

    def search(self, task: Task, k: int, rng: np.random.Generator) -> Asking[Masks]:
        """Score the features, then evaluate the sets in order."""
        d = task.n_features
        samples = min(max(2, round(self.share * task.budget)), task.budget - 1)
        masks = draw_masks(rng, samples, d)
        values = yield Values(masks)
        lime = Lime()
        weight = proximity(masks, lime.kernel_width)
        scores = ridge(masks, task.objective(values)[:, None], weight, lime.alpha)[0][:, 0]
        sets = np.array(list(islice(in_order(scores, k), task.budget - samples)))
        objective = yield from self.judge(task, sets)
        return np.asarray(sets[objective.argmax()])


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
