"""Coarse-to-fine explanation: explain large segments of a text first, then refine the important ones."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np

from pertinent.array_types import Floats, Ints
from pertinent.asks import Algorithm, Ask, Fork, Question, Values, relay
from pertinent.errors import BudgetError, SettingError
from pertinent.explainers.base import Explainer, Finding, Steps, Task

SHARE = 0.9
"""Segments are refined in order of score until they cover this share of the total magnitude."""

QUIET = 0.25
"""Largest share of a level's segments that are not refined; beyond it, neighbours are merged."""

PER_PART = 4
"""Smallest number of evaluations per segment, which limits the number of segments at each level."""

_REFUSED = (
    "features='coarse-to-fine' needs a method that scores features by removing them, such as shapley or "
    "leave-one-out, but {} {}: use features='sentences' or 'words'."
)


def coarse_to_fine(explainer: Explainer, task: Task, levels: Sequence[Ints]) -> Steps:
    """Explain the segments of the first level, then the subsegments of the important ones at each level.

    `levels` hold the segment index of each feature, from the coarsest level to the features themselves. The
    players at each level are the subsegments of important segments plus the unimportant segments, whose
    neighbours are merged if there are many. The budget is divided in advance: half for the last level, the
    rest equally among the others.

    Initially the features of a segment share its score equally. Each level then shifts the scores of a
    player's features by the same amount so that they sum to the player's score; merged segments therefore
    keep the differences measured at earlier levels. A segment's score is thus the sum over its features, and
    if the method's scores sum to the total difference, so do these.
    """
    budgets = level_budgets(task.budget, len(levels))
    parts = merge_neighbours(levels[0], max_parts(explainer, budgets[0]))
    earlier: Finding | None = None
    described, sampling = [], replace(task.sampling, has_listener=False)
    facts = replace(task.model, has_gradients=False)  # segments have none
    for number, budget in enumerate(budgets):
        n_parts = int(parts.max()) + 1
        level_task = replace(task, n_features=n_parts, budget=budget, sampling=sampling, model=facts)
        finding = yield from _on_parts(explainer.explain(level_task), parts, explainer.name)
        if finding.scores is None or finding.interactions is not None:
            what = "chooses sets" if finding.scores is None else "scores pairs of features"
            raise SettingError(_REFUSED.format(explainer.name, what))
        described.append({"parts": n_parts, "budget": budget})
        earlier = _spread(finding, parts, earlier)
        if number + 1 < len(levels):
            scores = finding.scores if finding.scores.ndim == 1 else finding.scores[task.target]
            parts = refine_segments(
                parts, scores, levels[number + 1], max_parts(explainer, budgets[number + 1])
            )
    assert earlier is not None
    return replace(earlier, details={**earlier.details, "levels": described})


def level_budgets(budget: int, n_levels: int) -> list[int]:
    """Return the number of evaluations for each level; they sum to the budget.

    >>> level_budgets(1000, 3)
    [250, 250, 500]
    """
    earlier = [budget // (2 * max(1, n_levels - 1))] * (n_levels - 1)
    return [*earlier, budget - sum(earlier)]


def max_parts(explainer: Explainer, budget: int) -> int:
    """Return the largest number of segments that a method can distinguish with this budget."""
    per_part = max(PER_PART, explainer.traits.evaluations_per_feature)
    for n in range(max(2, budget // per_part), 1, -1):
        with suppress(BudgetError):  # some methods reject small numbers of features
            if explainer.min_budget(n) <= budget:
                return n
    raise BudgetError(
        f"`budget` is too small for features='coarse-to-fine': each level gets {budget} evaluations, but "
        f"{explainer.name} needs {explainer.min_budget(2)} for two parts."
    )


def merge_neighbours(parts: Ints, most: int) -> Ints:
    """Return the segments renumbered in order; neighbours are merged if there are more than `most`."""
    _, first, numbers = np.unique(parts, return_index=True, return_inverse=True)
    numbers = np.argsort(np.argsort(first))[numbers]
    n = len(first)
    return numbers if n <= most else np.asarray(numbers * most // n)


def refine_segments(parts: Ints, scores: Floats, level: Ints, most: int) -> Ints:
    """Return at most `most` segments: subsegments of those with the largest scores, plus the others.

    If the segment with the largest score has too many subsegments, neighbouring subsegments are merged.
    """
    magnitude = np.abs(scores)
    left, n_quiet = SHARE * magnitude.sum(), max(1, min(len(magnitude), int(QUIET * most)))
    new, n = np.full(len(parts), -1), 0
    for part in np.argsort(-magnitude, kind="stable").tolist():
        inside, free = parts == part, most - n_quiet - n
        n_inside = len(np.unique(level[inside]))
        if left <= 0 or free < 1 or (n and n_inside > free):
            break
        new[inside] = n + merge_neighbours(level[inside], free)
        n, left = n + min(n_inside, free), left - magnitude[part]
    quiet = new < 0
    if quiet.any():
        new[quiet] = n + merge_neighbours(parts[quiet], most - n)
    return merge_neighbours(new, len(new))


def _on_parts(algorithm: Algorithm, parts: Ints, name: str) -> Algorithm:
    """Run an algorithm whose features are segments: each mask keeps all features of its segments."""

    def expand(ask: Ask) -> Ask:
        if isinstance(ask, Fork):
            return Fork([_on_parts(branch, parts, name) for branch in ask.branches])
        if isinstance(ask, Values):
            return replace(ask, masks=np.ascontiguousarray(ask.masks[:, parts]))
        if isinstance(ask, Question):
            raise SettingError(_REFUSED.format(name, "does not"))
        return ask

    return relay(algorithm, expand)


def _spread(finding: Finding, parts: Ints, earlier: Finding | None) -> Finding:
    """Distribute the scores over features, keeping differences within segments from an earlier level."""
    sizes = np.bincount(parts)[parts]
    assert finding.scores is not None
    scores, errors = finding.scores[..., parts] / sizes, finding.standard_errors
    errors = None if errors is None else errors[..., parts] / sizes
    if earlier is not None and earlier.scores is not None:
        inside = earlier.scores - _means(earlier.scores, parts)
        scores = scores + inside
        if errors is not None and earlier.standard_errors is not None:
            largest = np.atleast_2d(np.abs(inside)).max(axis=0)
            errors = np.where(_means(largest, parts) > 0, earlier.standard_errors, errors)
    return replace(finding, scores=scores, standard_errors=errors)


def _means(scores: Floats, parts: Ints) -> Floats:
    """Return, for each feature, the mean score over its segment."""
    sums = np.stack([np.bincount(parts, row) for row in np.atleast_2d(scores)])
    return np.asarray((sums / np.bincount(parts))[:, parts].reshape(scores.shape))
