"""The base of searches: one search per sparsity, run in parallel with the same budget."""

from __future__ import annotations

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, islice
from math import comb
from typing import Any, Literal, TypeVar

import numpy as np

from pertinent.array_types import Floats, Masks
from pertinent.asks import (
    Algorithm,
    Ask,
    Asking,
    Fork,
    Gradients,
    MaskGradients,
    Publish,
    Question,
    Values,
    relay,
)
from pertinent.errors import BudgetError
from pertinent.explainers.base import Explainer, Finding, Steps, Task, Traits, n_kept

T = TypeVar("T")

CHUNK = 4096
"""Number of sets that are generated at once where there may be many."""


class Course:
    """The course of the searches for all sizes, by size.

    `best` are the best sets so far. `log` has the number of evaluations so far, and the target's probability
    (or a regressor's objective), at each improvement.
    """

    def __init__(self) -> None:
        self.best: dict[int, Masks] = {}
        self.log: defaultdict[int, list[list[float]]] = defaultdict(list)


@dataclass(frozen=True)
class Search(Explainer):
    """Searches for the k features with the best objective, k = ceil(s·d) for each sparsity s.

    Each sparsity has the full budget, as in Hase et al. 2021.

    Parameters
    ----------
    objective
        ``"sufficiency"``: keeping only the set leaves the target's probability high, or a regressor's
        value close to that for the whole input. ``"comprehensiveness"``: removing the set lowers the
        probability, or moves the value away.
    spread
        Whether the budget is divided equally among the sparsities (their App. C, Table 5).
    trajectory
        Whether `details` include the course of the search: for each number of features, the
        evaluations so far and the target's probability at each improvement.
    """

    traits = Traits(meaning="membership", scales=("natural",), columnwise=False)
    objective: Literal["sufficiency", "comprehensiveness"] = "sufficiency"
    spread: bool = field(default=False, kw_only=True)
    trajectory: bool = field(default=False, kw_only=True)

    @property
    def budget_per_sparsity(self) -> bool:
        """Whether the budget is not spread over the sparsities."""
        return not self.spread

    def explain(self, task: Task) -> Steps:
        """Search for the best set of each size."""
        kept = sorted({n_kept(s, task.n_features) for s in task.sparsities})
        needed = len(kept) * self.min_budget(task.n_features)
        if self.spread and task.budget < needed:
            raise BudgetError(
                f"`budget` must be at least {needed} for {self.name}, spread over {len(kept)} sparsities, "
                f"but got {task.budget}."
            )
        course = Course()
        best = yield from self.best_sets(task, kept, course)
        details = {"trajectory": {str(k): course.log[k] for k in kept}} if self.trajectory else {}
        return Finding(chosen=chosen_from(best, task), details=details)

    @abstractmethod
    def best_sets(self, task: Task, kept: Sequence[int], course: Course) -> Asking[dict[int, Masks]]:
        """The best set of each size; `course` is kept up to date while it is searched for."""

    def best_of_all(self, task: Task, k: int) -> Asking[Masks]:
        """The best of all sets of k features."""
        every = in_chunks(combinations(range(task.n_features), k))
        return (yield from self.best_in(task, (as_masks(chunk, task.n_features) for chunk in every)))

    def best_in(self, task: Task, chunks: Iterable[Masks]) -> Asking[Masks]:
        """The best of some sets, which are evaluated chunk by chunk."""
        best, best_set = -np.inf, np.ones(task.n_features, dtype=np.bool_)
        for sets in chunks:
            objective = yield from self.judge(task, sets)
            if objective.max() > best:
                best, best_set = objective.max(), sets[objective.argmax()]
        return best_set

    def kept_by(self, sets: Masks) -> Masks:
        """The features to keep in order to evaluate these sets; its own inverse."""
        return sets if self.objective == "sufficiency" else ~sets

    def judge(self, task: Task, sets: Masks) -> Asking[Floats]:
        """The objective of each set; larger is better."""
        values = yield Values(self.kept_by(sets))
        return self.signed(task.objective(values))

    def gains(self, task: Task, sets: Masks) -> Asking[tuple[Floats, Floats]]:
        """The objective of each set, and the rate at which log p improves as each feature enters it.

        A feature enters a set by being kept (sufficiency) or by being removed (comprehensiveness),
        and the objective is log p or −log p: the two signs cancel. A plain value is better the closer
        it is to the value for the whole input, so the sign of its gradient depends on the side.
        """
        found: Gradients = yield MaskGradients(self.kept_by(sets), task.target)
        gradients = found.gradients
        if task.output.kind == "value":
            beyond = np.sign(found.values[:, task.target] - task.prediction[task.target])
            gradients = -beyond[:, None] * gradients
        return self.signed(task.objective(found.values)), gradients

    def signed(self, values: Floats) -> Floats:
        """The values with the sign that makes larger better."""
        return np.asarray(values if self.objective == "sufficiency" else -values)


