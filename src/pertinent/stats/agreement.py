"""Krippendorff's alpha: how far people agree beyond chance."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np

from pertinent.array_types import Floats, Ints
from pertinent.errors import InputError, require
from pertinent.stats.intervals import Interval

Level: TypeAlias = Literal["nominal", "ordinal"]

_RESAMPLES = 2_000


def krippendorff_alpha(values: Floats, level: Level = "nominal") -> float:
    r"""Krippendorff's alpha of what several people answered about the same units.

    :math:`\alpha = 1 - D_o / D_e` with the observed and the expected disagreement (Krippendorff 2011,
    "Computing Krippendorff's Alpha-Reliability"). It is 1 if all agree, about 0 if answers are drawn by
    chance, and below 0 if people disagree more than by chance.

    Parameters
    ----------
    values
        The answers (people, units) as numbers; NaN where a person did not answer. A unit with one answer
        says nothing, and is left out.
    level
        Whether two answers are equal or not (``"nominal"``), or have an order (``"ordinal"``): then they
        differ by how many answers lie between them.

    Returns
    -------
    float
        NaN if no unit has two answers, or all answers are the same: agreement by chance is not known then.

    >>> nan = np.nan
    >>> krippendorff_alpha(np.array([[1, 2, 2, nan], [1, 2, 2, 1]]))
    1.0
    """
    coincidences = _coincidences(values)[1]
    return float(_alpha(coincidences.sum(axis=0, keepdims=True), level)[0])


def alpha_interval(
    values: Floats,
    level: Level = "nominal",
    *,
    groups: Ints | None = None,
    resamples: int = _RESAMPLES,
    confidence: float = 0.95,
    seed: int = 0,
) -> Interval:
    """Krippendorff's alpha and its percentile interval, by resampling units.

    `n` counts the units with two answers. `groups` gives each unit the number of a group, such as that of the
    text that a word is in: then whole groups are drawn, because units of a group are alike. The order of
    units does not matter. There are no bounds (NaN) if there are fewer than two groups.
    """
    require(resamples >= 1, "resamples", "at least 1", resamples)
    require(0 < confidence < 1, "confidence", "between 0 and 1", confidence)
    known, coincidences = _coincidences(values)
    n_units = len(coincidences)
    mean = float(_alpha(coincidences.sum(axis=0, keepdims=True), level)[0])
    names, group = np.unique(known if groups is None else groups[known], return_inverse=True)
    n_groups = len(names)
    if n_groups < 2 or np.isnan(mean):
        return Interval(mean, np.nan, np.nan, n_units)
    flat = np.zeros((n_groups, coincidences[0].size))
    np.add.at(flat, group, coincidences.reshape(n_units, -1))
    flat = flat[np.lexsort(flat.T[::-1])]
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(n_groups, np.full(n_groups, 1 / n_groups), size=resamples).astype(np.float64)
    drawn = _alpha((counts @ flat).reshape(resamples, *coincidences.shape[1:]), level)
    drawn = drawn[~np.isnan(drawn)]
    low, high = np.quantile(drawn, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Interval(mean, float(low), float(high), n_units)


def _coincidences(values: Floats) -> tuple[Ints, Floats]:
    """Which units have two answers or more, and the coincidence matrix of each (units, answers, answers).

    A pair of answers of a unit with m answers counts 1 / (m − 1).
    """
    table = np.asarray(values, dtype=np.float64)
    if table.ndim != 2:
        raise InputError(f"Answers must be (people, units), but have shape {table.shape}.")
    known = ~np.isnan(table)
    kinds = np.unique(table[known])
    counts = np.stack([(table == kind).sum(axis=0) for kind in kinds], axis=1) if len(kinds) else None
    if counts is None:
        return np.zeros(0, dtype=np.int64), np.zeros((0, 1, 1))
    several = counts.sum(axis=1) > 1
    n = counts[several].astype(np.float64)
    pairs = n[:, :, None] * n[:, None, :] - n[:, :, None] * np.eye(len(kinds))
    return np.flatnonzero(several), pairs / (n.sum(axis=1) - 1)[:, None, None]


def _alpha(coincidences: Floats, level: Level) -> Floats:
    """Alpha of each coincidence matrix (rows, answers, answers); NaN if chance gives no disagreement.

    ``1 − (n − 1) Σ o_ck δ²_ck / Σ n_c n_k δ²_ck``
    """
    n = coincidences.sum(axis=2)
    if level == "nominal":
        apart = np.broadcast_to(1 - np.eye(n.shape[1]), coincidences.shape)
    else:
        # Half of the answers at each end, and all between: |C_k − C_c| with C the middle of a rank.
        middle = np.cumsum(n, axis=1) - n / 2
        apart = (middle[:, :, None] - middle[:, None, :]) ** 2
    observed = (coincidences * apart).sum(axis=(1, 2))
    expected = (n[:, :, None] * n[:, None, :] * apart).sum(axis=(1, 2))
    possible = expected > 0
    ratio = np.divide(observed, expected, out=np.full_like(observed, np.nan), where=possible)
    return np.asarray(1 - (n.sum(axis=1) - 1) * ratio)
