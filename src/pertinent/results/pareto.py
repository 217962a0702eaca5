"""What faithfulness costs: for each method the mean of a metric and the mean cost of an explanation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from pertinent.config.settings import labels
from pertinent.errors import require, unknown
from pertinent.stats import Interval

if TYPE_CHECKING:
    from pertinent.results.evaluation import Evaluation


@dataclass(frozen=True)
class CostPoint:
    """A method: what its explanations cost on average, and how good they are.

    `is_best` says that no other method is at least as good and as cheap, and better or cheaper.
    """

    method: str
    cost: float
    interval: Interval
    is_best: bool = False


def cost_points(
    evaluation: Evaluation, metric: str | None, cost: Literal["evaluations", "seconds"]
) -> list[CostPoint]:
    """A point for each method, the cheapest first; by default for the first metric measured."""
    require(bool(evaluation.better), "evaluation", "one that measured something", evaluation.rows)
    metric = metric or next(iter(evaluation.better))
    if metric not in evaluation.better:
        raise unknown("metric", metric, evaluation.better)
    every = evaluation.explanations
    names = labels([(e.method, e.settings) for e in every])
    found = []
    for method, own, _, interval in evaluation.summary():
        if own == metric:
            costs = [
                float(getattr(e.cost, cost)) for e, name in zip(every, names, strict=True) if name == method
            ]
            found.append(CostPoint(method, float(np.mean(costs)), interval))
    sign = -1 if evaluation.better[metric] == "lower" else 1
    found.sort(key=lambda point: (point.cost, -sign * point.interval.mean))
    best, marked = -np.inf, []
    for point in found:  # those to the right cost more, so they must be better
        value = sign * point.interval.mean
        marked.append(replace(point, is_best=value > best))
        best = max(best, value)
    return marked
