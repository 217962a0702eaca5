"""Stability against the length of inputs, as in Figure 3 of Yang et al. 2023."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from pertinent.diagnostics.stability_result import Stability
from pertinent.report.plots import LINES, MARKERS, QUIET, clipped, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_stability(several: Sequence[Stability]) -> Figure:
    """Spearman's correlation by number of features with 95% intervals, a line for each result."""
    figure = new_figure(6.4, 4.0)
    axes = figure.subplots()
    ticks = {length.low: str(length) for stability in several for length in stability.by_length}
    places = {low: place for place, low in enumerate(sorted(ticks))}
    for number, stability in enumerate(several):
        lengths = [each for each in stability.by_length if each.measures["spearman"].n]
        shift = 0.06 * (number - (len(several) - 1) / 2)  # so that whiskers do not overlap
        found = [length.measures["spearman"] for length in lengths]
        mean, low, high = (np.array([getattr(i, of) for i in found]) for of in ("mean", "low", "high"))
        below, above = np.nan_to_num(mean - low).clip(0.0), np.nan_to_num(high - mean).clip(0.0)
        axes.errorbar(
            [places[length.low] + shift for length in lengths],
            mean,
            yerr=np.stack([below, above]) if found else None,
            color=LINES[number % len(LINES)],
            marker=MARKERS[number % len(MARKERS)],
            ms=5.5,
            lw=1.6,
            elinewidth=1.0,
            label=clipped(stability.name),
        )
    axes.set_xticks(range(len(ticks)), [ticks[low] for low in sorted(ticks)])
    axes.set_xlim(-0.5, len(ticks) - 0.5)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8)
    axes.set_xlabel(f"number of {clipped(several[0].features)}", fontsize=9, color=QUIET, parse_math=False)
    axes.set_ylabel("Spearman's correlation between seeds", fontsize=9, color=QUIET)
    counts = sorted({(s.inputs, len(s.seeds)) for s in several})
    said = ", ".join(f"{inputs:,} inputs × {seeds} seeds" for inputs, seeds in counts)
    axes.set_title(f"{said}, 95% intervals", loc="left", fontsize=10)
    for text in axes.legend(fontsize=8, frameon=False, loc="best").get_texts():
        text.set_parse_math(False)
    return figure
