"""Picture data shared by all forms: waterfall steps, curves by sparsity, beeswarm offsets."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import nan
from operator import itemgetter
from typing import TypeAlias

import numpy as np

from pertinent.array_types import Floats
from pertinent.errors import SettingError
from pertinent.number_format import number_text
from pertinent.rendering import wording as say
from pertinent.results.evaluation import Evaluation
from pertinent.results.explanation import Explanation
from pertinent.stats import Interval

_STRIPES = 40
"""Number of stripes across a beeswarm; points in the same stripe are spread out."""


@dataclass(frozen=True)
class WaterfallSteps:
    """The steps of additive scores from the base value to the prediction.

    `ends` holds the start of each step and the end of the last one; `texts` the base value, each step, and
    the end.
    """

    names: tuple[str, ...]
    steps: tuple[float, ...]
    ends: tuple[float, ...]
    texts: tuple[str, ...]


def has_steps(e: Explanation) -> bool:
    """Return whether the scores are measurable and sum to the prediction."""
    largest = float(np.abs(np.nan_to_num(e.scores)).max(initial=0.0))
    return e.base_values is not None and largest > say.unmeasurable(e)


def waterfall_steps(e: Explanation, top: int = 10) -> WaterfallSteps:
    """Return the steps of the `top` features, and one step for the rest."""
    if e.base_values is None:
        raise SettingError(
            f"A waterfall needs scores that sum to the prediction, but those of {e.method!r} do not: "
            "choose a method such as 'shapley', 'kernel-shap' or 'tree-shap'."
        )
    order = np.argsort(-np.abs(e.scores), kind="stable")
    shown, rest, values = order[:top].tolist(), order[top:], e.input.value_texts()
    names = [
        say.clipped(e.features[i]) + (f" = {say.clipped(values[i], 16)}" if values else "") for i in shown
    ]
    steps = e.scores[shown].tolist()
    if len(rest):
        names.append(f"{len(rest):,} other feature{'s' if len(rest) > 1 else ''}")
        steps.append(float(e.scores[rest].sum()))
    ends = float(e.base_values[e.target]) + np.cumsum([0.0, *steps])
    form = say.number_format(e.scores)
    texts = [number_text(ends[0], 3), *(f"{step:+{form}}" for step in steps), number_text(ends[-1], 3)]
    return WaterfallSteps(tuple(names), tuple(steps), tuple(ends.tolist()), tuple(texts))


Curves: TypeAlias = dict[str, dict[str, list[tuple[float, Interval]]]]
"""The mean at each sparsity, by metric and method."""


def curves_by_sparsity(evaluation: Evaluation) -> Curves:
    """Return the curves of the metrics measured at several sparsities."""
    return _curves(evaluation.summary(by_sparsity=True))


def curves_of(e: Explanation) -> Curves:
    """Return the curves of the metrics of one explanation, without intervals."""
    return _curves(
        (e.method, m.name, sparsity, Interval(value, nan, nan, 1))
        for m in say.measures(e)
        for sparsity, value in m.values.items()
    )


def _curves(points: Iterable[tuple[str, str, float | None, Interval]]) -> Curves:
    curves: Curves = {}
    for method, metric, sparsity, interval in points:
        if sparsity is not None:
            curves.setdefault(metric, {}).setdefault(method, []).append((sparsity, interval))
    for lines in curves.values():
        for line in lines.values():
            line.sort(key=itemgetter(0))
    return {name: lines for name, lines in curves.items() if any(len(line) > 1 for line in lines.values())}


def spread(scores: Floats, low: float, high: float) -> Floats:
    """Return the vertical offset of each point in a beeswarm, which separates nearly equal scores.

    >>> spread(np.array([0.5, 0.5, 0.5, 0.1]), 0.0, 1.0)
    array([ 0.  ,  0.06, -0.06,  0.  ])
    """
    stripes = np.floor(_STRIPES * (scores - low) / ((high - low) or 1.0)).astype(np.int64)
    offsets = np.zeros(len(scores))
    for stripe in np.unique(stripes):
        members = np.flatnonzero(stripes == stripe)
        steps = (np.arange(len(members)) + 1) // 2 * np.where(np.arange(len(members)) % 2, 1, -1)
        offsets[members] = steps * min(0.06, 0.42 / max(1, len(members) // 2)) + 0.0
    return offsets
