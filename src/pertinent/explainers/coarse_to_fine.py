"""From coarse to fine: any method on large parts of a text first, then on the parts of those that matter."""

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
"""Parts are refined, those of the largest scores first, until they have this share of all magnitudes."""

QUIET = 0.25
"""The share of a level's parts that others may take up; if these are more, neighbours are put together."""

PER_PART = 4
"""Evaluations for each part at least: a level has at most its budget divided by this many parts."""

_REFUSED = (
    "features='coarse-to-fine' is for methods that score features by removing them, such as shapley or "
    "leave-one-out, but {} {}: choose the features 'sentences' or 'words'."
)


def coarse_to_fine(explainer: Explainer, task: Task, levels: Sequence[Ints]) -> Steps:
    """Explain the parts of the first level, then those of the next within what matters, and so on.

    `levels` say of each feature which part it belongs to, the coarsest level first, the features themselves
    last. At each level the players are the parts of those that matter, and the others, of which neighbours
    are put together if there are many. The budget is divided in advance: the last level has half of it, the
    others share the rest equally.

    The features of a part have equal shares of its score, at first. Each level corrects the scores of the
    features of a player by the same amount, so that they sum up to its score: parts that were put together
    keep the differences that an earlier level found. So the score of a part is the sum over its features, and
    where the method's scores sum up to the difference that all features make, so do these.
    """
    budgets = level_budgets(task.budget, len(levels))
    parts = merged(levels[0], room(explainer, budgets[0]))
    earlier: Finding | None = None
    told = []
    for number, budget in enumerate(budgets):
        n_parts = int(parts.max()) + 1
        own = replace(
            task, n_features=n_parts, budget=budget, sampling=replace(task.sampling, has_listener=False)
        )
        found = yield from _on_parts(explainer.explain(own), parts, explainer.name)
        if found.scores is None or found.interactions is not None:
            what = "finds sets" if found.scores is None else "scores pairs of features"
            raise SettingError(_REFUSED.format(explainer.name, what))
        told.append({"parts": n_parts, "budget": budget})
        earlier = _spread(found, parts, earlier)
        if number + 1 < len(levels):
            scores = found.scores if found.scores.ndim == 1 else found.scores[task.target]
            parts = refined(parts, scores, levels[number + 1], room(explainer, budgets[number + 1]))
    assert earlier is not None
    return replace(earlier, details={**earlier.details, "levels": told})


def level_budgets(budget: int, n_levels: int) -> list[int]:
    """The evaluations of each level; together the budget.

    >>> level_budgets(1000, 3)
    [250, 250, 500]
    """
    earlier = [budget // (2 * max(1, n_levels - 1))] * (n_levels - 1)
    return [*earlier, budget - sum(earlier)]


def room(explainer: Explainer, budget: int) -> int:
    """The largest number of parts that a method can tell apart with this budget."""
    per_part = max(PER_PART, explainer.traits.evaluations_per_feature)
    for n in range(max(2, budget // per_part), 1, -1):
        with suppress(BudgetError):  # of a method that is only for few features
            if explainer.min_budget(n) <= budget:
                return n
    raise BudgetError(
        f"`budget` is too small to go from coarse to fine: a level has {budget} evaluations, but "
        f"{explainer.name} needs {explainer.min_budget(2)} for two parts."
    )


def merged(parts: Ints, most: int) -> Ints:
    """The parts numbered in order; if there are more than `most`, neighbours are put together."""
    _, first, numbers = np.unique(parts, return_index=True, return_inverse=True)
    numbers = np.argsort(np.argsort(first))[numbers]
    n = len(first)
    return numbers if n <= most else np.asarray(numbers * most // n)


def refined(parts: Ints, scores: Floats, level: Ints, most: int) -> Ints:
    """At most `most` parts: the next level's in those with the largest scores, and the others.

    If the part of the largest score has too many parts of its own, neighbours among these are put together.
    """
    size = np.abs(scores)
    left, n_quiet = SHARE * size.sum(), max(1, min(len(size), int(QUIET * most)))
    found, n = np.full(len(parts), -1), 0
    for part in np.argsort(-size, kind="stable").tolist():
        own, free = parts == part, most - n_quiet - n
        n_inside = len(np.unique(level[own]))
        if left <= 0 or free < 1 or (n and n_inside > free):
            break
        found[own] = n + merged(level[own], free)
        n, left = n + min(n_inside, free), left - size[part]
    quiet = found < 0
    if quiet.any():
        found[quiet] = n + merged(parts[quiet], most - n)
    return merged(found, len(found))


def _on_parts(algorithm: Algorithm, parts: Ints, name: str) -> Algorithm:
    """Run an algorithm whose features are parts: each mask keeps all features of the parts that it keeps."""

    def expanded(ask: Ask) -> Ask:
        if isinstance(ask, Fork):
            return Fork([_on_parts(branch, parts, name) for branch in ask.branches])
        if isinstance(ask, Values):
            return replace(ask, masks=np.ascontiguousarray(ask.masks[:, parts]))
        if isinstance(ask, Question):
            raise SettingError(_REFUSED.format(name, "does not"))
        return ask

    return relay(algorithm, expanded)


def _spread(found: Finding, parts: Ints, earlier: Finding | None) -> Finding:
    """The finding about features, with the differences inside of parts that an earlier level found."""
    sizes = np.bincount(parts)[parts]
    assert found.scores is not None
    scores, errors = found.scores[..., parts] / sizes, found.standard_errors
    errors = None if errors is None else errors[..., parts] / sizes
    if earlier is not None and earlier.scores is not None:
        inside = earlier.scores - _means(earlier.scores, parts)
        scores = scores + inside
        if errors is not None and earlier.standard_errors is not None:
            together = np.abs(inside).max(axis=0) if inside.ndim > 1 else np.abs(inside)
            errors = np.where(_means(together, parts) > 0, earlier.standard_errors, errors)
    return replace(found, scores=scores, standard_errors=errors)


def _means(scores: Floats, parts: Ints) -> Floats:
    """For each feature the mean score of its part's features."""
    several = np.atleast_2d(scores)
    sums = np.stack([np.bincount(parts, row) for row in several]) / np.bincount(parts)
    return np.asarray(sums[:, parts].reshape(scores.shape))
