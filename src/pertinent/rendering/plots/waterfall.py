"""Figure of additive scores from the base value to the prediction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pertinent.rendering import wording as say
from pertinent.rendering.colours import LIGHT
from pertinent.rendering.plot_data import waterfall_steps
from pertinent.rendering.plots import QUIET, new_figure
from pertinent.rendering.wording import clipped
from pertinent.results.explanation import Explanation

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def show(e: Explanation, top: int = 10) -> Figure:
    """Return bars from the base value to the prediction: one per `top` feature, and one for the rest."""
    data = waterfall_steps(e, top)
    steps, ends, base = data.steps, data.ends, data.ends[0]
    figure = new_figure(6.8, 1.5 + 0.3 * (len(steps) + 2))
    axes = figure.subplots()
    for line, (start, step) in enumerate(zip(ends, steps, strict=False), start=1):
        axes.barh(line, step, left=start, height=0.65, color=LIGHT.support if step > 0 else LIGHT.against)
        axes.plot([start + step] * 2, [line, line + 1], color=QUIET, lw=0.7)
        side = "left" if step >= 0 else "right"
        axes.annotate(
            data.texts[line],
            (start + step, line),
            xytext=(4 if step >= 0 else -4, 0),
            textcoords="offset points",
            ha=side,
            va="center",
            fontsize=8,
        )
    axes.plot([base] * 2, [0, 1], color=QUIET, lw=0.7)
    axes.plot([base, ends[-1]], [0, len(steps) + 1], "D", ms=5, color=LIGHT.ink, ls="none")
    labels = [f"base value {data.texts[0]}", *data.names, f"{clipped(e.target_name)} {data.texts[-1]}"]
    axes.set_yticks(range(len(labels)), labels, parse_math=False)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0, labelsize=9)
    axes.tick_params(axis="x", labelsize=8)
    axes.use_sticky_edges = False
    axes.margins(x=0.15)
    axes.set_title(
        f"{clipped(e.target_name)} ({clipped(say.amount(e, e.target))}) · {clipped(e.method)}",
        loc="left",
        fontsize=10,
        parse_math=False,
    )
    return figure
