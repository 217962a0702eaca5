"""Figure of metrics by sparsity: insertion and deletion curves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pertinent.errors import SettingError
from pertinent.printable import visible
from pertinent.rendering.plot_data import curves_by_sparsity
from pertinent.rendering.plots import LINES, MARKERS, QUIET, new_figure
from pertinent.rendering.wording import arrow, clipped
from pertinent.results.evaluation import Evaluation

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def show(evaluation: Evaluation) -> Figure:
    """Return a panel for each metric: its mean by share of features, with 95% intervals as bands."""
    drawn = curves_by_sparsity(evaluation)
    if not drawn:
        raise SettingError(
            "Curves need a metric with values at several sparsities, such as "
            "'comprehensiveness:sparsities=.1+.2+.5'."
        )
    figure = new_figure(max(6.4, 4.4 * len(drawn)), 3.8)
    panels = figure.subplots(1, len(drawn), squeeze=False)[0]
    for axes, (metric, lines) in zip(panels, drawn.items(), strict=True):
        for number, (method, points) in enumerate(lines.items()):
            percentages = 100 * np.array([sparsity for sparsity, _ in points])
            mean, low, high = np.array([[i.mean, i.low, i.high] for _, i in points]).T
            colour = LINES[number % len(LINES)]
            marker = MARKERS[number % len(MARKERS)]
            axes.plot(percentages, mean, color=colour, marker=marker, ms=4.5, lw=1.6, label=clipped(method))
            axes.fill_between(percentages, low, high, color=colour, alpha=0.15, lw=0)
        axes.axhline(0, color=QUIET, lw=0.8)
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=8)
        better = evaluation.better[metric]
        axes.set_title(f"{visible(metric)} {arrow(better)}", loc="left", fontsize=10, parse_math=False)
        axes.set_xlabel("% of features that count as chosen", fontsize=9, color=QUIET)
    for text in panels[0].legend(fontsize=8, frameon=False).get_texts():
        text.set_parse_math(False)
    return figure
