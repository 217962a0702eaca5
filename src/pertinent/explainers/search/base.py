"""What all searches share: one search for each sparsity, side by side, under the same budget."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any, Literal

import numpy as np

from pertinent.engine.asks import Ask, Fork, Values
from pertinent.errors import unknown
from pertinent.explainers.base import Explainer, Finding, Steps, Task, n_kept
from pertinent.types import Floats, Masks


@dataclass(frozen=True)
class Search(Explainer):
    """Looks for the k features that make the objective largest, k = ceil(s·d) for each sparsity s.

    The budget is for each sparsity, as in Hase et al. 2021.

    Parameters
    ----------
    objective
        ``"sufficiency"``: keeping the set leaves the target's probability high.
        ``"comprehensiveness"``: removing the set makes it low.
    """

    objective: Literal["sufficiency", "comprehensiveness"] = "sufficiency"

    def __post_init__(self) -> None:
        """Check the settings."""
        if self.objective not in ("sufficiency", "comprehensiveness"):
            raise unknown("objective", self.objective, ("sufficiency", "comprehensiveness"))

    def explain(self, task: Task) -> Steps:
        """Run one search for each number of features kept."""
        kept = sorted({n_kept(s, task.n_features) for s in task.sparsities})
        generators = task.rng.spawn(len(kept))
        found = yield Fork([self.search(task, k, rng) for k, rng in zip(kept, generators, strict=True)])
        best = dict(zip(kept, found, strict=True))
        return Finding(chosen={s: best[n_kept(s, task.n_features)] for s in task.sparsities})

    @abstractmethod
    def search(self, task: Task, k: int, rng: np.random.Generator) -> Generator[Ask, Any, Masks]:
        """Find the best set of k features, as a mask."""

    def judge(self, task: Task, sets: Masks) -> Generator[Ask, Any, Floats]:
        """The objective of each set; larger is better."""
        if self.objective == "sufficiency":
            values = yield Values(sets)
            return np.asarray(values[:, task.target])
        values = yield Values(~sets)
        return np.asarray(-values[:, task.target])


def uniform_sets(rng: np.random.Generator, n: int, d: int, k: int) -> Masks:
    """`n` distinct sets of k of d features, uniform over all such sets (fewer if there are fewer)."""
    possible = comb(d, k)
    if possible <= 4 * n:
        every = as_masks(combinations(range(d), k), d)
        return every[rng.permutation(possible)[:n]]
    sets: dict[bytes, Masks] = {}
    while len(sets) < n:
        drawn = rng.random((n - len(sets), d)).argsort(axis=1).argsort(axis=1) < k
        for row in drawn:
            sets.setdefault(row.tobytes(), row)
    return np.array(list(sets.values()))


def as_masks(sets: Iterable[Sequence[int]], d: int) -> Masks:
    """Sets of equal size, given by their features, as masks."""
    chosen = np.array(list(sets), dtype=np.int64)
    masks = np.zeros((len(chosen), d), dtype=np.bool_)
    masks[np.arange(len(chosen))[:, None], chosen] = True
    return masks
