"""Record of the paper's game on one data set: all scores, and measures of agreement between them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from experiments.yang2023.sets import SETS
from pertinent.array_types import Floats
from pertinent.diagnostics.stability import top_in_common
from pertinent.stats import spearman

TRUTH = "SVS-25/98"
"""Run of SVS-25 that other methods are compared with."""
REFERENCE = "reference-5000/98"
"""Run of kernel-shap with 5,000 evaluations, on only the tokens."""
Scores = list[Floats]
"""Scores of each text."""
Measure = Callable[[Floats, Floats], float]


class GameRecord:
    """Scores by ``texts/method/seed`` in one file, which `save` replaces.

    Scores are kept as float16, concatenated over texts, with the number of tokens of each text. `meta` holds
    plain values.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._arrays: dict[str, Any] = {}
        self.meta: dict[str, Any] = {}
        if path.is_file():
            with np.load(path) as stored:
                self._arrays = {name: stored[name] for name in stored.files if name != "meta"}
                self.meta = json.loads(str(stored["meta"]))

    def __contains__(self, key: str) -> bool:
        return f"{key}/scores" in self._arrays

    @property
    def keys(self) -> list[str]:
        """Return the names of all scores."""
        return [name.removesuffix("/scores") for name in self._arrays if name.endswith("/scores")]

    def add(self, key: str, scores: Sequence[Floats], special: Sequence[Sequence[float]] = ()) -> None:
        """Add the scores of some texts, and those of their special tokens where these are players."""
        self._arrays[f"{key}/scores"] = np.concatenate(scores).astype(np.float16)
        self._arrays[f"{key}/lengths"] = np.array([len(row) for row in scores], dtype=np.int16)
        if any(len(row) for row in special):
            self._arrays[f"{key}/special"] = np.array(special, dtype=np.float16)

    def scores(self, key: str) -> Scores:
        """Return the scores of each text."""
        ends = np.cumsum(self._arrays[f"{key}/lengths"].astype(int))[:-1]
        return np.split(self._arrays[f"{key}/scores"].astype(float), ends)

    def special(self, key: str, n: int) -> Scores:
        """Return the scores of n special tokens of each text; they are 0 where they were no players."""
        texts = len(self._arrays[f"{key}/lengths"])
        stored = self._arrays.get(f"{key}/special")
        return list(np.zeros((texts, n)) if stored is None else stored[:, :n].astype(float))

    def save(self) -> None:
        """Write the file."""
        unfinished = self.path.with_suffix(".part.npz")
        np.savez_compressed(unfinished, meta=np.array(json.dumps(self.meta)), **self._arrays)
        unfinished.rename(self.path)

    def seeds(self, texts: str, method: str, *, special: bool = False) -> list[Scores]:
        """Return the scores of a method with each seed, without the run that others are compared with."""
        keys = [
            key for key in self.keys if key.startswith(f"{texts}/{method}/") and key != f"{texts}/{TRUTH}"
        ]
        return [self._scores_of(key, texts, special) for key in keys]

    def stability(
        self, texts: str, method: str, measure: Measure | None = None, *, special: bool = False
    ) -> Floats | None:
        """Return the mean of a measure over pairs of seeds, for each text that all seeds have."""
        runs = self.seeds(texts, method, special=special)
        if len(runs) < 2:
            return None
        n = min(map(len, runs))
        pairs = [_of_texts(measure or rank_correlation, a[:n], b[:n]) for a, b in combinations(runs, 2)]
        return np.asarray(np.mean(pairs, axis=0))

    def agreement_by_seed(
        self,
        texts: str,
        method: str,
        *,
        measure: Measure | None = None,
        truth: str = TRUTH,
        special: bool = False,
    ) -> Floats | None:
        """Return a measure between a method and SVS-25 (seeds, texts), for texts that all seeds have."""
        runs = self.seeds(texts, method, special=special)
        if not runs or f"{texts}/{truth}" not in self:
            return None
        values = self._scores_of(f"{texts}/{truth}", texts, special)
        n = min([len(values), *map(len, runs)])
        return np.array([_of_texts(measure or rank_correlation, run[:n], values[:n]) for run in runs])

    def agreement(self, texts: str, method: str, **options: Any) -> Floats | None:
        """Return the mean over seeds of `agreement_by_seed`, for each text."""
        by_seed = self.agreement_by_seed(texts, method, **options)
        return None if by_seed is None else np.asarray(by_seed.mean(axis=0))

    def spread(self, texts: str, method: str) -> float | None:
        """Return the standard deviation over seeds of the mean correlation with SVS-25."""
        by_seed = self.agreement_by_seed(texts, method)
        return None if by_seed is None or len(by_seed) < 2 else float(by_seed.mean(axis=1).std(ddof=1))

    def _scores_of(self, key: str, texts: str, special: bool) -> Scores:
        scores = self.scores(key)
        if not special:
            return scores
        more = self.special(key, 1 + len(SETS[texts].columns))
        return [np.concatenate(both) for both in zip(scores, more, strict=True)]


def rank_correlation(a: Floats, b: Floats) -> float:
    """Return Spearman's correlation."""
    return float(spearman(np.stack([a, b]))[0, 1])


def squared_difference(a: Floats, b: Floats) -> float:
    """Return the mean squared difference."""
    return float(((a - b) ** 2).mean())


def count_common(a: Floats, b: Floats, k: int) -> float:
    """Count the features among the top k of both; NaN for texts of k tokens or fewer."""
    return k * top_in_common([np.argsort(-scores, kind="stable").tolist() for scores in (a, b)], k)


MEASURES: dict[str, Measure] = {
    "ρ": rank_correlation,
    "top 5": partial(count_common, k=5),
    "top 10": partial(count_common, k=10),
    "MSE": squared_difference,
}


def _of_texts(measure: Measure, first: Scores, second: Scores) -> Floats:
    return np.array([measure(a, b) for a, b in zip(first, second, strict=True)])
