"""Base class of local searches: starting sets, visited sets and best swaps."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from math import ceil, comb

import numpy as np

from pertinent.array_types import Floats, Masks
from pertinent.asks import Asking
from pertinent.errors import SettingError
from pertinent.explainers.base import Explainer, Finding, Task, explainers, learned_methods, n_kept
from pertinent.explainers.search.base import Search, SearchLog, largest, uniform_sets

SHARE = 4
"""Inverse share of the budget for a starting method that adapts to its budget."""


@dataclass(frozen=True)
class LocalSearch(Search):
    """Base class of searches that improve sets step by step.

    Parameters
    ----------
    start
        Another method, by name or as an instance (a fitted explainer, for example). The k features that it
        ranks highest become one of the starting sets, so the result is never worse. It runs once for all
        sparsities, and its evaluations are subtracted from the budget of each. It does not run if the budget
        covers all sets.
    """

    start: str | Explainer | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        """Check the settings and that the starting method exists."""
        super().__post_init__()
        if isinstance(self.start, str):
            try:
                explainers.get(self.start)
            except SettingError as error:
                if self.start in learned_methods:
                    raise SettingError(
                        f"`start` {self.start!r} must be fitted first: pass the result of pertinent.fit."
                    ) from None
                raise SettingError(f"`start`: {error}") from None
        if (start := self._start()) is not None:
            self.change_traits(reads_numbers=start.traits.reads_numbers, any_target=start.traits.any_target)

    def min_budget(self, n_features: int) -> int:
        """Return 1 set plus the evaluations of the starting method."""
        start = self._start()
        return 1 if start is None else 1 + start.min_budget(n_features)

    def best_sets(self, task: Task, sizes: Sequence[int], log: SearchLog) -> Asking[dict[int, Masks]]:
        """Run the starting method, then the searches in parallel."""
        budget = task.budget // len(sizes) if self.spread else task.budget
        *generators, start_rng = task.rng.spawn(len(sizes) + 1)
        start, starts, cost = self._start(), dict[int, Masks](), 0
        searched = [k for k in sizes if comb(task.n_features, k) > budget]
        if start is not None and searched:
            cost = start.evaluations(task.n_features) or max(
                start.min_budget(task.n_features), budget // SHARE
            )
            sampling = replace(task.sampling, early_stopping=None, has_listener=False)
            start_task = replace(task, budget=cost, rng=start_rng, sampling=sampling)
            finding = yield from start.explain(start_task)
            starts = {k: top_features(finding, task, k) for k in searched}
        rest = budget - (ceil(cost / len(searched)) if self.spread and starts else cost)
        branches = {
            k: self.search_from(starts.get(k), replace(task, budget=rest if k in starts else budget), k, rng)
            for k, rng in zip(sizes, generators, strict=True)
        }
        return (yield from self.in_parallel(task, branches, log, dict.fromkeys(starts, cost)))

    @abstractmethod
    def search_from(self, start: Masks | None, task: Task, k: int, rng: np.random.Generator) -> Asking[Masks]:
        """Search for the best set of k features; `start`, if any, is one of the starting sets."""

    def _start(self) -> Explainer | None:
        return explainers.make(self.start) if isinstance(self.start, str) else self.start


def top_features(finding: Finding, task: Task, k: int) -> Masks:
    """Return the k most important features: a chosen set if there is one, else the largest scores."""
    for sparsity, mask in finding.chosen.items():
        if n_kept(sparsity, task.n_features) == k:
            return mask
    assert finding.scores is not None
    scores = finding.scores[task.target] if finding.scores.ndim == 2 else finding.scores
    return largest(task.output.importance(scores), k)


def first_sets(rng: np.random.Generator, n: int, d: int, k: int, start: Masks | None) -> Masks:
    """Return `n` distinct sets of k of d features: `start` first if there is one, the rest uniform."""
    sets = uniform_sets(rng, n, d, k)
    if start is None:
        return sets
    others = sets[(sets != start).any(axis=1)]
    return np.concatenate([start[None], others])[:n]


class VisitedSets:
    """The visited sets, and which visited sets have no new neighbours."""

    def __init__(self, sets: Iterable[Masks]) -> None:
        self.keys = {mask.tobytes() for mask in sets}
        self._exhausted: set[bytes] = set()

    def best_swaps(self, mask: Masks, gain: Floats, n: int) -> list[Masks]:
        """Return the n unvisited sets with the largest expected gain from one swap, and mark them visited.

        Swapping i out and j in gains g_j − g_i. The features inside are sorted from the worst, those outside
        from the best, so replacing either feature of a swap by an earlier one never lowers its gain, and the
        next best swap is one of a few candidates.
        """
        key = mask.tobytes()
        if key in self._exhausted:
            return []
        inside, outside = np.flatnonzero(mask), np.flatnonzero(~mask)
        leaves = inside[np.argsort(gain[inside], kind="stable")].tolist()
        enters = outside[np.argsort(-gain[outside], kind="stable")].tolist()
        losses, gains = gain[leaves].tolist(), gain[enters].tolist()
        swapped = bytearray(key)
        new: list[Masks] = []
        queue = [(losses[0] - gains[0], 0, 0)] if losses and gains else []
        while queue and len(new) < n:
            _, i, j = heappop(queue)
            if j + 1 < len(enters):
                heappush(queue, (losses[i] - gains[j + 1], i, j + 1))
            if j == 0 and i + 1 < len(leaves):
                heappush(queue, (losses[i + 1] - gains[0], i + 1, 0))
            swapped[leaves[i]], swapped[enters[j]] = 0, 1
            if (new_key := bytes(swapped)) not in self.keys:
                self.keys.add(new_key)
                new.append(np.frombuffer(new_key, dtype=np.bool_))
            swapped[leaves[i]], swapped[enters[j]] = 1, 0
        if len(new) < n:
            self._exhausted.add(key)
        return new
