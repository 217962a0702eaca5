"""Methods beside each other on the page: what was measured, with intervals, and what it costs."""

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
"""The size of the picture in pixels, and the margin for the numbers below it."""

_LETTER, _LINE = 6.6, 14
"""The width of a letter and the height of a line, in pixels."""


class MethodComparison:
    """The methods of saved explanations that were measured."""

    def __init__(self, explanations: Explanations) -> None:
        self.explanations = explanations

    @cached_property
    def evaluation(self) -> Evaluation:
        """The table of all measures."""
        better = {name: way for e in self.explanations for name, way in e.better.items()}
        return Evaluation.from_explanations(list(self.explanations), better)

    @property
    def is_available(self) -> bool:
        """Return whether at least two methods were measured."""
        return any(e.measures for e in self.explanations) and len(self.evaluation.methods) > 1

    def view(self, metric: str) -> dict[str, Any]:
        """What the page shows: the table, and a metric against the cost."""
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
        room = 0.06 * (max(ends) - min(ends)) or 0.1
        y = AxisScale(min(ends) - room, max(ends) + room, _HEIGHT - _BELOW, 10)
        x = AxisScale(min(costs) / 1.6, max(costs) * 1.6, y.margin, _WIDTH - 10, is_log=True)
        places = [
            (x.position(cost), y.position(p.interval.mean)) for p, cost in zip(points, costs, strict=True)
        ]
        names = [_LETTER * len(clipped(p.method, 28)) for p in points]
        is_left = [at + 9 + name > _WIDTH for (at, _), name in zip(places, names, strict=True)]
        starts = [
            at - 9 - n if left else at + 9 for (at, _), n, left in zip(places, names, is_left, strict=True)
        ]
        boxes = [(start, start + n, -y) for start, n, (_, y) in zip(starts, names, places, strict=True)]
        rows = label_rows(boxes, _LINE)
        drawn: list[dict[str, Any]] = [
            {
                "point": p,
                "x": at,
                "y": height,
                "ends": (y.position(p.interval.low), y.position(p.interval.high))
                if p.interval.bounds
                else None,
                "name_x": at - 9 if left else at + 9,
                "anchor": "end" if left else "start",
                "name_y": height - 7 - _LINE * row,
            }
            for p, (at, height), row, left in zip(points, places, rows, is_left, strict=True)
        ]
        best = " ".join(f"{each['x']},{each['y']}" for each in drawn if each["point"].is_best)
        size = {"width": _WIDTH, "height": _HEIGHT, "left": y.margin, "below": _HEIGHT - _BELOW}
        return size | {"x": x, "y": y, "drawn": drawn, "best": best}
