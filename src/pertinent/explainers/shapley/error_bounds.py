"""Limits of standard errors: unknown where the answers do not determine them, else at most what is possible."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pertinent.array_types import Floats, Masks
from pertinent.explainers.base import Finding, Task

Z = 1.96
"""Number of standard errors that a 95% interval reaches to each side."""

SAME = 0.01
"""Difference below which answers count as equal, as a share of the answers' range."""

UNSEEN = 2.0
"""Number of unseen extreme values that a variance allows for where most values are equal.

With 2, the interval of a mean of n zeros reaches to 2.8 / n, and the intervals of a rare event's probability
cover at least 93%.
"""

LEAST_FREEDOM = 5
"""Degrees of freedom that a fit of answers with few distinct values must leave: with fewer it may be perfect by
chance, as half of the fits of a majority with one degree of freedom are."""


def has_few_values(answers: Floats) -> Masks:
    """Return whether a fifth of the answers in each column (columns,) repeat others."""
    ordered = np.sort(answers, axis=0)
    span = ordered[-1] - ordered[0]
    n_distinct = 1 + (np.diff(ordered, axis=0) > 1e-6 * span).sum(axis=0)
    return np.asarray(n_distinct <= 0.8 * len(answers))


def limit_errors(task: Task, finding: Finding, answers: Floats, freedom: int = LEAST_FREEDOM) -> Finding:
    """Return a sampled finding whose standard errors are possible, with a warning if they are unknown.

    Standard errors are unknown (NaN) in a column whose `answers` (answers, columns) are all equal, because masks
    that were not asked for may change the answer. They are also unknown where answers with few distinct values
    were fitted with fewer than `LEAST_FREEDOM` degrees of `freedom`. Scores are at most as large as the range of
    answers, so no interval needs to reach further. The range is that of the answers, or the output's if known.
    """
    assert finding.scores is not None
    assert finding.standard_errors is not None
    errors = limited(task, finding.scores, finding.standard_errors, answers)
    if freedom < LEAST_FREEDOM:
        errors[has_few_values(answers)] = np.nan
    return with_reason(task, replace(finding, standard_errors=errors), answers)


def limited(task: Task, scores: Floats, errors: Floats, answers: Floats, largest: float = 1.0) -> Floats:
    """Return standard errors (columns, …) of scores of at most `largest` times the range of answers."""
    shape = (-1, *[1] * (scores.ndim - 1))
    span = np.ptp(answers, axis=0).reshape(shape)
    most = (largest * np.fmax(span, task.answer_span) + np.abs(scores)) / Z
    return np.asarray(np.where(span > 0, np.minimum(errors, most), np.nan))


def with_reason(task: Task, finding: Finding, answers: Floats) -> Finding:
    """Return the finding with a warning if standard errors of the target are unknown."""
    assert finding.standard_errors is not None
    if not np.isnan(finding.standard_errors[task.target]).any():
        return finding
    if np.ptp(answers[:, task.target]) > 0:
        reason = f"{len(answers):,} answers are too few for {task.n_features:,} features"
    else:
        reason = f"all {len(answers):,} answers are equal"
    warning = f"The standard errors are unknown because {reason}. Use a larger budget."
    return replace(finding, warnings=(*finding.warnings, warning))
