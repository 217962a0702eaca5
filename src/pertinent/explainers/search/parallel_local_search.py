"""Parallel Local Search: several walks that never repeat a set that any of them has seen."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from math import comb
from operator import xor

import numpy as np

from pertinent.array_types import Ints, Masks
from pertinent.asks import Asking
from pertinent.explainers.base import Task, explainers
from pertinent.explainers.search.local import LocalSearch, first_sets
from pertinent.settings import Count

PATIENCE = 1000
"""Number of steps that a walk takes through seen sets before it gives up."""


@explainers.register("parallel-local-search")
@dataclass(frozen=True)
class ParallelLocalSearch(LocalSearch):
    """Hase et al.'s Parallel Local Search (PLS).

    1. Each of `runs` walks starts at a uniform random set; with `start`, the first walk starts at the set
       that this method chose.
    2. *Propose*: swap one feature of the set for one outside it; while the new set has been seen by
       any walk, swap again from there.
    3. Move to the proposal only if its objective is better.

    No set is evaluated twice. If the budget covers all sets, all of them are evaluated.
    """

    paper = "Hase et al. 2021, Sec. 6.1 (7) and App. A.2"
    summary = "local search for the best set, for each sparsity"
    runs: Count = 10

    def search_from(self, start: Masks | None, task: Task, k: int, rng: np.random.Generator) -> Asking[Masks]:
        """Walk until the budget is spent or no walk finds a new set."""
        d, budget = task.n_features, task.budget
        if comb(d, k) <= budget:
            return (yield from self.best_of_all(task, k))
        walks = _Walks(first_sets(rng, min(self.runs, budget), d, k, start), rng)
        best = yield from self.judge(task, walks.masks)
        spent = len(best)
        while spent < budget:
            movers = walks.propose(budget - spent)
            if not len(movers):
                break
            objective = yield from self.judge(task, walks.masks[movers])
            spent += len(movers)
            better = objective > best[movers]
            best[movers[better]] = objective[better]
            walks.undo(movers[~better])
        return np.asarray(walks.masks[best.argmax()])


class _Walks:
    """The current set of each walk, and all sets that any of them has seen.

    A set is identified by the XOR of one random word per feature, so a swap updates it in two steps.
    """

    def __init__(self, starts: Masks, rng: np.random.Generator) -> None:
        n, d = starts.shape
        self.masks = starts.copy()
        self._rng = rng
        self._inside: list[list[int]] = np.nonzero(starts)[1].reshape(n, -1).tolist()
        self._outside: list[list[int]] = np.nonzero(~starts)[1].reshape(n, -1).tolist()
        self._words: list[int] = rng.integers(1 << 62, size=(1, d)).tolist()[0]
        self._names = [reduce(xor, map(self._words.__getitem__, row)) for row in self._inside]
        self._seen = set(self._names)
        self._steps: list[list[tuple[int, int]]] = [[] for _ in range(n)]

    def propose(self, most: int) -> Ints:
        """Move up to `most` walks to a set that none has seen; return the walks that found one."""
        n = min(len(self.masks), most)
        insiders, outsiders = len(self._inside[0]), len(self._outside[0])
        draws_in = self._rng.integers(insiders, size=n).tolist()
        draws_out = self._rng.integers(outsiders, size=n).tolist()
        movers = []
        for walk, (i, j) in enumerate(zip(draws_in, draws_out, strict=True)):
            self._steps[walk].clear()
            for _ in range(PATIENCE):
                self._swap(walk, i, j)
                self._steps[walk].append((i, j))
                if self._names[walk] not in self._seen:
                    self._seen.add(self._names[walk])
                    movers.append(walk)
                    break
                i, j = int(self._rng.integers(insiders)), int(self._rng.integers(outsiders))
            else:
                self.undo([walk])
        return np.array(movers, dtype=np.int64)

    def undo(self, walks: Iterable[int]) -> None:
        """Move these walks back to where they were before their last proposal."""
        for walk in walks:
            for i, j in reversed(self._steps[walk]):
                self._swap(walk, i, j)

    def _swap(self, walk: int, i: int, j: int) -> None:
        """Swap the i-th feature inside for the j-th outside; doing it twice changes nothing."""
        inside, outside, mask = self._inside[walk], self._outside[walk], self.masks[walk]
        leaves, enters = inside[i], outside[j]
        inside[i], outside[j] = enters, leaves
        mask[leaves], mask[enters] = False, True
        self._names[walk] ^= self._words[leaves] ^ self._words[enters]
