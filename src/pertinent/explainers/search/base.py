"""Base class of searches: one search per sparsity, run in parallel with equal budgets."""

from __future__ import annotations

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, islice
from math import comb
from typing import Any, Literal, TypeVar

import numpy as np

from pertinent import asks
from pertinent.array_types import Floats, Masks
from pertinent.asks import Algorithm, Asking, Fork, Gradients, MaskGradients, Publish, Question, Values
from pertinent.errors import BudgetError
from pertinent.explainers.base import Explainer, Finding, Steps, Task, Traits, n_kept

T = TypeVar("T")

CHUNK = 4096
"""Number of sets generated per chunk when there may be many."""


class SearchLog:
    """Progress of the searches, by set size.

    Attributes
    ----------
    best
        Best set so far.
    improvements
        Number of evaluations and the target's probability (for a regressor, the objective) at each
        improvement.
    """

    def __init__(self) -> None:
        self.best: dict[int, Masks] = {}
        self.improvements: defaultdict[int, list[list[float]]] = defaultdict(list)


@dataclass(frozen=True)
class Search(Explainer):
    """A search for the k features with the best objective, k = ceil(s·d) for each sparsity s.

    Each sparsity has the full budget, as in Hase et al. 2021.

    Parameters
    ----------
    objective
        ``"sufficiency"``: the target's probability stays high when only the set is kept, or a regressor's
        value stays close to that of the whole input. ``"comprehensiveness"``: the probability falls when the
        set is removed, or the value moves away.
    spread
        Whether to divide the budget equally among the sparsities (their App. C, Table 5).
    trajectory
        Whether `details` include, for each number of features, the number of evaluations and the target's
        probability at each improvement.
    """

    traits = Traits(meaning="membership", scales=("natural",), columnwise=False)
    objective: Literal["sufficiency", "comprehensiveness"] = "sufficiency"
    spread: bool = field(default=False, kw_only=True)
    trajectory: bool = field(default=False, kw_only=True)

    @property
    def budget_per_sparsity(self) -> bool:
        """Return whether each sparsity gets the full budget."""
        return not self.spread

    def explain(self, task: Task) -> Steps:
        """Search for the best set of each size."""
        sizes = sorted({n_kept(s, task.n_features) for s in task.sparsities})
        needed = len(sizes) * self.min_budget(task.n_features)
        if self.spread and task.budget < needed:
            raise BudgetError(
                f"`budget` must be at least {needed} for {self.name}, spread over {len(sizes)} sparsities, "
                f"but got {task.budget}."
            )
        log = SearchLog()
        best = yield from self.best_sets(task, sizes, log)
        details = {"trajectory": {str(k): log.improvements[k] for k in sizes}} if self.trajectory else {}
        return Finding(chosen=chosen_sets(best, task), details=details)

    @abstractmethod
    def best_sets(self, task: Task, sizes: Sequence[int], log: SearchLog) -> Asking[dict[int, Masks]]:
        """Return the best set of each size, updating `log` during the search."""

    def best_of_all(self, task: Task, k: int) -> Asking[Masks]:
        """Return the best of all sets of size k."""
        chunks = in_chunks(combinations(range(task.n_features), k))
        return (yield from self.best_in(task, (as_masks(chunk, task.n_features) for chunk in chunks)))

    def best_in(self, task: Task, chunks: Iterable[Masks]) -> Asking[Masks]:
        """Return the best of some sets, evaluated chunk by chunk."""
        best, best_set = -np.inf, np.ones(task.n_features, dtype=np.bool_)
        for sets in chunks:
            objective = yield from self.judge(task, sets)
            if objective.max() > best:
                best, best_set = objective.max(), sets[objective.argmax()]
        return best_set

    def kept_by(self, sets: Masks) -> Masks:
        """Return the features to keep in order to evaluate these sets (the function is its own inverse)."""
        return sets if self.objective == "sufficiency" else ~sets

    def judge(self, task: Task, sets: Masks) -> Asking[Floats]:
        """Return the objective of each set; larger is better."""
        values = yield Values(self.kept_by(sets))
        return self.signed(task.objective(values))

    def gains(self, task: Task, sets: Masks) -> Asking[tuple[Floats, Floats]]:
        """Return the objective of each set, and the rate at which log p improves as each feature enters it.

        A feature enters a set by being kept (sufficiency) or removed (comprehensiveness), and the objective
        is log p or −log p: the two signs cancel. For a plain value, closer to the value of the whole input is
        better, so the sign of its gradient depends on the side.
        """
        answer: Gradients = yield MaskGradients(self.kept_by(sets), task.target)
        gradients = answer.gradients
        if task.output.kind == "value":
            side = np.sign(answer.values[:, task.target] - task.prediction[task.target])
            gradients = -side[:, None] * gradients
        return self.signed(task.objective(answer.values)), gradients

    def signed(self, values: Floats) -> Floats:
        """Return the values with the sign that makes larger better."""
        return np.asarray(values if self.objective == "sufficiency" else -values)

    def in_parallel(
        self,
        task: Task,
        branches: Mapping[int, Algorithm],
        log: SearchLog,
        spent: Mapping[int, int] | None = None,
    ) -> Asking[dict[int, Masks]]:
        """Run searches in parallel and return their results by size.

        `spent` is the number of evaluations that each search used before it started.
        """
        if self.trajectory or task.sampling.has_listener:
            branches = {
                k: self.logged(branch, task, k, log, (spent or {}).get(k, 0))
                for k, branch in branches.items()
            }
        return dict(zip(branches, (yield Fork(list(branches.values()))), strict=True))

    def logged(self, search: Algorithm, task: Task, k: int, log: SearchLog, spent: int = 0) -> Algorithm:
        """Wrap a search so that it logs its improvements and publishes the best sets.

        Only sets of exactly k features count as improvements; preparatory questions, such as LIME masks, do
        not.
        """
        paid: set[Hashable] = set()
        sign = 1 if self.objective == "sufficiency" else -1

        def record(ask: asks.Ask, answer: Any) -> Publish | None:
            nonlocal spent
            if not isinstance(ask, Values):
                spent += ask.price(paid) if isinstance(ask, Question) else 0
                return None
            sets, improvements = self.kept_by(ask.masks), log.improvements[k]
            is_judged, before = (sets.sum(axis=1) == k).all(), len(improvements)
            for mask, key, objective in zip(sets, ask.keys, task.objective(answer).tolist(), strict=True):
                paid.add(key)
                if is_judged and (not improvements or sign * objective > sign * improvements[-1][1]):
                    improvements.append([len(paid) + spent, objective])
                    log.best[k] = mask.copy()
            if not task.sampling.has_listener or len(improvements) == before:
                return None
            return Publish(lambda: Finding(chosen=chosen_sets(log.best, task)))

        return asks.relay(search, on_answer=record)


