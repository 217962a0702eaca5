"""Confidence intervals, and differences with p-values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pertinent.number_format import measure_text

FEWEST = 20
"""Smallest number of inputs for conclusions; with fewer, intervals are too narrow."""


@dataclass(frozen=True)
class Interval:
    """A mean with a confidence interval; `n` is the number of inputs."""

    mean: float
    low: float
    high: float
    n: int

    def __str__(self) -> str:
        """Return the mean and its bounds, as in ``0.123 [0.100, 0.145]``, or only the mean."""
        return f"{measure_text(self.mean)} {self.bounds}".rstrip()

    @property
    def bounds(self) -> str:
        """Return the bounds, as in ``[0.100, 0.145]``; empty if there is only one input."""
        return f"[{measure_text(self.low)}, {measure_text(self.high)}]" if np.isfinite(self.low) else ""


@dataclass(frozen=True)
class Difference(Interval):
    """A mean of paired differences with a confidence interval and the p-value for no difference.

    `comparisons` is the number of differences that the p-value is corrected for, including this one.
    """

    p_value: float
    comparisons: int = 1

    def __str__(self) -> str:
        """Return the difference with its p-value, as in ``0.123 [0.100, 0.145] (p = 0.004)``."""
        return f"{super().__str__()} ({self.p_text})" if self.p_text else super().__str__()

    @property
    def p_text(self) -> str:
        """Return the p-value and its correction, as in ``p = 0.004``; empty for one input."""
        if not np.isfinite(self.p_value):
            return ""
        text = "p < 0.001" if self.p_value < 0.001 else f"p = {self.p_value:.3f}"
        return f"{text}, Holm-corrected for {self.comparisons} comparisons" if self.comparisons > 1 else text


def holm(differences: Sequence[Difference]) -> list[Difference]:
    """Return the differences with p-values corrected for the number of comparisons (Holm 1979).

    The smallest of m p-values is multiplied by m, the next one by m − 1, and so on; each is at least as large
    as its predecessor. This keeps the probability of any false positive at that of a single test. Differences
    without a p-value (NaN) are not counted.

    >>> differences = [Difference(1.0, 0.0, 2.0, 30, p) for p in (0.01, 0.04, 0.03, 0.005)]
    >>> [round(difference.p_value, 3) for difference in holm(differences)]
    [0.03, 0.06, 0.06, 0.02]
    """
    p_values = np.array([difference.p_value for difference in differences], dtype=np.float64)
    order = np.argsort(p_values)[: np.count_nonzero(~np.isnan(p_values))]
    factors = np.arange(len(order), 0, -1)
    p_values[order] = np.minimum(np.maximum.accumulate(factors * p_values[order]), 1.0)
    pairs = zip(differences, p_values.tolist(), strict=True)
    return [replace(difference, p_value=p, comparisons=max(1, len(order))) for difference, p in pairs]
