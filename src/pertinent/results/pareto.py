"""Faithfulness against cost: the mean of a metric and the mean cost of an explanation, by method."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from pertinent.config.settings import labels
from pertinent.errors import require, unknown
from pertinent.results.records import Cost
from pertinent.stats import Interval

if TYPE_CHECKING:
    from pertinent.results.evaluation import Evaluation


@dataclass(frozen=True)
class CostPoint:
    """Mean cost and mean metric of a method; `is_best` if it is on the Pareto front."""

    method: str
    cost: float
    interval: Interval
    is_best: bool = False


def mean_costs(evaluation: Evaluation) -> dict[str, dict[str, float]]:
    """Return the mean evaluations and model seconds per explanation for each method."""
    names = labels([(e.method, e.settings) for e in evaluation.explanations])
    costs: dict[str, list[Cost]] = {}
    for name, e in zip(names, evaluation.explanations, strict=True):
        costs.setdefault(name, []).append(e.cost)
    return {
        name: {
            "evaluations": float(np.mean([cost.evaluations for cost in each])),
            "seconds": float(np.mean([cost.seconds for cost in each])),
        }
        for name, each in costs.items()
    }


def cost_points(
    evaluation: Evaluation, metric: str | None, cost: Literal["evaluations", "seconds"]
) -> list[CostPoint]:
    """Return a point for each method in ascending order of cost; by default for the first metric."""
    require(bool(evaluation.better), "evaluation", "one with measured metrics", evaluation.rows)
    metric = metric or next(iter(evaluation.better))
    if metric not in evaluation.better:
        raise unknown("metric", metric, evaluation.better)
    costs = mean_costs(evaluation)
    points = [
        CostPoint(method, costs[method][cost], interval)
        for method, name, _, interval in evaluation.summary()
        if name == metric
    ]
    sign = -1 if evaluation.better[metric] == "lower" else 1
    points.sort(key=lambda point: (point.cost, -sign * point.interval.mean))
    best = -np.inf
    for i, point in enumerate(points):  # on the front if better than all points with lower cost
        value = sign * point.interval.mean
        points[i] = replace(point, is_best=value > best)
        best = max(best, value)
    return points
