"""Means, intervals and differences as the pages show them; missing values are dashes."""

from __future__ import annotations

import numpy as np

from experiments.shared.pages import MISSING
from pertinent.array_types import Floats
from pertinent.stats import Difference, Interval, bootstrap, paired_difference

RESAMPLES = 10_000
"""Number of bootstrap resamples of the papers with many cells."""


def interval(
    values: Floats | None, *, within: tuple[float, float] | None = None, resamples: int | None = None
) -> Interval | None:
    """Return the mean with its 95% bootstrap interval; ``None`` if nothing was measured."""
    if values is None or not np.isfinite(values).any():
        return None
    return bootstrap(values, within=within, resamples=resamples or RESAMPLES)


def difference(a: Floats | None, b: Floats | None, *, resamples: int | None = None) -> Difference | None:
    """Return the paired difference a − b over the inputs that both have; ``None`` if one is missing."""
    if a is None or b is None:
        return None
    n = min(np.shape(a)[-1], np.shape(b)[-1])
    return paired_difference(a[..., :n], b[..., :n], resamples=resamples or RESAMPLES)


def show(value: Interval | None, form: str = ".2f", factor: float = 1.0) -> str:
    """Return text such as ``0.81 [0.79, 0.83]``; the form ``+.2f`` adds signs."""
    if value is None:
        return MISSING
    mean, low, high = (f"{factor * number:{form}}" for number in (value.mean, value.low, value.high))
    return f"{mean} [{low}, {high}]" if np.isfinite(value.low) else mean


def show_mean(values: Floats | None, form: str = ".2f", factor: float = 1.0) -> str:
    """Return the mean of values with its interval, as `show` does."""
    return show(interval(None if values is None else factor * np.asarray(values)), form)


def number(value: float | None, form: str = ".2f", missing: str = "") -> str:
    """Return a number of the paper, or the text for a missing one."""
    return missing if value is None else format(value, form)


def verdict(gap: Difference | None) -> str:
    """Return ``win``, ``draw`` or ``loss`` of the first of two, at 95%."""
    if gap is None:
        return MISSING
    return "win" if gap.low > 0 else "loss" if gap.high < 0 else "draw"


def count_verdicts(verdicts: list[str]) -> str:
    """Return text such as ``12 wins, 1 draw, 0 losses``."""
    if not verdicts:
        return MISSING
    kinds = (("win", "wins"), ("draw", "draws"), ("loss", "losses"))
    counts = [(verdicts.count(one), one, several) for one, several in kinds]
    return ", ".join(f"{n} {one if n == 1 else several}" for n, one, several in counts)


def holds(gap: Difference | None) -> str:
    """Return whether a difference that should be positive is, at 95%."""
    return {"win": "yes", "draw": "undecided", "loss": "no, the reverse", MISSING: MISSING}[verdict(gap)]
