"""Krippendorff's alpha: inter-rater agreement beyond chance."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np

from pertinent.array_types import Floats, Ints
from pertinent.errors import InputError, require
from pertinent.stats.intervals import Interval

Level: TypeAlias = Literal["nominal", "ordinal"]

_RESAMPLES = 2_000


def krippendorff_alpha(values: Floats, level: Level = "nominal") -> float:
    r"""Return Krippendorff's alpha of several people's answers about the same units.

    :math:`\alpha = 1 - D_o / D_e` with the observed and the expected disagreement (Krippendorff 2011,
    "Computing Krippendorff's Alpha-Reliability"). It is 1 if all agree, about 0 for random answers, and
    negative if people disagree more than by chance.

    Parameters
    ----------
    values
        The answers (people, units) as numbers; NaN where a person did not answer. Units with fewer than two
        answers are ignored.
    level
        ``"nominal"`` if two answers are either equal or different; ``"ordinal"`` if answers are ordered: the
        difference between two answers is then the number of answers between them.

    Returns
    -------
    float
        NaN if no unit has two answers, or if all answers are equal, because chance agreement is then
        undefined.

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
    """Return Krippendorff's alpha and its percentile interval, by resampling units.

    `n` counts the units with at least two answers. `groups` holds the group index of each unit, such as the
    text that contains a word. Units of a group are similar, so whole groups are resampled. The order of units
    does not matter. With fewer than two groups there are no bounds (NaN).
    """
    require(resamples >= 1, "resamples", "at least 1", resamples)
    require(0 < confidence < 1, "confidence", "between 0 and 1", confidence)
    rated, coincidences = _coincidences(values)
    n_units = len(coincidences)
    mean = float(_alpha(coincidences.sum(axis=0, keepdims=True), level)[0])
    distinct, group = np.unique(rated if groups is None else groups[rated], return_inverse=True)
    n_groups = len(distinct)
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
    """Return the indices of units with at least two answers, and the coincidence matrix of each.

    The matrices are (units, answers, answers). A pair of answers to a unit with m answers counts 1 / (m − 1).
    """
    table = np.asarray(values, dtype=np.float64)
    if table.ndim != 2:
        raise InputError(f"`values` must have shape (people, units), got {table.shape}.")
    answers = np.unique(table[~np.isnan(table)])
    counts = (table[:, :, None] == answers).sum(axis=0)
    is_rated = counts.sum(axis=1) > 1
    n = counts[is_rated].astype(np.float64)
    pairs = n[:, :, None] * n[:, None, :] - n[:, :, None] * np.eye(len(answers))
    return np.flatnonzero(is_rated), pairs / (n.sum(axis=1) - 1)[:, None, None]


def _alpha(coincidences: Floats, level: Level) -> Floats:
    """Return alpha of each coincidence matrix (rows, answers, answers); NaN if no disagreement is expected.

    ``1 − (n − 1) Σ o_ck δ²_ck / Σ n_c n_k δ²_ck``
    """
    n = coincidences.sum(axis=2)
    if level == "nominal":
        delta = np.broadcast_to(1 - np.eye(n.shape[1]), coincidences.shape)
    else:
        # δ counts the answers between two ranks, plus half of the answers at each end.
        middle = np.cumsum(n, axis=1) - n / 2
        delta = (middle[:, :, None] - middle[:, None, :]) ** 2
    observed = (coincidences * delta).sum(axis=(1, 2))
    expected = (n[:, :, None] * n[:, None, :] * delta).sum(axis=(1, 2))
    ratio = np.divide(observed, expected, out=np.full_like(observed, np.nan), where=expected > 0)
    return np.asarray(1 - (n.sum(axis=1) - 1) * ratio)