@dataclass(frozen=True)
class SeparateSearches(Search):
    """A search that is independent for each size."""

    def best_sets(self, task: Task, sizes: Sequence[int], log: SearchLog) -> Asking[dict[int, Masks]]:
        """Run the searches in parallel."""
        if self.spread:
            task = replace(task, budget=task.budget // len(sizes))
        generators = task.rng.spawn(len(sizes))
        branches = {k: self.search(task, k, rng) for k, rng in zip(sizes, generators, strict=True)}
        return (yield from self.in_parallel(task, branches, log))

    @abstractmethod
    def search(self, task: Task, k: int, rng: np.random.Generator) -> Asking[Masks]:
        """Search for the best set of k features, a mask."""


def chosen_sets(best: Mapping[int, Masks], task: Task) -> dict[float, Masks]:
    """Return the best set for each sparsity whose size has one."""
    sizes = {s: n_kept(s, task.n_features) for s in task.sparsities}
    return {s: best[k] for s, k in sizes.items() if k in best}


def uniform_sets(rng: np.random.Generator, n: int, d: int, k: int) -> Masks:
    """Return `n` distinct uniform random sets of k of d features, or all sets if there are fewer."""
    possible = comb(d, k)
    if possible <= 4 * n:
        return as_masks(combinations(range(d), k), d)[rng.permutation(possible)[:n]]
    sets: dict[bytes, Masks] = {}
    while len(sets) < n:
        drawn = np.zeros((n - len(sets), d), dtype=np.bool_)
        np.put_along_axis(drawn, rng.random(drawn.shape).argsort(axis=1)[:, :k], values=True, axis=1)
        for row in drawn:
            sets.setdefault(row.tobytes(), row)
    return np.array(list(sets.values()))


def as_masks(sets: Iterable[Sequence[int]], d: int) -> Masks:
    """Return the masks of equally large sets."""
    features = np.array(list(sets), dtype=np.int64)
    masks = np.zeros((len(features), d), dtype=np.bool_)
    masks[np.arange(len(features))[:, None], features] = True
    return masks


def in_chunks(sets: Iterable[T]) -> Iterator[list[T]]:
    """Yield a few thousand sets at a time."""
    iterator = iter(sets)
    while chunk := list(islice(iterator, CHUNK)):
        yield chunk


def largest(scores: Floats, k: int) -> Masks:
    """Return the mask of the k largest scores; ties are broken by position."""
    mask = np.zeros(len(scores), dtype=np.bool_)
    mask[np.argsort(-scores, kind="stable")[:k]] = True
    return mask
