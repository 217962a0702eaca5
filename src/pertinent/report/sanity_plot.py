"""Rank correlation as layers are randomised, as in Figure 4 of Adebayo et al. 2018."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pertinent.diagnostics.sanity_result import HARDLY, Sanity
from pertinent.report.colours import NEUTRAL
from pertinent.report.plots import LINES, MARKERS, QUIET, clipped, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PANELS = {"spearman": "scores", "absolute": "absolute scores"}
_NAMED = 12
"""With more stages than this their number stands at the axis, not the layer's name."""


def plot_sanity(several: Sequence[Sanity]) -> Figure:
    """A panel for scores and one for absolute scores, in each a line with 95% intervals for each result."""
    figure = new_figure(9.0, 4.2)
    panels = figure.subplots(1, 2, sharey=True)
    longest = max(several, key=lambda sanity: len(sanity.layers)).layers
    for axes, (measure, title) in zip(panels, _PANELS.items(), strict=True):
        axes.axhspan(HARDLY, 1.05, color=NEUTRAL, alpha=0.4, lw=0)
        axes.axhline(0, color=QUIET, lw=0.8)
        for number, sanity in enumerate(several):
            _draw(axes, sanity, measure, number, 0.06 * (number - (len(several) - 1) / 2))
        names = [str(n) for n in range(1, len(longest) + 1)]
        if len(longest) <= _NAMED and all(s.layers == longest[: len(s.layers)] for s in several):
            names = [clipped(".".join(layer.split(".")[-2:])) for layer in longest]
        axes.set_xticks(range(len(longest) + 1), ["none", *names], rotation=40, ha="right", parse_math=False)
        axes.set_ylim(-1.05, 1.05)
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=8)
        axes.set_title(title, loc="left", fontsize=10)
        axes.set_xlabel("randomised down to", fontsize=9, color=QUIET)
    panels[0].set_ylabel("Spearman's correlation", fontsize=9, color=QUIET)
    for text in panels[0].legend(fontsize=8, frameon=False, loc="best").get_texts():
        text.set_parse_math(False)
    return figure


def _draw(axes: Any, sanity: Sanity, measure: str, number: int, shift: float) -> None:
    """One line, from 1 for the model as it is."""
    found = [getattr(stage, measure) for stage in sanity.stages]
    mean, low, high = (np.array([1.0, *(getattr(i, of) for i in found)]) for of in ("mean", "low", "high"))
    whiskers = np.nan_to_num(np.stack([mean - low, high - mean])).clip(0.0)
    whiskers[:, 0] = 0.0
    axes.errorbar(
        np.arange(len(mean)) + shift,  # so that whiskers do not overlap
        mean,
        yerr=whiskers,
        color=LINES[number % len(LINES)],
        marker=MARKERS[number % len(MARKERS)],
        ms=5.5,
        lw=1.6,
        elinewidth=1.0,
        label=clipped(sanity.name),
    )
