"""Pictures as SVG: a beeswarm of many explanations, curves by sparsity, and the steps of a waterfall."""

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
"""The width of a beeswarm, the room for the names beside it, and the height of a line, in pixels."""

_SHADES = 9
"""The number of colours of a beeswarm."""

_CURVE = {"width": 320, "height": 220, "below": 180}
_COLOURS = 7
"""The number of colours of lines, which report.css has."""


def swarm_card(importance: Importance) -> Markup:
    """A beeswarm for each group, all on one scale, without style."""
    scores = [score for own in importance.scored.values() for score in own.scores]
    low, high = min([0.0, *scores]), max([0.0, *scores])
    room = 0.03 * (high - low) or 1.0
    x = AxisScale(low - room, high + room, _LEFT, _WIDTH - 10)
    height = _LINE * len(importance.features) + 40
    swarms = [
        (group, [_dots(own, group, place, x) for place, own in enumerate(importance.scored.values())])
        for group in importance.groups
    ]
    positions = [each for own in importance.scored.values() for each in own.positions]
    return from_template(
        "beeswarm.html",
        importance=importance,
        swarms=swarms,
        x=x,
        size={"width": _WIDTH, "height": height, "left": _LEFT, "line": _LINE},
        is_ordered=any(map(isfinite, positions)),
        caption=importance_caption(importance, of_points=True),
    )


def _dots(own: FeatureScores, group: str, place: int, x: AxisScale) -> dict[str, str]:
    """For each colour, the points of a feature as the path of an SVG: lines of no length with round ends."""
    chosen = [i for i, name in enumerate(own.groups) if name == group]
    scores, positions = np.array(own.scores)[chosen], np.array(own.positions)[chosen]
    ups = spread(scores, x.low, x.high) if len(scores) else scores
    paths: dict[str, str] = {}
    for score, position, up in zip(scores.tolist(), positions.tolist(), ups.tolist(), strict=True):
        rank = round(position * (_SHADES - 1)) / (_SHADES - 1) if isfinite(position) else None
        colour = "var(--quiet)" if rank is None else shade(2 * rank - 1)
        y = round(_LINE * (place + 0.5 + up) + 4, 1)
        paths[colour] = paths.get(colour, "") + f"M{x.place(score):g} {y:g}h0"
    return paths


def curves_card(curves: Curves, better: Mapping[str, str]) -> Markup:
    """Return a picture of the curves of each metric; empty if there is none."""
    panels = []
    for metric, lines in curves.items():
        every = [point for points in lines.values() for point in points]
        ends = [end for _, i in every for end in (i.mean, i.low, i.high) if isfinite(end)]
        low, high = min([0.0, *ends]), max([0.0, *ends])
        room = 0.05 * (high - low) or 0.1
        y = AxisScale(low - room, high + room, _CURVE["below"], 10)
        x = AxisScale(0.0, max(place for place, _ in every), y.margin, _CURVE["width"] - 20)
        drawn = [
            {
                "method": method,
                "colour": number % _COLOURS,
                "line": " ".join(f"{x.place(place)},{y.place(i.mean)}" for place, i in points),
                "band": " ".join(
                    [f"{x.place(place)},{y.place(i.low)}" for place, i in points if isfinite(i.low)]
                    + [f"{x.place(place)},{y.place(i.high)}" for place, i in points[::-1] if isfinite(i.high)]
                ),
            }
            for number, (method, points) in enumerate(lines.items())
        ]
        panels.append({"metric": metric, "better": better.get(metric, ""), "x": x, "y": y, "drawn": drawn})
    return from_template("curves.html", panels=panels, size=_CURVE) if panels else Markup()


def waterfall(e: Explanation) -> Markup:
    """Bars from the base value to the prediction; empty for scores that do not add up to it."""
    if not has_steps(e):
        return Markup()
    found = waterfall_steps(e)
    axis = Axis.from_ranges((end, end) for end in found.ends)
    return from_template("waterfall.html", e=e, found=found, axis=axis)
