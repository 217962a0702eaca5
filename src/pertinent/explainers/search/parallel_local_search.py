"""Parallel Local Search: several walks that never revisit a set seen by any walk."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from math import comb
from operator import xor

import numpy as np

from pertinent.array_types import Ints, Masks
from pertinent.asks import Asking
from pertinent.config.settings import Count
from pertinent.explainers.base import Task, explainers
from pertinent.explainers.search.local import LocalSearch, first_sets

PATIENCE = 1000
"""Number of steps through seen sets after which a walk gives up."""

DRAWS = 512
"""Number of swaps drawn together."""


@explainers.register("parallel-local-search")
@dataclass(frozen=True)
class ParallelLocalSearch(LocalSearch):
    """Hase et al.'s Parallel Local Search (PLS).

    1. Each of `runs` walks starts at a uniform random set; with `start`, the first walk starts at the set
       chosen by that method.
    2. *Propose*: swap one feature in the set for one outside it; if any walk has seen the new set, swap again
       from there.
    3. Move to the proposal only if its objective is better.

    No set is evaluated twice. If the budget covers all sets, all are evaluated.

    Parameters
    ----------
    runs
        Number of walks.
    """

    paper = "Hase et al. 2021, Sec. 6.1 (7) and App. A.2"
    summary = "local search for the best set, for each sparsity"
    runs: Count = 10

    def search_from(self, start: Masks | None, task: Task, k: int, rng: np.random.Generator) -> Asking[Masks]:
        """Walk until the budget is spent or no walk reaches a new set."""
        d, budget = task.n_features, task.budget
        if comb(d, k) <= budget:
            return (yield from self.best_of_all(task, k))
        walks = _Walks(first_sets(rng, min(self.runs, budget), d, k, start), rng)
        best = yield from self.judge(task, walks.masks)
        spent = len(best)
        while spent < budget:
            movers, proposed = walks.propose(budget - spent)
            if not len(movers):
                break
            objective = yield from self.judge(task, proposed)
            spent += len(movers)
            better = objective > best[movers]
            best[movers[better]] = objective[better]
            walks.accept(better)
        return np.asarray(walks.masks[best.argmax()])


class _Walks:
    """The current set of each walk, its last proposal, and all sets seen by any walk.

    A set is identified by the XOR of one random word per feature, so updating its key for a swap takes two
    XORs.
    """

    def __init__(self, starts: Masks, rng: np.random.Generator) -> None:
        n, d = starts.shape
        self.masks = starts.copy()
        self._inside: list[list[int]] = np.nonzero(starts)[1].reshape(n, -1).tolist()
        self._outside: list[list[int]] = np.nonzero(~starts)[1].reshape(n, -1).tolist()
        self._words: list[int] = rng.integers(1 << 62, size=(1, d)).tolist()[0]
        self._keys = [reduce(xor, map(self._words.__getitem__, row)) for row in self._inside]
        self._seen = set(self._keys)
        self._swaps = _swaps(len(self._inside[0]), len(self._outside[0]), rng)
        self._proposed: dict[int, tuple[list[tuple[int, int]], int]] = {}
        self._proposed_masks = starts

    def propose(self, most: int) -> tuple[Ints, Masks]:
        """Return up to `most` walks that reach a new set, and the new sets."""
        self._proposed.clear()
        words, seen = self._words, self._seen
        leaves: list[int] = []
        enters: list[int] = []
        far: dict[int, list[int]] = {}
        for walk, (i, j) in zip(range(min(len(self.masks), most)), self._swaps, strict=False):
            leaving, entering = self._inside[walk][i], self._outside[walk][j]
            key, steps = self._keys[walk] ^ words[leaving] ^ words[entering], [(i, j)]
            if key in seen:
                key, inside = self._continue(walk, key, steps)
                if key in seen:
                    continue
                far[len(leaves)] = inside
            seen.add(key)
            self._proposed[walk] = steps, key
            leaves.append(leaving)
            enters.append(entering)
        movers, rows = np.array(list(self._proposed), dtype=np.int64), np.arange(len(leaves))
        masks = self.masks[movers]
        masks[rows, leaves], masks[rows, enters] = False, True
        for row, inside in far.items():
            masks[row] = False
            masks[row, inside] = True
        self._proposed_masks = masks
        return movers, masks

    def _continue(self, walk: int, key: int, steps: list[tuple[int, int]]) -> tuple[int, list[int]]:
        """Swap until a set is new or `PATIENCE` ends; extend `steps` and return its key and features."""
        inside, outside = self._inside[walk].copy(), self._outside[walk].copy()
        (i, j), words = steps[0], self._words
        inside[i], outside[j] = outside[j], inside[i]
        for (i, j), _ in zip(self._swaps, range(PATIENCE - 1), strict=False):
            inside[i], outside[j] = outside[j], inside[i]
            key ^= words[inside[i]] ^ words[outside[j]]
            steps.append((i, j))
            if key not in self._seen:
                break
        return key, inside

    def accept(self, better: Masks) -> None:
        """Move the walks whose proposals are better."""
        for row, walk in enumerate(self._proposed):
            if better[row]:
                steps, self._keys[walk] = self._proposed[walk]
                inside, outside = self._inside[walk], self._outside[walk]
                for i, j in steps:
                    inside[i], outside[j] = outside[j], inside[i]
                self.masks[walk] = self._proposed_masks[row]


def _swaps(n_inside: int, n_outside: int, rng: np.random.Generator) -> Iterator[tuple[int, int]]:
    """Yield an unbounded stream of uniform random (inside, outside) feature indices."""
    while True:
        inside, outside = (rng.integers(n, size=DRAWS).tolist() for n in (n_inside, n_outside))
        yield from zip(inside, outside, strict=True)
