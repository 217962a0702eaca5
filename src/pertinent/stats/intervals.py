"""Confidence intervals, and differences with p-values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pertinent.number_format import measure_text

FEWEST = 20
"""The fewest inputs that allow a conclusion: with fewer, intervals are too narrow and p-values too small."""


@dataclass(frozen=True)
class Interval:
    """A mean and the bounds of its confidence interval; `n` counts the inputs."""

    mean: float
    low: float
    high: float
    n: int

    def __str__(self) -> str:
        """As ``0.123 [0.100, 0.145]``, or the mean alone if there are no bounds."""
        return f"{measure_text(self.mean)} {self.bounds}".rstrip()

    @property
    def bounds(self) -> str:
        """As ``[0.100, 0.145]``; empty if there is only one input."""
        return f"[{measure_text(self.low)}, {measure_text(self.high)}]" if np.isfinite(self.low) else ""


@dataclass(frozen=True)
class Difference(Interval):
    """The mean of paired differences, its interval, and the p-value for no difference.

    `comparisons` is how many differences the p-value is corrected for, itself among them.
    """

    p_value: float
    comparisons: int = 1

    def __str__(self) -> str:
        """As ``0.123 [0.100, 0.145] (p = 0.004)``."""
        return f"{super().__str__()} ({self.p_text})" if self.p_text else super().__str__()

    @property
    def p_text(self) -> str:
        """As ``p = 0.004`` or ``p < 0.001``, and how it is corrected; empty if there is only one input."""
        if not np.isfinite(self.p_value):
            return ""
        said = "p < 0.001" if self.p_value < 0.001 else f"p = {self.p_value:.3f}"
        return f"{said}, Holm-corrected for {self.comparisons} comparisons" if self.comparisons > 1 else said


def holm(differences: Sequence[Difference]) -> list[Difference]:
    """The differences with p-values that are corrected for their number (Holm 1979).

    The smallest of m p-values is multiplied by m, the next by m − 1 and so on, each at least as large as the
    one before: the probability of calling any difference significant that is none stays what it was for one.
    A difference without p-value (NaN) does not count.

    >>> found = [Difference(1.0, 0.0, 2.0, 30, p) for p in (0.01, 0.04, 0.03, 0.005)]
    >>> [round(each.p_value, 3) for each in holm(found)]
    [0.03, 0.06, 0.06, 0.02]
    """
    p_values = np.array([each.p_value for each in differences], dtype=np.float64)
    order = np.argsort(p_values)[: np.count_nonzero(~np.isnan(p_values))]
    factors = np.arange(len(order), 0, -1)
    p_values[order] = np.minimum(np.maximum.accumulate(factors * p_values[order]), 1.0)
    pairs = zip(differences, p_values.tolist(), strict=True)
    return [replace(each, p_value=p, comparisons=max(1, len(order))) for each, p in pairs]
