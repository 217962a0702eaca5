"""Agreement between the scores of a record: between seeds, with SVS-25, and with the reference."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
from game_records import Record
from sets import SETS

from pertinent.array_types import Floats
from pertinent.diagnostics.stability import top_in_common
from pertinent.stats import spearman

TRUTH = "SVS-25/98"
"""The run of SVS-25 that others are compared with."""
REFERENCE = "reference-5000/98"
"""kernel-shap with 5,000 evaluations, on the tokens only."""
Scores = list[Floats]
"""Scores of each text."""
Measure = Callable[[Floats, Floats], float]


def rank_correlation(a: Floats, b: Floats) -> float:
    """Return Spearman's correlation."""
    return float(spearman(np.stack([a, b]))[0, 1])


def squared_difference(a: Floats, b: Floats) -> float:
    """Return the mean squared difference."""
    return float(((a - b) ** 2).mean())


def count_common(a: Floats, b: Floats, k: int) -> float:
    """Count the features among the top k of both; NaN for texts of k tokens or fewer."""
    return k * top_in_common([np.argsort(-each, kind="stable").tolist() for each in (a, b)], k)


MEASURES: dict[str, Measure] = {
    "ρ": rank_correlation,
    "top 5": partial(count_common, k=5),
    "top 10": partial(count_common, k=10),
    "MSE": squared_difference,
}


def seeds(record: Record, of: str, method: str, *, special: bool = False) -> list[Scores]:
    """Return the scores of one method with each seed, without the run that others are compared with."""
    keys = [key for key in record.keys if key.startswith(f"{of}/{method}/") and key != f"{of}/{TRUTH}"]
    return [_scores(record, key, of, special) for key in keys]


def stability(runs: Sequence[Scores], measure: Measure = rank_correlation) -> Floats | None:
    """Return the mean of a measure over pairs of seeds, for each text that all of them have."""
    if len(runs) < 2:
        return None
    texts = min(map(len, runs))
    found = [_of_texts(measure, a[:texts], b[:texts]) for a, b in combinations(runs, 2)]
    return np.mean(found, axis=0)  # type: ignore[no-any-return]


def agreement_by_seed(
    record: Record,
    of: str,
    method: str,
    *,
    measure: Measure = rank_correlation,
    truth: str = TRUTH,
    special: bool = False,
) -> Floats | None:
    """Return a measure between a method and SVS-25 (seeds, texts), for texts that all seeds have."""
    runs = seeds(record, of, method, special=special)
    if not runs or f"{of}/{truth}" not in record:
        return None
    values = _scores(record, f"{of}/{truth}", of, special)
    texts = min([len(values), *map(len, runs)])
    return np.array([_of_texts(measure, run[:texts], values[:texts]) for run in runs])


def agreement(record: Record, of: str, method: str, **options: Any) -> Floats | None:
    """Return the mean over seeds of `agreement_by_seed`, for each text."""
    found = agreement_by_seed(record, of, method, **options)
    return None if found is None else np.asarray(found.mean(axis=0))


def spread(record: Record, of: str, method: str) -> float | None:
    """Return the standard deviation over seeds of the mean correlation with SVS-25."""
    found = agreement_by_seed(record, of, method)
    return None if found is None or len(found) < 2 else float(found.mean(axis=1).std(ddof=1))


def _scores(record: Record, key: str, of: str, special: bool) -> Scores:
    scores = record.scores(key)
    if not special:
        return scores
    more = record.special(key, 1 + len(SETS[of].columns))
    return [np.concatenate(both) for both in zip(scores, more, strict=True)]


def _of_texts(measure: Measure, first: Scores, second: Scores) -> Floats:
    return np.array([measure(a, b) for a, b in zip(first, second, strict=True)])
