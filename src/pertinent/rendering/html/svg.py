"""SVG pictures: beeswarms of many explanations, curves by sparsity, and waterfalls."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite

import numpy as np

from pertinent.rendering.axes import AxisScale
from pertinent.rendering.colours import shade
from pertinent.rendering.html import Axis, Markup, from_template
from pertinent.rendering.plot_data import Curves, has_steps, spread, waterfall_steps
from pertinent.rendering.tables import importance_caption
from pertinent.results.explanation import Explanation
from pertinent.results.importance import FeatureScores, Importance

_WIDTH, _LEFT, _LINE = 640, 150, 26
"""Width of a beeswarm, width of the names next to it, and height of a line, in pixels."""

_SHADES = 9
"""Number of colours of a beeswarm."""

_CURVE = {"width": 320, "height": 220, "below": 180}
_COLOURS = 7
"""Number of line colours in report.css."""


def swarm_card(importance: Importance) -> Markup:
    """Return a beeswarm for each group on a shared axis, without style."""
    scores = [score for feature in importance.scored.values() for score in feature.scores]
    low, high = min([0.0, *scores]), max([0.0, *scores])
    margin = 0.03 * (high - low) or 1.0
    x = AxisScale(low - margin, high + margin, _LEFT, _WIDTH - 10)
    height = _LINE * len(importance.features) + 40
    swarms = [
        (group, [_dots(scores, group, line, x) for line, scores in enumerate(importance.scored.values())])
        for group in importance.groups
    ]
    positions = [position for feature in importance.scored.values() for position in feature.positions]
    return from_template(
        "beeswarm.html",
        importance=importance,
        swarms=swarms,
        x=x,
        size={"width": _WIDTH, "height": height, "left": _LEFT, "line": _LINE},
        is_ordered=any(map(isfinite, positions)),
        caption=importance_caption(importance, of_points=True),
    )


def _dots(feature: FeatureScores, group: str, line: int, x: AxisScale) -> dict[str, str]:
    """Return the SVG path of a feature's points for each colour: zero-length lines with round caps."""
    chosen = [i for i, name in enumerate(feature.groups) if name == group]
    scores, positions = np.array(feature.scores)[chosen], np.array(feature.positions)[chosen]
    ups = spread(scores, x.low, x.high) if len(scores) else scores
    paths: dict[str, str] = {}
    for score, position, up in zip(scores.tolist(), positions.tolist(), ups.tolist(), strict=True):
        rank = round(position * (_SHADES - 1)) / (_SHADES - 1) if isfinite(position) else None
        colour = "var(--quiet)" if rank is None else shade(2 * rank - 1)
        y = round(_LINE * (line + 0.5 + up) + 4, 1)
        paths[colour] = paths.get(colour, "") + f"M{x.position(score):g} {y:g}h0"
    return paths


def curves_card(curves: Curves, better: Mapping[str, str]) -> Markup:
    """Return a picture of the curves of each metric; empty without curves."""
    panels = []
    for metric, lines in curves.items():
        all_points = [point for points in lines.values() for point in points]
        ends = [end for _, i in all_points for end in (i.mean, i.low, i.high) if isfinite(end)]
        low, high = min([0.0, *ends]), max([0.0, *ends])
        margin = 0.05 * (high - low) or 0.1
        y = AxisScale(low - margin, high + margin, _CURVE["below"], 10)
        x = AxisScale(0.0, max(sparsity for sparsity, _ in all_points), y.margin, _CURVE["width"] - 20)
        drawn = [
            {
                "method": method,
                "colour": number % _COLOURS,
                "line": " ".join(f"{x.position(s)},{y.position(i.mean)}" for s, i in points),
                "band": " ".join(
                    [f"{x.position(s)},{y.position(i.low)}" for s, i in points if isfinite(i.low)]
                    + [f"{x.position(s)},{y.position(i.high)}" for s, i in points[::-1] if isfinite(i.high)]
                ),
            }
            for number, (method, points) in enumerate(lines.items())
        ]
        panels.append({"metric": metric, "better": better.get(metric, ""), "x": x, "y": y, "drawn": drawn})
    return from_template("curves.html", panels=panels, size=_CURVE) if panels else Markup()


def waterfall(e: Explanation) -> Markup:
    """Return bars from the base value to the prediction; empty if the scores do not sum to it."""
    if not has_steps(e):
        return Markup()
    steps = waterfall_steps(e)
    axis = Axis.from_ranges((end, end) for end in steps.ends)
    return from_template("waterfall.html", e=e, steps=steps, axis=axis)
