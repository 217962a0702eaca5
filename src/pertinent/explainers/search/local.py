"""The base of local searches: their starting sets, the sets seen so far, and the best swaps."""

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
from pertinent.explainers.search.base import Course, SeparateSearches, largest, uniform_sets

SHARE = 4
"""A starting method that adapts to its budget gets 1 / SHARE of the budget."""


@dataclass(frozen=True)
class LocalSearch(SeparateSearches):
    """A search that improves sets step by step.

    Parameters
    ----------
    start
        Another method, by name or as an instance, such as a fitted explainer: the k features that it finds
        most important are one of the sets that the search begins with, so that it never ends with a worse
        one. It runs once for all sparsities, and its evaluations are taken from the budget of each. It is not
        run where the budget covers all sets.
    """

    start: str | Explainer | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        """Check the settings, and that there is a method of that name."""
        super().__post_init__()
        if isinstance(self.start, str):
            try:
                explainers.get(self.start)
            except SettingError as error:
                if self.start in learned_methods:
                    raise SettingError(
                        f"`start` {self.start!r} has to learn first: give what pertinent.fit returns."
                    ) from None
                raise SettingError(f"`start`: {error}") from None
        if (start := self._start()) is not None:
            self.change_traits(reads_numbers=start.traits.reads_numbers, any_target=start.traits.any_target)

    def min_budget(self, n_features: int) -> int:
        """One set, and the evaluations that the starting method needs."""
        start = self._start()
        return 1 if start is None else 1 + start.min_budget(n_features)

    def best_sets(self, task: Task, kept: Sequence[int], course: Course) -> Asking[dict[int, Masks]]:
        """Run the starting method, then the searches in parallel."""
        own = task.budget // len(kept) if self.spread else task.budget
        *generators, of_start = task.rng.spawn(len(kept) + 1)
        start, begin, cost = self._start(), dict[int, Masks](), 0
        asking = [k for k in kept if comb(task.n_features, k) > own]
        if start is not None and asking:
            needed = start.evaluations(task.n_features)
            cost = needed or max(start.min_budget(task.n_features), own // SHARE)
            alone = replace(
                task,
                budget=cost,
                rng=of_start,
                sampling=replace(task.sampling, early_stopping=None, has_listener=False),
            )
            finding = yield from start.explain(alone)
            begin = {k: chosen_by(finding, task, k) for k in asking}
        rest = own - (ceil(cost / len(asking)) if self.spread and begin else cost)
        branches = {
            k: self.search_from(begin.get(k), replace(task, budget=rest if k in begin else own), k, rng)
            for k, rng in zip(kept, generators, strict=True)
        }
        return (yield from self.in_parallel(task, branches, course, dict.fromkeys(begin, cost)))

    def search(self, task: Task, k: int, rng: np.random.Generator) -> Asking[Masks]:
        """Search from random sets."""
        return self.search_from(None, task, k, rng)

    @abstractmethod
    def search_from(self, start: Masks | None, task: Task, k: int, rng: np.random.Generator) -> Asking[Masks]:
        """Find the best set of k features, beginning with `start` among others, if there is one."""

    def _start(self) -> Explainer | None:
        return explainers.make(self.start) if isinstance(self.start, str) else self.start


def chosen_by(finding: Finding, task: Task, k: int) -> Masks:
    """The k most important features: a set that was chosen, else those with the largest scores."""
    for sparsity, mask in finding.chosen.items():
        if n_kept(sparsity, task.n_features) == k:
            return mask
    assert finding.scores is not None
    scores = finding.scores[task.target] if finding.scores.ndim == 2 else finding.scores
    return largest(task.output.importance(scores), k)


def first_sets(rng: np.random.Generator, n: int, d: int, k: int, start: Masks | None) -> Masks:
    """`n` distinct sets of k of d features: `start` first if there is one, the others uniform."""
    sets = uniform_sets(rng, n, d, k)
    if start is None:
        return sets
    others = sets[(sets != start).any(axis=1)]
    return np.concatenate([start[None], others])[:n]


class Seen:
    """The sets that have been seen, and those of them that have no new neighbour left."""

    def __init__(self, sets: Iterable[Masks]) -> None:
        self.names = {chosen.tobytes() for chosen in sets}
        self._closed: set[bytes] = set()

    def is_new(self, chosen: Masks) -> bool:
        """Whether a set has not been seen yet; marks it as seen."""
        before = len(self.names)
        self.names.add(chosen.tobytes())
        return len(self.names) > before

    def best_swaps(self, chosen: Masks, gain: Floats, n: int) -> list[Masks]:
        """The n new sets with the largest expected gain from swapping one feature; marks them as seen.

        Swapping i out and j in gains g_j − g_i. The features inside are sorted worst first, those
        outside best first, so replacing either feature of a swap by an earlier one never lowers its
        gain, and the next best swap is found among a few candidates.
        """
        name = chosen.tobytes()
        if name in self._closed:
            return []
        inside, outside = np.flatnonzero(chosen), np.flatnonzero(~chosen)
        leaves = inside[np.argsort(gain[inside], kind="stable")].tolist()
        enters = outside[np.argsort(-gain[outside], kind="stable")].tolist()
        loss, hope = gain[leaves].tolist(), gain[enters].tolist()
        swapped = bytearray(name)
        found: list[Masks] = []
        queue = [(loss[0] - hope[0], 0, 0)] if loss and hope else []
        while queue and len(found) < n:
            _, i, j = heappop(queue)
            if j + 1 < len(enters):
                heappush(queue, (loss[i] - hope[j + 1], i, j + 1))
            if j == 0 and i + 1 < len(leaves):
                heappush(queue, (loss[i + 1] - hope[0], i + 1, 0))
            swapped[leaves[i]], swapped[enters[j]] = 0, 1
            if (new := bytes(swapped)) not in self.names:
                self.names.add(new)
                found.append(np.frombuffer(new, dtype=np.bool_))
            swapped[leaves[i]], swapped[enters[j]] = 1, 0
        if len(found) < n:
            self._closed.add(name)
        return found
