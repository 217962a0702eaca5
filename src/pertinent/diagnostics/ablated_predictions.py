"""A model's predictions when random features are removed, for each input and on average."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pertinent.array_types import Floats
from pertinent.intervals import Interval, bootstrap

_NUMBERS = ("right", "hits", "confidence", "entropy")
_RESAMPLES = 2_000


@dataclass(frozen=True)
class Ablated:
    """A model's predictions for one input with a share of its features removed.

    `predicted` is the majority vote over the draws and `right` whether it is the label (without
    labels: the prediction for the whole input); `hits` is the share of single draws that are right;
    `confidence` (the probability of the predicted class) and `entropy` (in nats) are means over draws.
    """

    input: int
    removal: str
    share: float
    predicted: int
    right: bool
    hits: float
    confidence: float
    entropy: float


@dataclass(frozen=True)
class Point:
    """Means over inputs for one removal and share; `score` is that of the majority votes."""

    removal: str
    share: float
    score: Interval
    confidence: Interval
    entropy: Interval


class Ablations:
    """Rows by removal and share, each with one value per input, in the order of inputs."""

    def __init__(self, rows: Sequence[Ablated]) -> None:
        self.removals = list(dict.fromkeys(row.removal for row in rows))
        self.shares = sorted({row.share for row in rows} - {0.0})
        self.inputs = len({row.input for row in rows})
        cells: dict[tuple[str, float], list[Ablated]] = {}
        for row in sorted(rows, key=lambda row: row.input):
            cells.setdefault((row.removal, row.share), []).append(row)
        self._columns = {
            key: {name: np.array([getattr(row, name) for row in own], dtype=np.float64) for name in _NUMBERS}
            for key, own in cells.items()
        }

    def values(self, of: str, removal: str, share: float) -> Floats:
        """One number per input."""
        return self._columns[removal, share][of]

    def overall(self, removal: str) -> Floats:
        """Whether the vote is right, for each input, averaged over shares."""
        return np.asarray(np.mean([self.values("right", removal, share) for share in self.shares], axis=0))

    def points(self) -> list[Point]:
        """Means with 95% intervals, by removal and share; share 0 is the whole input."""
        return [
            Point(
                removal,
                share,
                *(interval(self.values(of, removal, share), within) for of, within in _SHOWN.items()),
            )
            for removal in self.removals
            for share in (0.0, *self.shares)
        ]


_SHOWN = {"right": (0, 1), "confidence": None, "entropy": None}
"""What a point shows; a share of inputs lies between 0 and 1."""


def interval(values: Floats, within: tuple[float, float] | None = None) -> Interval:
    """The mean over inputs with its 95% bootstrap interval."""
    return bootstrap(values, within=within, resamples=_RESAMPLES)
