"""The base of searches: one search per sparsity, run in parallel with the same budget."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, islice
from math import comb
from typing import Any, Literal, TypeAlias

import numpy as np

from pertinent.array_types import Floats, Masks
from pertinent.asks import Algorithm, Ask, Fork, Gradients, MaskGradients, Values
from pertinent.errors import BudgetError
from pertinent.explainers.base import Explainer, Finding, Steps, Task, n_kept
from pertinent.explainers.search.trajectory import followed

Logs: TypeAlias = dict[int, list[list[float]]]
"""For each size: the evaluations so far and the probability (or objective) at each improvement."""

CHUNK = 4096
"""How many sets are generated at once when all are evaluated."""


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

    meaning = "membership"
    scales = ("natural",)
    columnwise = False
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
        if self.spread:
            self._check_spread(task, len(kept))
        logs: Logs = {k: [] for k in kept}
        best = yield from self.best_sets(task, kept, logs)
        details = {"trajectory": {str(k): log for k, log in logs.items()}} if self.trajectory else {}
        return Finding(chosen={s: best[n_kept(s, task.n_features)] for s in task.sparsities}, details=details)

    @abstractmethod
    def best_sets(self, task: Task, kept: Sequence[int], logs: Logs) -> Generator[Ask, Any, dict[int, Masks]]:
        """The best set of each size; `logs` record the course of the search."""

    def _check_spread(self, task: Task, parts: int) -> None:
        needed = parts * self.min_budget(task.n_features)
        if task.budget < needed:
            raise BudgetError(
                f"`budget` must be at least {needed} for {self.name}, spread over {parts} sparsities, "
                f"but got {task.budget}."
            )

    def best_of_all(self, task: Task, k: int) -> Generator[Ask, Any, Masks]:
        """The best of all sets of k features, evaluated a few thousand at a time."""
        every = combinations(range(task.n_features), k)
        best, best_set = -np.inf, np.ones(task.n_features, dtype=np.bool_)
        while chunk := list(islice(every, CHUNK)):
            sets = as_masks(chunk, task.n_features)
            objective = yield from self.judge(task, sets)
            if objective.max() > best:
                best, best_set = objective.max(), sets[objective.argmax()]
        return best_set

    def kept_by(self, sets: Masks) -> Masks:
        """The features to keep in order to evaluate these sets; its own inverse."""
        return sets if self.objective == "sufficiency" else ~sets

    def judge(self, task: Task, sets: Masks) -> Generator[Ask, Any, Floats]:
        """The objective of each set; larger is better."""
        values = yield Values(self.kept_by(sets))
        return self.signed(task.objective(values))

    def gains(self, task: Task, sets: Masks) -> Generator[Ask, Any, tuple[Floats, Floats]]:
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

    def best_sets(self, task: Task, kept: Sequence[int], logs: Logs) -> Generator[Ask, Any, dict[int, Masks]]:
        """Run the searches in parallel."""
        if self.spread:
            task = replace(task, budget=task.budget // len(kept))
        generators = task.rng.spawn(len(kept))
        branches = {k: self.search(task, k, rng) for k, rng in zip(kept, generators, strict=True)}
        return (yield from self.in_parallel(task, branches, logs))

    def in_parallel(
        self,
        task: Task,
        branches: Mapping[int, Algorithm],
        logs: Logs,
        spent: Mapping[int, int] | None = None,
    ) -> Generator[Ask, Any, dict[int, Masks]]:
        """What these searches find, by size; `spent` is what each had spent before it began."""
        if self.trajectory:
            branches = {
                k: followed(branch, self.kept_by, task.objective, k, logs[k], passes=(spent or {}).get(k, 0))
                for k, branch in branches.items()
            }
        found = yield Fork(list(branches.values()))
        return dict(zip(branches, found, strict=True))

    @abstractmethod
    def search(self, task: Task, k: int, rng: np.random.Generator) -> Generator[Ask, Any, Masks]:
        """Find the best set of k features, as a mask."""


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


def largest(scores: Floats, k: int) -> Masks:
    """The mask of the k largest scores; the first of equal scores."""
    mask = np.zeros(len(scores), dtype=np.bool_)
    mask[np.argsort(-scores, kind="stable")[:k]] = True
    return mask
