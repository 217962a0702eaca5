"""Limits on standard errors: NaN if the answers do not determine them, else the largest possible value."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pertinent.array_types import Floats, Ints, Masks
from pertinent.explainers.base import Finding, Task

Z = 1.96
"""Number of standard errors between the mean and either end of a 95% interval."""

SAME = 0.01
"""Difference below which answers count as equal, relative to the range of the answers."""

UNSEEN = 2.0
"""Number of unseen extreme values that a variance allows for when most values are equal.

With 2, the interval around a mean of n zeros extends to 2.8 / n, and intervals for the probability of a rare
event have a coverage of at least 93%.
"""

LEAST_FREEDOM = 5
MANY = 0.8
"""Degrees of freedom that a fit must leave unless more than this share of the answers is distinct.

Otherwise the fit may be perfect by chance: with one degree of freedom, half of the fits to a majority vote
are.
"""


def count_distinct(answers: Floats) -> Ints:
    """Return the number of distinct answers in each column (columns,) of answers (answers, columns)."""
    ordered = np.sort(answers, axis=0)
    return np.asarray(1 + (np.diff(ordered, axis=0) > 1e-6 * (ordered[-1] - ordered[0])).sum(axis=0))


def may_fit_by_chance(answers: Floats, freedom: int) -> Masks:
    """Return whether a fit that leaves these degrees of freedom may be perfect by chance (columns,)."""
    return np.asarray((freedom < LEAST_FREEDOM) & (count_distinct(answers) <= MANY * len(answers)))


def limit_errors(task: Task, finding: Finding, answers: Floats, unknown: Masks | bool = False) -> Finding:
    """Return a sampled finding with standard errors limited to possible values.

    A warning is added if they are unknown.

    Standard errors are unknown (NaN) in the `unknown` columns and in columns whose `answers` (answers,
    columns) are all equal, because other masks may change the answer. Scores are at most as large as the
    range of the answers (or of the output, if known), so no interval extends further.
    """
    assert finding.scores is not None
    assert finding.standard_errors is not None
    errors = limit(task, finding.scores, finding.standard_errors, answers)
    errors[np.broadcast_to(unknown, len(errors))] = np.nan
    return add_warning(task, replace(finding, standard_errors=errors), answers)


def limit(task: Task, scores: Floats, errors: Floats, answers: Floats, largest: float = 1.0) -> Floats:
    """Return standard errors (columns, …) of scores of at most `largest` times the range of answers."""
    shape = (-1, *[1] * (scores.ndim - 1))
    span = np.ptp(answers, axis=0).reshape(shape)
    most = (largest * np.fmax(span, task.model.answer_span) + np.abs(scores)) / Z
    return np.asarray(np.where(span > 0, np.minimum(errors, most), np.nan))


def add_warning(task: Task, finding: Finding, answers: Floats) -> Finding:
    """Return the finding with a warning if standard errors of the target are unknown."""
    assert finding.standard_errors is not None
    if not np.isnan(finding.standard_errors[task.target]).any():
        return finding
    n, n_distinct = len(answers), int(count_distinct(answers[:, [task.target]])[0])
    reason = f"all {n:,} answers are equal"
    if n_distinct > 1:
        reason = f"{n:,} answers ({n_distinct:,} distinct) are too few for {task.n_features:,} features"
    warning = f"The standard errors are unknown because {reason}. Use a larger budget."
    return replace(finding, warnings=(*finding.warnings, warning))
