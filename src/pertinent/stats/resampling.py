"""Means and differences of means, with intervals and p-values from a block bootstrap."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pertinent.array_types import Floats, Ints
from pertinent.errors import InputError, require
from pertinent.stats.intervals import Difference, Interval

RESAMPLES = 100_000
"""Default number of resamples, as in Hase et al. 2021."""

ROUNDING = 1e-9

_CELLS_AT_ONCE = 2_000_000


def bootstrap(
    values: Floats,
    *,
    within: tuple[float, float] | None = None,
    resamples: int = RESAMPLES,
    level: float = 0.95,
    seed: int = 0,
) -> Interval:
    """Return the mean of `values` and its percentile interval, by resampling inputs and model seeds.

    Hase et al. 2021, Sec. 5 (footnote 3) and Sec. 6.3; Efron & Tibshirani 1994. Each resample draws inputs
    with replacement and, independently, seeds with replacement.

    Parameters
    ----------
    values
        (inputs,), or (seeds, inputs) for several trained models. NaN marks a missing value: it is ignored in
        means and resamples. Inputs and seeds without any value are dropped.
    within
        Smallest and largest possible value. If most values are at one of these limits, resampling
        underestimates the error. The interval is then widened to the Clopper–Pearson bound (1934) for the
        case that all inputs agree.

    Notes
    -----
    The order of inputs and seeds does not matter. A dimension of size one is not resampled; if both have size
    one, there are no bounds (NaN). With few seeds or inputs the intervals are too narrow, as in any bootstrap
    of a small sample: with ten seeds they cover the mean in about 90% of cases instead of 95%.

    >>> bootstrap(np.ones(8))
    Interval(mean=1.0, low=1.0, high=1.0, n=8)
    >>> round(bootstrap(np.ones(60), within=(0, 1)).low, 2)
    0.94
    >>> bootstrap(np.array([[0.0, 1.0, np.nan], [1.0, 2.0, np.nan]])).mean
    1.0
    """
    table = _table(values)
    means = _resample(table, resamples, seed)
    interval = Interval(nan_mean(table), *_bounds(means, level), table.shape[1])
    return interval if within is None else _widen(interval, table, within, level)


def paired_difference(
    a: Floats, b: Floats, *, resamples: int = RESAMPLES, level: float = 0.95, seed: int = 0
) -> Difference:
    """Return the mean of a − b over the same inputs and seeds, resampled as in `bootstrap`.

    Pairs with a NaN are ignored. With D* the mean difference of a resample, the two-sided p-value is ``2 · (1
    + min(#{D* ≤ 0}, #{D* ≥ 0})) / (1 + resamples)``, at most 1 and never 0. It is below 1 − `level` if the
    interval excludes 0 (up to the added ones). With fewer than 20 inputs it is too small, with 10 by about
    half.

    >>> paired_difference(np.arange(30.0), np.arange(30.0)).p_value
    1.0
    """
    table = paired_table(a, b)
    means = _resample(table, resamples, seed)
    p_value = np.nan
    if len(means):
        fewest = int(min(np.count_nonzero(means <= 0), np.count_nonzero(means >= 0)))
        p_value = min(1.0, 2 * (1 + fewest) / (1 + len(means)))
    return Difference(nan_mean(table), *_bounds(means, level), table.shape[1], p_value)


def nan_mean(values: Floats) -> float:
    """Return the mean of the non-NaN values; NaN if there are none."""
    present = values[~np.isnan(values)]
    return float(present.mean()) if len(present) else np.nan


def resampled_means(values: Floats, seed_counts: Ints, input_counts: Ints) -> Floats:
    """Return the mean of each resample, given how often each seed and each input was drawn.

    ``Σ s_i n_j v_ij / Σ s_i n_j`` over the non-missing values; NaN for a resample without values.
    `values` are (seeds, inputs), the counts (resamples, seeds) and (resamples, inputs).
    """
    seeds, inputs = seed_counts.astype(np.float64), input_counts.astype(np.float64)
    missing = np.isnan(values)
    totals = np.einsum("bj,bj->b", seeds @ np.where(missing, 0.0, values), inputs)
    if not missing.any():
        return np.asarray(totals / (seeds.sum(axis=1) * inputs.sum(axis=1)))
    weights = np.einsum("bj,bj->b", seeds @ (~missing).astype(np.float64), inputs)
    return np.asarray(np.divide(totals, weights, out=np.full_like(totals, np.nan), where=weights > 0))


def _resample(table: Floats, resamples: int, seed: int) -> Floats:
    """Return the means of all resamples that have values; empty if there is nothing to resample."""
    require(resamples >= 1, "resamples", "at least 1", resamples)
    n_seeds, n_inputs = table.shape
    if table.size < 2:
        return np.empty(0)
    rng = np.random.default_rng(seed)
    step = max(1, _CELLS_AT_ONCE // (n_seeds + n_inputs))
    parts = []
    for first in range(0, resamples, step):
        rows = min(step, resamples - first)
        parts.append(resampled_means(table, _counts(rng, rows, n_seeds), _counts(rng, rows, n_inputs)))
    means = np.concatenate(parts)
    return np.asarray(means[~np.isnan(means)])


def _counts(rng: np.random.Generator, rows: int, n: int) -> Ints:
    """Return how often each of n items is drawn in n draws with replacement (rows, n)."""
    drawn = rng.integers(n, size=(rows, n)) + n * np.arange(rows)[:, None]
    return np.bincount(drawn.ravel(), minlength=rows * n).reshape(rows, n)


def _bounds(means: Floats, level: float) -> tuple[float, float]:
    require(0 < level < 1, "level", "between 0 and 1", level)
    if not len(means):
        return np.nan, np.nan
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _widen(interval: Interval, table: Floats, within: tuple[float, float], level: float) -> Interval:
    """Widen the interval to the Clopper–Pearson bound if most values are at a limit."""
    if interval.n < 2:
        return interval
    smallest, largest = within
    unseen = (largest - smallest) * (1 - ((1 - level) / 2) ** (1 / interval.n))
    values = table[~np.isnan(table)]
    low, high = interval.low, interval.high
    if np.isclose(values, largest, rtol=0, atol=ROUNDING).mean() >= 0.5:
        low = min(low, largest - unseen)
    if np.isclose(values, smallest, rtol=0, atol=ROUNDING).mean() >= 0.5:
        high = max(high, smallest + unseen)
    return replace(interval, low=low, high=high)


def _table(values: Floats) -> Floats:
    """Return a table (seeds, inputs) without empty rows and columns, in a canonical order."""
    table = np.asarray(values, dtype=np.float64)
    if table.ndim not in (1, 2):
        raise InputError(f"`values` must have shape (inputs,) or (seeds, inputs), got {table.shape}.")
    table = np.atleast_2d(table)
    if np.isinf(table).any():
        raise InputError("`values` must be finite, or NaN where they are missing.")
    present = ~np.isnan(table)
    table = table[present.any(axis=1)][:, present.any(axis=0)]
    return table[_order(table)][:, _order(table.T)]


def paired_table(a: Floats, b: Floats) -> Floats:
    """Return the table of a − b."""
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if a.shape != b.shape:
        raise InputError(f"`a` and `b` must have the same shape, got {a.shape} and {b.shape}.")
    return _table(a - b)


def _order(rows: Floats) -> Ints:
    """Return the order of rows by their sorted values, which is independent of the column order."""
    return np.lexsort(np.sort(rows, axis=1).T[::-1]) if rows.size else np.arange(len(rows))
