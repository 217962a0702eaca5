"""Figures of feature importance over many inputs: bars with intervals, and beeswarms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pertinent._optional import optional
from pertinent.rendering.colours import LIGHT, Look
from pertinent.rendering.plot_data import spread
from pertinent.rendering.plots import LINES, QUIET, new_figure, tidy
from pertinent.rendering.tables import importance_caption
from pertinent.rendering.wording import clipped
from pertinent.results.importance import Importance

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def show(importance: Importance, kind: str = "bars") -> Figure:
    """Return bars of mean score magnitudes, or a beeswarm of all scores for each group."""
    n, groups = len(importance.features), importance.groups
    lines = n * max(1.0, 0.55 * len(groups)) if kind == "bars" else n * 1.3
    panels = 1 if kind == "bars" else len(groups)
    figure = new_figure(max(6.8, 3.4 * panels + 1.6), 1.5 + 0.28 * lines)
    grid = figure.subplots(1, panels, squeeze=False, sharex=True, sharey=True)[0]
    if kind == "bars":
        _bars(grid[0], importance)
    else:
        _swarms(figure, grid, importance)
    grid[0].set_yticks(range(n), [clipped(name) for name in importance.features], parse_math=False)
    for axes in grid:
        tidy(axes, n)
    caption = importance_caption(importance, of_points=kind == "beeswarm")
    figure.supxlabel(caption, fontsize=8, color=QUIET, parse_math=False, wrap=True)
    return figure


def _bars(axes: Any, importance: Importance) -> None:
    groups = importance.groups
    height = 0.75 / len(groups)
    for number, group in enumerate(groups):
        rows = [row for row in importance.rows if row.group == group]
        positions = np.arange(len(rows)) + (number - (len(groups) - 1) / 2) * height
        mean, low, high = np.array([[row.mean, row.low, row.high] for row in rows]).T
        sides = [LIGHT.against if row.effect < 0 else LIGHT.support for row in rows]
        colour = sides if len(groups) == 1 else LINES[number % len(LINES)]
        errors = np.nan_to_num(np.stack([mean - low, high - mean])).clip(0.0)
        style = {"ecolor": LIGHT.ink, "elinewidth": 1.0}
        label = f"{clipped(group)} ({importance.sizes[group]:,})"
        axes.barh(
            positions, mean, height=0.92 * height, color=colour, xerr=errors, error_kw=style, label=label
        )
    axes.set_xlabel("mean |score|", fontsize=9, color=QUIET)
    if len(groups) > 1:
        for text in axes.legend(fontsize=8, frameon=False, loc="lower right").get_texts():
            text.set_parse_math(False)


def _swarms(figure: Any, panels: Any, importance: Importance) -> None:
    ends = [score for feature in importance.scored.values() for score in feature.scores]
    low, high = min([0.0, *ends]), max([0.0, *ends])
    ordered, look = False, Look()
    for axes, group in zip(panels, importance.groups, strict=True):
        for line, feature in enumerate(importance.scored.values()):
            chosen = np.array([name == group for name in feature.groups])
            scores, positions = np.array(feature.scores)[chosen], np.array(feature.positions)[chosen]
            has_position = np.isfinite(positions)
            ordered |= bool(has_position.any())
            colours = look.scale()(np.where(has_position, positions, 0.5))
            colours[~has_position] = optional("matplotlib.colors").to_rgba(QUIET)
            up = line + spread(scores, low, high)
            axes.scatter(scores, up, c=colours, s=14, lw=0.3, edgecolors=QUIET, zorder=2)
        axes.set_xlabel("score", fontsize=9, color=QUIET)
        if group:
            title = f"{clipped(group)} ({importance.sizes[group]:,})"
            axes.set_title(title, loc="left", fontsize=10, parse_math=False)
    if ordered:
        norm = optional("matplotlib.colors").Normalize(0, 1)
        bar = figure.colorbar(
            optional("matplotlib.cm").ScalarMappable(norm, look.scale()), ax=list(panels), aspect=30
        )
        bar.set_ticks([0, 1], labels=["low", "high"])
        bar.set_label("value of the feature", fontsize=9, color=QUIET)
        bar.outline.set_visible(False)
