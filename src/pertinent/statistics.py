"""Means with confidence intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pertinent.types import Floats


@dataclass(frozen=True)
class Interval:
    """A mean and the bounds of its confidence interval."""

    mean: float
    low: float
    high: float
    n: int

    def __str__(self) -> str:
        """As ``0.123 [0.100, 0.145]``, or the mean alone where there are no bounds."""
        return f"{self.mean:.3f} {self.bounds}".rstrip()

    @property
    def bounds(self) -> str:
        """As ``[0.100, 0.145]``; nothing where one input gives none."""
        return f"[{self.low:.3f}, {self.high:.3f}]" if np.isfinite(self.low) else ""


def bootstrap(values: Floats, *, resamples: int = 10_000, level: float = 0.95, seed: int = 0) -> Interval:
    """The percentile bootstrap of a mean over inputs.

    >>> bootstrap(np.ones(8))
    Interval(mean=1.0, low=1.0, high=1.0, n=8)
    """
    n = len(values)
    if n < 2:
        return Interval(float(values.mean()) if n else np.nan, np.nan, np.nan, n)
    rng = np.random.default_rng(seed)
    means = np.empty(resamples)
    step = max(1, 2_000_000 // n)
    for first in range(0, resamples, step):
        rows = min(step, resamples - first)
        means[first : first + rows] = values[rng.integers(n, size=(rows, n))].mean(axis=1)
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(values.mean()), float(low), float(high), n)
