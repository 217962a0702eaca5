"""Parallel Local Search: several walks that share what they have seen."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from math import comb
from operator import xor
from typing import Any

import numpy as np

from pertinent.engine.asks import Ask
from pertinent.errors import require
from pertinent.explainers.base import Task, explainers
from pertinent.explainers.search.base import Search, as_masks, uniform_sets
from pertinent.types import Ints, Masks

PATIENCE = 1000
"""Steps that a walk takes through sets already seen before it gives up."""


@explainers.register("parallel-local-search")
@dataclass(frozen=True)
class ParallelLocalSearch(Search):
    """Hase et al.'s Parallel Local Search (PLS).

    1. Each of `runs` walks starts at a uniform random set.
    2. *Propose*: swap one feature of the set for one outside it; where that set has been seen by
       any walk, go on from it, until one that has not.
    3. Move to the proposal only if its objective is better.

    No set is ever judged twice. Where the budget covers all sets they are simply all judged.
    """

    paper = "Hase et al. 2021, Sec. 6.1 (7) and App. A.2"
    summary = "local search for the best set, for each sparsity"
    runs: int = 10

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        require(self.runs >= 1, "runs", "at least 1", self.runs)

    def search(self, task: Task, k: int, rng: np.random.Generator) -> Generator[Ask, Any, Masks]:
        """Walk until the budget is spent or no walk finds a new set."""
        d, budget = task.n_features, task.budget
        if comb(d, k) <= budget:
            sets = as_masks(combinations(range(d), k), d)
            objective = yield from self.judge(task, sets)
            return np.asarray(sets[objective.argmax()])
        state = _Sets(uniform_sets(rng, min(self.runs, budget), d, k), rng)
        proposal = _Sets(state.masks, rng, state.words)
        seen = set(state.hashes)
        best = yield from self.judge(task, state.masks)
        spent = len(best)
        while spent < budget:
            movers = propose(proposal, seen, rng, budget - spent)
            if not len(movers):
                break
            objective = yield from self.judge(task, proposal.masks[movers])
            spent += len(movers)
            better = objective > best[movers]
            best[movers[better]] = objective[better]
            state.copy(movers[better], proposal)
            proposal.copy(movers[~better], state)
        return np.asarray(state.masks[best.argmax()])


class _Sets:
    """A set of features for each walk.

    A set is known by the XOR of random words of its features, so a swap changes it in two steps.
    """

    def __init__(self, masks: Masks, rng: np.random.Generator, words: list[int] | None = None) -> None:
        n, d = masks.shape
        self.masks = masks.copy()
        self.inside = np.nonzero(masks)[1].reshape(n, -1)
        self.outside = np.nonzero(~masks)[1].reshape(n, -1)
        self.words: list[int] = words or rng.integers(1 << 62, size=(1, d)).tolist()[0]
        self.hashes: list[int] = [reduce(xor, map(self.words.__getitem__, row)) for row in self.inside.tolist()]

    def swap(self, walk: int, i: int, j: int) -> int:
        """Swap the i-th feature inside for the j-th outside; the name of the new set."""
        inside, outside, mask = self.inside[walk], self.outside[walk], self.masks[walk]
        leaves, enters = int(inside[i]), int(outside[j])
        inside[i], outside[j] = enters, leaves
        mask[leaves], mask[enters] = False, True
        self.hashes[walk] ^= self.words[leaves] ^ self.words[enters]
        return self.hashes[walk]

    def copy(self, walks: Ints, other: _Sets) -> None:
        """Take over some walks' sets from another."""
        self.masks[walks] = other.masks[walks]
        self.inside[walks] = other.inside[walks]
        self.outside[walks] = other.outside[walks]
        for walk in walks.tolist():
            self.hashes[walk] = other.hashes[walk]


def propose(sets: _Sets, seen: set[int], rng: np.random.Generator, most: int) -> Ints:
    """Move each walk to a set that none has seen, at most so many; the walks that found one."""
    n = min(len(sets.masks), most)
    insiders, outsiders = sets.inside.shape[1], sets.outside.shape[1]
    first = np.column_stack([rng.integers(insiders, size=n), rng.integers(outsiders, size=n)])
    movers = []
    for walk, (i, j) in enumerate(first.tolist()):
        for _ in range(PATIENCE):
            name = sets.swap(walk, i, j)
            if name not in seen:
                seen.add(name)
                movers.append(walk)
                break
            i, j = int(rng.integers(insiders)), int(rng.integers(outsiders))
    return np.array(movers, dtype=np.int64)
