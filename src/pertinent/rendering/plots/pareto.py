"""Figure of a metric against the cost of each method."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from pertinent.printable import visible
from pertinent.rendering.axes import label_rows
from pertinent.rendering.plots import LINES, QUIET, new_figure
from pertinent.rendering.wording import arrow, clipped
from pertinent.results.evaluation import Evaluation
from pertinent.results.pareto import cost_points

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LETTER, _LINE = 0.016, 0.045
"""Width of a letter and height of a line, relative to the axis ranges."""


def show(
    evaluation: Evaluation,
    metric: str | None = None,
    cost: Literal["evaluations", "seconds"] = "evaluations",
) -> Figure:
    """Return a point with its interval for each method, and a line through the Pareto-optimal methods."""
    points = cost_points(evaluation, metric, cost)
    metric = metric or next(iter(evaluation.better))
    figure = new_figure(6.4, 4.2)
    axes: Any = figure.subplots()
    costs, means = np.array([[point.cost, point.interval.mean] for point in points]).T
    width, height = float(np.ptp(costs)) or 1.0, float(np.ptp(means)) or 1.0
    sizes = [_LETTER * width * len(clipped(point.method)) for point in points]
    boxes = [(x, x + size, y) for x, y, size in zip(costs, means, sizes, strict=True)]
    rows = label_rows(boxes, _LINE * height)
    for point, row in zip(points, rows, strict=True):
        i = point.interval
        bounds = np.nan_to_num([[i.mean - i.low], [i.high - i.mean]]).clip(0.0)
        colour = LINES[0] if point.is_best else QUIET
        axes.errorbar(point.cost, i.mean, yerr=bounds, fmt="o", ms=6, color=colour, elinewidth=1.1)
        axes.annotate(
            clipped(point.method),
            (point.cost, i.mean),
            xytext=(7, 5 + 10 * row),
            textcoords="offset points",
            fontsize=8,
            color=colour,
            parse_math=False,
        )
    best = [(point.cost, point.interval.mean) for point in points if point.is_best]
    axes.plot(*zip(*best, strict=True), color=LINES[0], lw=1.2, zorder=0)
    axes.margins(x=0.25)
    if all(point.cost > 0 for point in points):
        axes.set_xscale("log")
    else:
        axes.set_xlim(left=-0.06 * width)
    better = evaluation.better[metric]
    unit = "evaluations" if cost == "evaluations" else "seconds of model time"
    axes.set_xlabel(f"{unit} per explanation (mean)", fontsize=9, color=QUIET)
    axes.set_ylabel(f"{better} is better", fontsize=9, color=QUIET)
    axes.set_title(f"{visible(metric)} {arrow(better)}", loc="left", fontsize=10, parse_math=False)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8)
    return figure
