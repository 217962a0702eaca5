"""Measures of all models as arrays (seeds, inputs), from which the tables are made."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from experiments.hase2021.methods import AT_A_QUARTER, GRID, REDUCED, run_of
from experiments.shared.stages import read_record
from pertinent.array_types import Floats
from pertinent.stats import Difference, Interval, bootstrap, paired_difference

TRAININGS = {"standard": "Standard", "attention-mask": "CT"}
RESAMPLES = 100_000
Key = tuple[str, int | None, str, str]
"""Method, budget, metric and training."""
_NAME = re.compile(
    r"(?P<part>[a-z0-9]+(-\d+layers)?)-(?P<training>standard|attention-mask)-(?P<seed>\d+)"
    r"(?P<short>-short)?-[a-z]+"
)


class Part:
    """Measures of the models of one encoder on the texts of a data set.

    Where a run was stopped, methods have explained different numbers of texts; of each training those texts
    count that all methods have explained.
    """

    def __init__(self) -> None:
        self._rows: dict[Key, dict[int, dict[str, Any]]] = defaultdict(dict)
        self._seeds: set[int] = set()
        self._inputs: dict[str, int] = {}

    def add(self, row: dict[str, Any], training: str, seed: int) -> None:
        """Add a row of a record."""
        self._rows[row["method"], row["budget"], row["metric"], training][seed] = row
        self._seeds.add(seed)
        n = len(row["values"]["probability"])
        self._inputs[training] = min(n, self._inputs.get(training, n))

    @property
    def shapes(self) -> dict[str, tuple[int, int]]:
        """Return the numbers of seeds and texts, by training."""
        return {training: (len(self._seeds), n) for training, n in self._inputs.items()}

    def values(self, row: str, metric: str, training: str, scale: str = "probability") -> Floats | None:
        """Return means over sparsities (seeds, inputs), in points on the scale of probabilities."""
        factor = 100.0 if scale == "probability" else 1.0
        return self._stack(
            (*run_of(row), metric, training), lambda own: factor * np.mean(own["values"][scale], axis=1)
        )

    def course(self, row: str, metric: str, training: str) -> Floats | None:
        """Return points (seeds, inputs, grid); NaN before the first set was judged."""
        return self._course((*run_of(row), metric, training))

    def reduced(self, row: str, metric: str, training: str) -> Floats | None:
        """Return the points (seeds, inputs) that a method has reached with the reduced budget.

        One explanation by a salience method serves all sparsities, so that its budget is not reduced.
        """
        method, budget = run_of(row)
        if budget is None:
            return self.values(row, metric, training)
        if method in AT_A_QUARTER:
            budget = REDUCED
        elif method not in ("random-search", "parallel-local-search"):
            return None
        course = self._course((method, budget, metric, training))
        return None if course is None else course[..., GRID.index(REDUCED)]

    def _course(self, key: Key) -> Floats | None:
        return self._stack(key, lambda row: 100.0 * np.array(row["course"], dtype=float))

    def _stack(self, key: Key, values_of: Callable[[dict[str, Any]], Floats]) -> Floats | None:
        """Return a row for each seed, NaN where it was not measured, so that rows of two cells are pairs."""
        if key not in self._rows:
            return None
        n = self._inputs[key[-1]]
        by_seed = {seed: values_of(row)[:n] for seed, row in self._rows[key].items()}
        blank = np.full_like(next(iter(by_seed.values())), np.nan)
        return np.array([by_seed.get(seed, blank) for seed in sorted(self._seeds)])


def read_parts(folder: Path) -> dict[str, Part]:
    """Return the measures in a folder by part, such as ``sst2``, ``sst2-short`` or ``snli-3layers``."""
    parts: dict[str, Part] = defaultdict(Part)
    for path in sorted(folder.glob("*.json")):
        if match := _NAME.fullmatch(path.stem):
            for row in read_record(path)["results"]:
                parts[match["part"] + (match["short"] or "")].add(row, match["training"], int(match["seed"]))
    return dict(parts)


def measured_seeds(values: Floats) -> Floats:
    """Return the rows of the seeds that were measured."""
    return values[~np.isnan(values).any(axis=1)]


def interval(values: Floats) -> Interval:
    """Return the mean over seeds and inputs, both resampled."""
    return bootstrap(measured_seeds(values), resamples=RESAMPLES)


def difference(a: Floats, b: Floats) -> Difference:
    """Return a − b, paired by seed and input, over the seeds and the first inputs that both have."""
    n = min(a.shape[1], b.shape[1])
    both = ~np.isnan(a[:, :n] + b[:, :n]).any(axis=1)
    return paired_difference(a[both, :n], b[both, :n], resamples=RESAMPLES)


def show(value: Interval, digits: int = 2) -> str:
    """Return the mean and half of the interval's width, as in the paper."""
    return f"{value.mean:.{digits}f} ({(value.high - value.low) / 2:.{digits}f})"
