"""What pictures show, wherever they are drawn: steps of a waterfall, curves by sparsity, swarms of points."""

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
"""The number of stripes across a beeswarm; points in one stripe are pushed apart."""


@dataclass(frozen=True)
class WaterfallSteps:
    """How scores that add up lead from the base value to the prediction: a name and a step for each feature.

    `ends` are where each step begins, and at last where the last of them ends; `texts` say the base value,
    each step, and the end.
    """

    names: tuple[str, ...]
    steps: tuple[float, ...]
    ends: tuple[float, ...]
    texts: tuple[str, ...]


def has_steps(e: Explanation) -> bool:
    """Whether the scores add up to the prediction, and are more than rounding errors."""
    largest = float(np.abs(np.nan_to_num(e.scores)).max(initial=0.0))
    return e.base_values is not None and largest > say.unmeasurable(e)


def waterfall_steps(e: Explanation, top: int = 10) -> WaterfallSteps:
    """The steps of the `top` features, and of the others together."""
    if e.base_values is None:
        raise SettingError(
            f"The scores of {e.method} do not add up to the prediction: choose a method whose scores do, "
            "such as shapley, kernel-shap or tree-shap."
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
"""By metric and method, the mean at each sparsity."""


def curves_by_sparsity(evaluation: Evaluation) -> Curves:
    """Return the curves of the metrics that were measured at several sparsities."""
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
    """How far each point of a beeswarm moves up or down, so that nearly equal scores stand apart.

    >>> spread(np.array([0.5, 0.5, 0.5, 0.1]), 0.0, 1.0)
    array([ 0.  ,  0.06, -0.06,  0.  ])
    """
    stripes = np.floor(_STRIPES * (scores - low) / ((high - low) or 1.0)).astype(np.int64)
    found = np.zeros(len(scores))
    for stripe in np.unique(stripes):
        members = np.flatnonzero(stripes == stripe)
        steps = (np.arange(len(members)) + 1) // 2 * np.where(np.arange(len(members)) % 2, 1, -1)
        found[members] = steps * min(0.06, 0.42 / max(1, len(members) // 2)) + 0.0
    return found