@dataclass(frozen=True)
class SeparateSearches(Search):
    """One independent search for each size."""

    def best_sets(self, task: Task, kept: Sequence[int], course: Course) -> Asking[dict[int, Masks]]:
        """Run the searches in parallel."""
        if self.spread:
            task = replace(task, budget=task.budget // len(kept))
        generators = task.rng.spawn(len(kept))
        branches = {k: self.search(task, k, rng) for k, rng in zip(kept, generators, strict=True)}
        return (yield from self.in_parallel(task, branches, course))

    def in_parallel(
        self,
        task: Task,
        branches: Mapping[int, Algorithm],
        course: Course,
        spent: Mapping[int, int] | None = None,
    ) -> Asking[dict[int, Masks]]:
        """Run searches in parallel; return what they find, by size.

        `spent` has the number of evaluations that each search used before it began.
        """
        if self.trajectory or task.sampling.has_listener:
            branches = {
                k: self.followed(branch, task, k, course, (spent or {}).get(k, 0))
                for k, branch in branches.items()
            }
        found = yield Fork(list(branches.values()))
        return dict(zip(branches, found, strict=True))

    def followed(self, search: Algorithm, task: Task, k: int, course: Course, spent: int = 0) -> Algorithm:
        """Wrap a search so that it records its course, and publishes the best sets when they improve.

        Only sets of exactly k features can be an improvement; preparatory questions, such as the masks of
        LIME, cannot.
        """
        paid: set[Hashable] = set()
        sign = 1 if self.objective == "sufficiency" else -1

        def record(ask: Ask, answer: Any) -> Publish | None:
            nonlocal spent
            if not isinstance(ask, Values):
                spent += ask.price(paid) if isinstance(ask, Question) else 0
                return None
            sets, log = self.kept_by(ask.masks), course.log[k]
            judged, before = (sets.sum(axis=1) == k).all(), len(log)
            for chosen, key, reached in zip(sets, ask.keys, task.objective(answer).tolist(), strict=True):
                paid.add(key)
                if judged and (not log or sign * reached > sign * log[-1][1]):
                    log.append([len(paid) + spent, reached])
                    course.best[k] = chosen.copy()
            improved = task.sampling.has_listener and len(log) > before
            return Publish(lambda: Finding(chosen=chosen_from(course.best, task))) if improved else None

        return relay(search, on_answer=record)

    @abstractmethod
    def search(self, task: Task, k: int, rng: np.random.Generator) -> Asking[Masks]:
        """Find the best set of k features, as a mask."""


def chosen_from(best: Mapping[int, Masks], task: Task) -> dict[float, Masks]:
    """The set for each sparsity, of those sizes for which there is one."""
    sizes = {s: n_kept(s, task.n_features) for s in task.sparsities}
    return {s: best[k] for s, k in sizes.items() if k in best}


def uniform_sets(rng: np.random.Generator, n: int, d: int, k: int) -> Masks:
    """`n` distinct sets of k of d features, uniform over all such sets (fewer if there are fewer)."""
    possible = comb(d, k)
    if possible <= 4 * n:
        every = as_masks(combinations(range(d), k), d)
        return every[rng.permutation(possible)[:n]]
    sets: dict[bytes, Masks] = {}
    while len(sets) < n:
        drawn = np.zeros((n - len(sets), d), dtype=np.bool_)
        np.put_along_axis(drawn, rng.random(drawn.shape).argsort(axis=1)[:, :k], values=True, axis=1)
        for row in drawn:
            sets.setdefault(row.tobytes(), row)
    return np.array(list(sets.values()))


def as_masks(sets: Iterable[Sequence[int]], d: int) -> Masks:
    """Sets of equal size, given by their features, as masks."""
    chosen = np.array(list(sets), dtype=np.int64)
    masks = np.zeros((len(chosen), d), dtype=np.bool_)
    masks[np.arange(len(chosen))[:, None], chosen] = True
    return masks


def in_chunks(sets: Iterable[T]) -> Iterator[list[T]]:
    """A few thousand sets at a time."""
    left = iter(sets)
    while chunk := list(islice(left, CHUNK)):
        yield chunk


def largest(scores: Floats, k: int) -> Masks:
    """The mask of the k largest scores; the first of equal scores."""
    mask = np.zeros(len(scores), dtype=np.bool_)
    mask[np.argsort(-scores, kind="stable")[:k]] = True
    return mask
