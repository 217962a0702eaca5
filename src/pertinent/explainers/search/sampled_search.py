"""Random search and exhaustive search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import comb

import numpy as np

from pertinent.array_types import Masks
from pertinent.asks import Asking
from pertinent.config.settings import Count
from pertinent.errors import BudgetError
from pertinent.explainers.base import Steps, Task, explainers, n_kept
from pertinent.explainers.search.base import SeparateSearches, uniform_sets


@explainers.register("random-search")
@dataclass(frozen=True)
class RandomSearch(SeparateSearches):
    """The best of as many distinct k-sparse sets as the budget allows, drawn uniformly."""

    paper = "Hase et al. 2021, Sec. 6.1 (1)"
    summary = "the best of random sets, for each sparsity"

    def search(self, task: Task, k: int, rng: np.random.Generator) -> Asking[Masks]:
        """Draw sets, evaluate them and keep the best."""
        sets = uniform_sets(rng, task.budget, task.n_features, k)
        objective = yield from self.judge(task, sets)
        return np.asarray(sets[objective.argmax()])


@explainers.register("exhaustive-search")
@dataclass(frozen=True)
class ExhaustiveSearch(SeparateSearches):
    """The best of all C(d, k) sets: the optimum, for short inputs.

    Parameters
    ----------
    most
        Largest number of sets; a search that exceeds it raises an error instead of starting a very long run.
    """

    paper = "Hase et al. 2021, Sec. 6.1 (3)"
    traits = replace(SeparateSearches.traits, deterministic=True)
    summary = "the best of all sets, for each sparsity (short inputs)"
    most: Count = 200_000

    def evaluations(self, n_features: int) -> int:
        """Return `most`; `explain` counts the sets of the requested sizes."""
        return self.most

    def min_budget(self, n_features: int) -> int:
        """Return 1, for the case that all features are kept."""
        return 1

    def explain(self, task: Task) -> Steps:
        """Raise a `BudgetError` if there are too many sets; otherwise search."""
        self.check_sizes(task.n_features, task.sparsities, task.budget)
        return (yield from super().explain(task))

    def check_sizes(self, n_features: int, sparsities: Sequence[float], budget: int) -> None:
        """Raise a `BudgetError` if some size has more sets than allowed."""
        sizes = {n_kept(s, n_features) for s in sparsities}
        largest = max(comb(n_features, k) for k in sizes)
        allowed = min(self.most, budget // len(sizes) if self.spread else budget)
        if largest > allowed:
            raise BudgetError(
                f"exhaustive-search needs {_count_text(largest)} sets of {n_features} features, but only "
                f"{allowed:,} are allowed. Use parallel-local-search or coarser features, or increase `most` "
                "and `budget`."
            )

    def search(self, task: Task, k: int, rng: np.random.Generator) -> Asking[Masks]:
        """Evaluate all sets."""
        return (yield from self.best_of_all(task, k))


def _count_text(number: int) -> str:
    return f"{number:,}" if number < 10**15 else f"about 10^{len(str(number)) - 1}"
