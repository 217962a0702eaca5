"""Means and differences of means, with intervals and p-values from a block bootstrap."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pertinent.array_types import Floats, Ints
from pertinent.errors import InputError, require
from pertinent.stats.intervals import Difference, Interval

RESAMPLES = 100_000
"""The number used by Hase et al. 2021."""

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
    """The mean of `values` and its percentile interval, by resampling inputs and model seeds.

    Hase et al. 2021, Sec. 5 (footnote 3) and Sec. 6.3; Efron & Tibshirani 1994. Each resample draws
    whole inputs and, independently of them, whole seeds, both with replacement.

    Parameters
    ----------
    values
        (inputs,), or (seeds, inputs) if several models were trained. NaN marks a missing value: it is
        ignored in the mean and in resamples, and inputs and seeds without any value are left out.
    within
        The smallest and the largest value there can be. If most values are the largest, or the smallest,
        resamples show too little error, and none if all are. Then the other bound is at least as far away
        as if all inputs agreed: that of Clopper & Pearson 1934 for the share of inputs that differ.

    Notes
    -----
    The order of inputs and of seeds does not matter. A dimension of size one is not resampled; if
    both have size one, there are no bounds (NaN). With few seeds the intervals are too narrow, as in
    any bootstrap of few items: with ten they cover the mean in about 90% of cases instead of 95%.
    The same holds for few inputs.

    >>> bootstrap(np.ones(8))
    Interval(mean=1.0, low=1.0, high=1.0, n=8)
    >>> round(bootstrap(np.ones(60), within=(0, 1)).low, 2)
    0.94
    >>> bootstrap(np.array([[0.0, 1.0, np.nan], [1.0, 2.0, np.nan]])).mean
    1.0
    """
    table = _table(values)
    means = _resampled(table, resamples, seed)
    found = Interval(nan_mean(table), *_bounds(means, level), table.shape[1])
    return found if within is None else _widened(found, table, within, level)


def paired_difference(
    a: Floats, b: Floats, *, resamples: int = RESAMPLES, level: float = 0.95, seed: int = 0
) -> Difference:
    """The mean of a − b over the same inputs and seeds, resampled as in `bootstrap`.

    Pairs with a NaN are left out. With D* the mean difference of a resample, the two-sided p-value is
    ``2 · (1 + min(#{D* ≤ 0}, #{D* ≥ 0})) / (1 + resamples)``, at most 1. It is never 0, and it is below
    1 − `level` if the interval excludes 0 (up to the ones added). With fewer than 20 inputs it is too
    small, with 10 by about half.

    >>> paired_difference(np.arange(30.0), np.arange(30.0)).p_value
    1.0
    """
    table = paired_table(a, b)
    means = _resampled(table, resamples, seed)
    p_value = np.nan
    if len(means):
        fewest = int(min(np.count_nonzero(means <= 0), np.count_nonzero(means >= 0)))
        p_value = min(1.0, 2 * (1 + fewest) / (1 + len(means)))
    return Difference(nan_mean(table), *_bounds(means, level), table.shape[1], p_value)


def nan_mean(values: Floats) -> float:
    """The mean of the values that are not NaN; NaN if there are none."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else np.nan


def resampled_means(values: Floats, seed_counts: Ints, input_counts: Ints) -> Floats:
    """The mean for each resample, given how often each seed and each input was drawn.

    ``Σ s_i n_j v_ij / Σ s_i n_j`` over the values that are not missing; NaN for a resample without any.
    `values` are (seeds, inputs), the counts (resamples, seeds) and (resamples, inputs).
    """
    seeds, inputs = seed_counts.astype(np.float64), input_counts.astype(np.float64)
    missing = np.isnan(values)
    totals = np.einsum("bj,bj->b", seeds @ np.where(missing, 0.0, values), inputs)
    if not missing.any():
        return np.asarray(totals / (seeds.sum(axis=1) * inputs.sum(axis=1)))
    weights = np.einsum("bj,bj->b", seeds @ (~missing).astype(np.float64), inputs)
    return np.asarray(np.divide(totals, weights, out=np.full_like(totals, np.nan), where=weights > 0))


def _resampled(table: Floats, resamples: int, seed: int) -> Floats:
    """The means of all resamples that have a value; empty if there is nothing to resample."""
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
    """How often each of n items is drawn in n draws with replacement (rows, n)."""
    drawn = rng.integers(n, size=(rows, n)) + n * np.arange(rows)[:, None]
    return np.bincount(drawn.ravel(), minlength=rows * n).reshape(rows, n)


def _bounds(means: Floats, level: float) -> tuple[float, float]:
    require(0 < level < 1, "level", "between 0 and 1", level)
    if not len(means):
        return np.nan, np.nan
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _widened(found: Interval, table: Floats, within: tuple[float, float], level: float) -> Interval:
    """The interval, no narrower than if all inputs agreed where most values are the largest or smallest."""
    if found.n < 2:
        return found
    smallest, largest = within
    unseen = (largest - smallest) * (1 - ((1 - level) / 2) ** (1 / found.n))
    known = table[~np.isnan(table)]
    low, high = found.low, found.high
    if np.isclose(known, largest, rtol=0, atol=ROUNDING).mean() >= 0.5:
        low = min(low, largest - unseen)
    if np.isclose(known, smallest, rtol=0, atol=ROUNDING).mean() >= 0.5:
        high = max(high, smallest + unseen)
    return replace(found, low=low, high=high)


def _table(values: Floats) -> Floats:
    """(seeds, inputs) without empty rows and columns, sorted so that the order given does not matter."""
    table = np.asarray(values, dtype=np.float64)
    if table.ndim not in (1, 2):
        raise InputError(f"Values must be (inputs,) or (seeds, inputs), but have shape {table.shape}.")
    table = np.atleast_2d(table)
    if np.isinf(table).any():
        raise InputError("Values must be finite, or NaN where they are missing.")
    known = ~np.isnan(table)
    table = table[known.any(axis=1)][:, known.any(axis=0)]
    return table[_order(table)][:, _order(table.T)]


def paired_table(a: Floats, b: Floats) -> Floats:
    """The table of a − b."""
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if a.shape != b.shape:
        raise InputError(f"Paired values must have the same shape, but have {a.shape} and {b.shape}.")
    return _table(a - b)


def _order(rows: Floats) -> Ints:
    """The order of rows by their sorted values, which does not depend on the order of columns."""
    return np.lexsort(np.sort(rows, axis=1).T[::-1]) if rows.size else np.arange(len(rows))
