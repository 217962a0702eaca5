"""Comparison of methods in the web app: metrics with confidence intervals, and cost."""

from __future__ import annotations

from functools import cached_property
from math import isfinite
from typing import Any

from pertinent.errors import unknown
from pertinent.rendering.axes import AxisScale, label_rows
from pertinent.rendering.html.tables import evaluation_card
from pertinent.rendering.wording import clipped
from pertinent.results.evaluation import Evaluation
from pertinent.results.explanation import Explanations
from pertinent.results.pareto import cost_points

_WIDTH, _HEIGHT, _BELOW = 640, 330, 46
"""Size of the plot and height of its bottom margin, in pixels."""

_LETTER, _LINE = 6.6, 14
"""Width of a letter and height of a line of text, in pixels."""


class MethodComparison:
    """Comparison of the methods in saved explanations by their metrics."""

    def __init__(self, explanations: Explanations) -> None:
        self.explanations = explanations

    @cached_property
    def evaluation(self) -> Evaluation:
        """Table of all metrics."""
        better = {name: direction for e in self.explanations for name, direction in e.better.items()}
        return Evaluation.from_explanations(list(self.explanations), better)

    @property
    def is_available(self) -> bool:
        """Whether at least two methods were measured."""
        return any(e.measures for e in self.explanations) and len(self.evaluation.methods) > 1

    def view(self, metric: str) -> dict[str, Any]:
        """Return the context of the page: the table, and a plot of one metric against the cost."""
        better = self.evaluation.better
        metric = metric or next(iter(better))
        if metric not in better:
            raise unknown("metric", metric, better)
        return {
            "table": evaluation_card(self.evaluation),
            "metrics": list(better),
            "metric": metric,
            "better": better[metric],
            "picture": self._picture(metric),
        }

    def _picture(self, metric: str) -> dict[str, Any]:
        points = cost_points(self.evaluation, metric, "evaluations")
        costs = [max(1.0, point.cost) for point in points]
        ends = [end for p in points for end in (p.interval.low, p.interval.high, p.interval.mean)]
        ends = [end for end in ends if isfinite(end)]
        margin = 0.06 * (max(ends) - min(ends)) or 0.1
        y_axis = AxisScale(min(ends) - margin, max(ends) + margin, _HEIGHT - _BELOW, 10)
        x_axis = AxisScale(min(costs) / 1.6, max(costs) * 1.6, y_axis.margin, _WIDTH - 10, is_log=True)
        xs, ys = [x_axis.position(cost) for cost in costs], [y_axis.position(p.interval.mean) for p in points]
        widths = [_LETTER * len(clipped(p.method, 28)) for p in points]
        is_left = [x + 9 + width > _WIDTH for x, width in zip(xs, widths, strict=True)]
        starts = [x - 9 - n if left else x + 9 for x, n, left in zip(xs, widths, is_left, strict=True)]
        boxes = [(start, start + n, -y) for start, n, y in zip(starts, widths, ys, strict=True)]
        rows = label_rows(boxes, _LINE)
        drawn: list[dict[str, Any]] = [
            {
                "point": p,
                "x": x,
                "y": y,
                "ends": (y_axis.position(p.interval.low), y_axis.position(p.interval.high))
                if p.interval.bounds
                else None,
                "name_x": x - 9 if left else x + 9,
                "anchor": "end" if left else "start",
                "name_y": y - 7 - _LINE * row,
            }
            for p, x, y, row, left in zip(points, xs, ys, rows, is_left, strict=True)
        ]
        best = " ".join(f"{each['x']},{each['y']}" for each in drawn if each["point"].is_best)
        size = {"width": _WIDTH, "height": _HEIGHT, "left": y_axis.margin, "below": _HEIGHT - _BELOW}
        return size | {"x": x_axis, "y": y_axis, "drawn": drawn, "best": best}
