"""Figures of evaluations, attacks and diagnostics."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from pertinent.errors import require
from pertinent.printable import visible
from pertinent.rendering.colours import LIGHT, NEUTRAL
from pertinent.rendering.plots import LINES, MARKERS, QUIET, new_figure, tidy
from pertinent.rendering.tables import attack_cells, attack_notes, evaluation_caption, summarize
from pertinent.rendering.wording import arrow, clipped
from pertinent.results.attack_results import Attacks
from pertinent.results.evaluation import Evaluation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from pertinent.diagnostics.base import Diagnostic, Line

_LONGEST_TITLE = 80
_SHIFT = 0.015
"""Horizontal distance between lines that separates their whiskers, relative to the x-axis."""


def show_evaluation(evaluation: Evaluation) -> Figure:
    """Return a panel for each metric: the mean of each method and its confidence interval."""
    metrics, methods = list(evaluation.better), evaluation.methods
    require(bool(methods), "evaluation", "an evaluation with measurements", evaluation.rows)
    cells, _ = summarize(evaluation)
    figure = new_figure(1.8 + 3.2 * len(metrics), 1.3 + 0.38 * len(methods))
    panels = figure.subplots(1, len(metrics), sharey=True, squeeze=False)[0]
    for axes, metric in zip(panels, metrics, strict=True):
        for line, method in enumerate(methods):
            cell = cells.get((method, metric))
            if cell is None or cell.interval is None:
                continue
            i = cell.interval
            bounds = [[i.mean - i.low], [i.high - i.mean]] if i.bounds else None
            axes.barh(line, i.mean, height=0.6, color=LIGHT.support if cell.is_best else NEUTRAL)
            axes.errorbar(i.mean, line, xerr=bounds, fmt="o", ms=3.5, color=LIGHT.ink, lw=1.3)
        tidy(axes, len(methods))
        better = evaluation.better[metric]
        axes.set_title(f"{visible(metric)} {arrow(better)}", loc="left", fontsize=10, parse_math=False)
        axes.set_xlabel(f"{better} is better", fontsize=9, color=QUIET)
    panels[0].set_yticks(range(len(methods)), [*map(visible, methods)], parse_math=False)
    figure.supxlabel(evaluation_caption(evaluation), fontsize=8, color=QUIET)
    return figure


def show_attacks(attacks: Attacks, top: int = 40) -> Figure:
    """Return a bar for the radius of each of the first `top` sets, if an attack succeeded."""
    lines = [cells for attacked in attacks for cells in attack_cells(attacked)][:top]
    radii = [row["radius"] for row in attacks.rows[:top]]
    figure = new_figure(6.4, 1.2 + 0.27 * len(lines))
    axes = figure.subplots()
    axes.barh(range(len(radii)), [r if isfinite(r) else 0.0 for r in radii], height=0.7, color=LIGHT.support)
    names = [f"{number.text} · {clipped(features.text)}" for number, _, features, *_ in lines]
    axes.set_yticks(range(len(names)), names, parse_math=False)
    tidy(axes, len(names))
    axes.set_xlabel(attack_notes(attacks)[0], fontsize=8, color=QUIET, parse_math=False)
    return figure


def show_diagnostic(diagnostic: Diagnostic, *others: Diagnostic) -> Figure:
    """Return a panel for each title of the chart, side by side."""
    chart = type(diagnostic.chart()).merge([other.chart() for other in (diagnostic, *others)])
    n = len(chart.panels)
    figure = new_figure(6.4 if n == 1 else 4.5 * n, 4.2)
    panels = figure.subplots(1, n, sharey=True, squeeze=False)[0]
    names = [clipped(name) for name in chart.ticks.values()]
    scale = 100 if chart.percent else 1
    tilt = {"rotation": 40, "ha": "right"} if sum(map(len, names)) > 40 else {}
    for axes, (title, lines) in zip(panels, chart.panels.items(), strict=True):
        if chart.fails_from is not None and chart.limits is not None:
            axes.axhspan(chart.fails_from, chart.limits[1], color=NEUTRAL, alpha=0.4, lw=0)
            axes.axhline(0, color=QUIET, lw=0.8)
        width = max(chart.ticks, default=0.0) or 1.0
        for number, line in enumerate(lines):
            _draw_line(axes, line, number, _SHIFT * width * (number - (len(lines) - 1) / 2), scale)
        axes.set_xticks([scale * tick for tick in chart.ticks], names, parse_math=False, **tilt)
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=8)
        axes.set_title(clipped(title, _LONGEST_TITLE), loc="left", fontsize=10, parse_math=False)
        axes.set_xlabel(clipped(chart.x_label), fontsize=9, color=QUIET, parse_math=False)
    if chart.limits is not None:
        panels[0].set_ylim(*chart.limits)
    panels[0].set_ylabel(chart.y_label, fontsize=9, color=QUIET)
    for text in panels[0].legend(fontsize=8, frameon=False, loc="best").get_texts():
        text.set_parse_math(False)
    return figure


def _draw_line(axes: Any, line: Line, number: int, shift: float, scale: float) -> None:
    values = [(x, i.mean, i.low, i.high) for x, i in line.intervals.items()]
    x, mean, low, high = scale * np.array(values).reshape(-1, 4).T
    axes.errorbar(
        x + scale * shift,
        mean,
        yerr=np.nan_to_num(np.stack([mean - low, high - mean])).clip(0.0),
        color=LINES[number % len(LINES)],
        marker=MARKERS[number % len(MARKERS)],
        ms=5.5,
        lw=2.2 if line.is_best else 1.4,
        elinewidth=1.0,
        label=clipped(line.name, 2 * 32),
    )
