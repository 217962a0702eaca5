"""Random search: the best of uniform random sets."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np

from pertinent.array_types import Masks
from pertinent.asks import Ask
from pertinent.explainers.base import Task, explainers
from pertinent.explainers.search.base import SeparateSearches, uniform_sets


@explainers.register("random-search")
@dataclass(frozen=True)
class RandomSearch(SeparateSearches):
    """The best of as many distinct k-sparse sets as the budget allows, uniform over all of them."""

    paper = "Hase et al. 2021, Sec. 6.1 (1)"
    summary = "the best of random sets, for each sparsity"

    def search(self, task: Task, k: int, rng: np.random.Generator) -> Generator[Ask, Any, Masks]:
        """Draw sets, evaluate them, keep the best."""
        sets = uniform_sets(rng, task.budget, task.n_features, k)
        objective = yield from self.judge(task, sets)
        return np.asarray(sets[objective.argmax()])
