"""Figures of which features matter over many inputs: bars with intervals, and a beeswarm."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pertinent._optional import optional
from pertinent.array_types import Floats
from pertinent.report.colours import LIGHT, Look
from pertinent.report.plots import LINES, QUIET, new_figure, tidy
from pertinent.report.table_contents import importance_caption
from pertinent.report.wording import clipped
from pertinent.results.importance import Importance

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_BINS = 40
"""The number of stripes across a beeswarm; points in one stripe are pushed apart."""


def show(importance: Importance, kind: str = "bars") -> Figure:
    """Bars of the mean size of scores, by group; or every score as a point."""
    n, groups = len(importance.features), len(importance.groups)
    lines = n * max(1.0, 0.55 * groups) if kind == "bars" else n * 1.3
    figure = new_figure(6.8, 1.5 + 0.28 * lines)
    axes = figure.subplots()
    if kind == "bars":
        _bars(axes, importance)
    else:
        _swarm(figure, axes, importance)
    axes.set_yticks(range(n), [clipped(name) for name in importance.features], parse_math=False)
    tidy(axes, n)
    caption = importance_caption(importance, of_points=kind == "beeswarm")
    figure.supxlabel(caption, fontsize=8, color=QUIET, parse_math=False, wrap=True)
    return figure


def _bars(axes: Any, importance: Importance) -> None:
    groups = importance.groups
    height = 0.75 / len(groups)
    for number, group in enumerate(groups):
        rows = [row for row in importance.rows if row.group == group]
        places = np.arange(len(rows)) + (number - (len(groups) - 1) / 2) * height
        mean, low, high = np.array([[row.mean, row.low, row.high] for row in rows]).T
        sides = [LIGHT.against if row.effect < 0 else LIGHT.support for row in rows]
        colour = sides if len(groups) == 1 else LINES[number % len(LINES)]
        errors = np.nan_to_num(np.stack([mean - low, high - mean])).clip(0.0)
        style = {"ecolor": LIGHT.ink, "elinewidth": 1.0}
        label = f"{clipped(group)} ({importance.sizes[group]:,})"
        axes.barh(places, mean, height=0.92 * height, color=colour, xerr=errors, error_kw=style, label=label)
    axes.set_xlabel("mean |score|", fontsize=9, color=QUIET)
    if len(groups) > 1:
        for text in axes.legend(fontsize=8, frameon=False, loc="lower right").get_texts():
            text.set_parse_math(False)


def _swarm(figure: Any, axes: Any, importance: Importance) -> None:
    ends = [score for own in importance.scored.values() for score in own.scores]
    low, high = min([0.0, *ends]), max([0.0, *ends])
    ordered, look = False, Look()
    for place, own in enumerate(importance.scored.values()):
        scores, positions = np.array(own.scores), np.array(own.positions)
        known = np.isfinite(positions)
        ordered |= bool(known.any())
        colours = look.scale()(np.where(known, positions, 0.5))
        colours[~known] = optional("matplotlib.colors").to_rgba(QUIET)
        axes.scatter(
            scores, place + spread(scores, low, high), c=colours, s=14, lw=0.3, edgecolors=QUIET, zorder=2
        )
    axes.set_xlabel("score", fontsize=9, color=QUIET)
    if ordered:
        norm = optional("matplotlib.colors").Normalize(0, 1)
        bar = figure.colorbar(
            optional("matplotlib.cm").ScalarMappable(norm, look.scale()), ax=axes, aspect=30
        )
        bar.set_ticks([0, 1], labels=["low", "high"])
        bar.set_label("value of the feature", fontsize=9, color=QUIET)
        bar.outline.set_visible(False)


def spread(scores: Floats, low: float, high: float) -> Floats:
    """How far each point moves up or down, so that points with nearly the same score stand apart.

    >>> spread(np.array([0.5, 0.5, 0.5, 0.1]), 0.0, 1.0)
    array([ 0.  ,  0.06, -0.06,  0.  ])
    """
    stripes = np.floor(_BINS * (scores - low) / ((high - low) or 1.0)).astype(np.int64)
    found = np.zeros(len(scores))
    for stripe in np.unique(stripes):
        members = np.flatnonzero(stripes == stripe)
        steps = (np.arange(len(members)) + 1) // 2 * np.where(np.arange(len(members)) % 2, 1, -1)
        found[members] = steps * min(0.06, 0.42 / max(1, len(members) // 2)) + 0.0
    return found
