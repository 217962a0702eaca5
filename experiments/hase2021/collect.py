"""Results of all models put together: arrays (seeds, inputs) that the tables are made of."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from methods import GRID

from pertinent.array_types import Floats
from pertinent.stats import Difference, Interval, bootstrap, paired_difference

sys.path.append(str(Path(__file__).parents[1]))

from shared.pages import table

__all__ = ["TRAININGS", "Key", "Results", "difference", "interval", "measured_seeds", "shown", "table"]

TRAININGS = {"standard": "Standard", "attention-mask": "CT"}
_NAME = re.compile(
    r"(?P<set>[a-z0-9]+)(?:-(?P<layers>\d+)layers)?-(?P<training>standard|attention-mask)-(?P<seed>\d+)"
    r"(?P<short>-short)?-[a-z]+"
)


@dataclass(frozen=True)
class Key:
    """One cell of a table."""

    set: str
    short: bool
    training: str
    method: str
    budget: int | None
    metric: str
    layers: int | None = None
    """Of the second encoder; None is the first."""

    @property
    def part(self) -> tuple[str, bool, int | None]:
        """The models of an encoder on the texts of a set."""
        return self.set, self.short, self.layers


class Results:
    """What `explain.py` measured, by cell.

    Where a run was stopped, methods have explained more or fewer texts; of each training those count that
    all methods have explained.
    """

    def __init__(self, folder: Path) -> None:
        self._files: dict[Key, dict[int, dict[str, Any]]] = {}
        self._seeds: dict[tuple[str, bool, int | None], set[int]] = {}
        self._inputs: dict[tuple[tuple[str, bool, int | None], str], int] = {}
        for path in sorted(folder.glob("*.json")):
            match = _NAME.fullmatch(path.stem)
            if match is None:
                continue
            for row in json.loads(path.read_text())["results"]:
                key = Key(
                    match["set"],
                    bool(match["short"]),
                    match["training"],
                    row["method"],
                    row["budget"],
                    row["metric"],
                    int(match["layers"]) if match["layers"] else None,
                )
                self._files.setdefault(key, {})[int(match["seed"])] = row
                self._seeds.setdefault(key.part, set()).add(int(match["seed"]))
                n = len(row["values"]["probability"])
                self._inputs[key.part, key.training] = min(n, self._inputs.get((key.part, key.training), n))

    def cells(self, which: str, *, short: bool = False, layers: int | None = None) -> list[Key]:
        """What was measured of a set."""
        return [key for key in self._files if key.part == (which, short, layers)]

    def values(self, key: Key, scale: str = "probability") -> Floats | None:
        """(seeds, inputs), the mean over sparsities; in points on the scale of probabilities."""
        factor = 100.0 if scale == "probability" else 1.0
        return self._stacked(key, lambda row: factor * np.mean(row["values"][scale], axis=1))

    def course(self, key: Key) -> Floats | None:
        """(seeds, inputs, grid) in points; NaN before the first set was judged."""
        return self._stacked(key, lambda row: 100.0 * np.array(row["course"], dtype=float))

    def after(self, key: Key, evaluations: int) -> Floats | None:
        """(seeds, inputs) that a search had reached after so many evaluations for each sparsity."""
        found = self.course(key)
        return None if found is None else found[..., GRID.index(evaluations)]

    def _stacked(self, key: Key, of: Callable[[dict[str, Any]], Floats]) -> Floats | None:
        """A row for each seed; NaN where a seed was not measured, so that rows of two cells are pairs."""
        rows = self._files.get(key)
        if not rows:
            return None
        found = {seed: of(row)[: self._inputs[key.part, key.training]] for seed, row in rows.items()}
        blank = np.full_like(next(iter(found.values())), np.nan)
        return np.array([found.get(seed, blank) for seed in sorted(self._seeds[key.part])])


def measured_seeds(values: Floats) -> Floats:
    """The rows of the seeds that were measured."""
    return values[~np.isnan(values).any(axis=1)]


def interval(values: Floats) -> Interval:
    """The mean over seeds and inputs, both resampled."""
    return bootstrap(measured_seeds(values))


def difference(a: Floats, b: Floats) -> Difference:
    """A − b, paired by seed and input, over the seeds and the first inputs that both were measured with."""
    n = min(a.shape[1], b.shape[1])
    a, b = a[:, :n], b[:, :n]
    both = ~np.isnan(a + b).any(axis=1)
    return paired_difference(a[both], b[both])


def shown(found: Interval, digits: int = 2) -> str:
    """As the paper writes it: the mean, and half of the interval's width."""
    return f"{found.mean:.{digits}f} ({(found.high - found.low) / 2:.{digits}f})"
