"""Student's t-distribution and paired t-test."""

from __future__ import annotations

from functools import lru_cache
from math import exp, lgamma, log, sqrt

import numpy as np

from pertinent.array_types import Floats
from pertinent.errors import require
from pertinent.stats.intervals import Difference
from pertinent.stats.resampling import nan_mean, paired_table


def paired_t(a: Floats, b: Floats, *, level: float = 0.95) -> Difference:
    """Return the mean of a − b over the same inputs, with Student's paired t-test that it is 0.

    `a` and `b` are (inputs,) or (seeds, inputs); the test is over inputs, on the means over seeds. Pairs with
    a NaN are ignored. The test assumes many differences, or approximately normal ones.

    >>> difference = paired_t(np.array([3.0, 4.0, 6.0, 8.0]), np.array([2.0, 2.0, 3.0, 3.0]))
    >>> difference.mean, round(difference.p_value, 4)
    (2.75, 0.0486)
    """
    require(0 < level < 1, "level", "between 0 and 1", level)
    differences = np.array([nan_mean(column) for column in paired_table(a, b).T])
    n = len(differences)
    mean = nan_mean(differences)
    if n < 2:
        return Difference(mean, np.nan, np.nan, n, np.nan)
    error = float(differences.std(ddof=1)) / sqrt(n)
    p_value = (1.0 if mean == 0 else 0.0) if error == 0 else student_tails(mean / error, n - 1)
    reach = error * _student_quantile(1 - level, n - 1)
    return Difference(mean, mean - reach, mean + reach, n, p_value)


@lru_cache(maxsize=256)
def student_factor(freedom: float) -> float:
    """Return the half-width of a 95% interval with this many degrees of freedom, over 1.96 standard errors.

    >>> round(1.96 * student_factor(10), 2)
    2.23
    """
    return _student_quantile(0.05, freedom) / 1.96


def student_tails(t: float, freedom: float) -> float:
    """Return the probability that |T| exceeds |t| for Student's T.

    >>> round(student_tails(2.228, 10), 4)
    0.05
    """
    whole = freedom + t * t
    if abs(t) < 1:  # avoid the small difference of two large numbers
        return 1 - _incomplete_beta(t * t / whole, 0.5, freedom / 2)
    return _incomplete_beta(freedom / whole, freedom / 2, 0.5)


def _student_quantile(tails: float, freedom: float) -> float:
    """Return the t whose two tails have total probability `tails`, by bisection."""
    low, high = 0.0, 1.0
    while student_tails(high, freedom) > tails:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if student_tails(middle, freedom) > tails else (low, middle)
    return high


def _incomplete_beta(x: float, a: float, b: float) -> float:
    """Return the regularised incomplete beta function by its continued fraction (Numerical Recipes, 6.4)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - _incomplete_beta(1 - x, b, a)
    tiny = 1e-300
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1) or tiny)
    fraction = d
    for m in range(1, 10_000):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            c, d = 1 + term / c or tiny, 1 / (1 + term * d or tiny)
            fraction *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log(1 - x))
    return front * fraction / a
