"""Taylor search: a beam search over swaps, chosen by a first-order approximation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pertinent.array_types import Masks
from pertinent.asks import Asking
from pertinent.explainers.base import Task, explainers
from pertinent.explainers.search.base import SeparateSearches, uniform_sets
from pertinent.explainers.search.local import Seen
from pertinent.settings import Count


@explainers.register("taylor-search")
@dataclass(frozen=True)
class TaylorSearch(SeparateSearches):
    """Hase et al.'s Taylor Search, after HotFlip.

    1. Start at a random set.
    2. With the gradient g of the objective along the mask, swapping i out and j in changes it by
       about g_j − g_i. Each set in the beam proposes the `width` best swaps that are new.
    3. The proposals are evaluated, and the best `width` of them are the next beam.

    A gradient costs a forward and a backward pass. The best set evaluated is the answer.

    Parameters
    ----------
    width
        The width of the beam, and the number of proposals per set.
    steps
        The most steps; by default as many as the budget allows.
    """

    paper = "Hase et al. 2021, Sec. 6.1 (5) and App. A.2"
    summary = "swaps by a first-order guess, in a beam, for each sparsity"
    width: Count = 3
    steps: Count | None = None

    def search(self, task: Task, k: int, rng: np.random.Generator) -> Asking[Masks]:
        """Move the beam until the budget is spent."""
        beam = uniform_sets(rng, 1, task.n_features, k)
        best, best_set = (yield from self.judge(task, beam))[0], beam[0]
        spent, step = 1, 0
        seen = Seen(beam)
        while k < task.n_features and (self.steps is None or step < self.steps):
            beam = beam[: (task.budget - spent) // (2 + 1)]
            if not len(beam):
                break
            _, gains = yield from self.gains(task, beam)
            spent += 2 * len(beam)
            proposals = []
            for chosen, gain in zip(beam, gains, strict=True):
                proposals += seen.best_swaps(chosen, gain, self.width)
            proposals = proposals[: task.budget - spent]
            if not proposals:
                break
            sets = np.array(proposals)
            objective = yield from self.judge(task, sets)
            spent += len(sets)
            step += 1
            order = np.argsort(-objective, kind="stable")
            if objective[order[0]] > best:
                best, best_set = objective[order[0]], sets[order[0]]
            beam = sets[order[: self.width]]
        return np.asarray(best_set)
