"""Figure of the shares of sources in a step of an agent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pertinent.rendering.plots import LINES, QUIET, new_figure
from pertinent.rendering.wording import clipped
from pertinent.results.hops import Hops

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def show(hops: Hops, top: int = 10) -> Figure:
    """Return a bar for each of the sources with the largest shares."""
    sources = hops.top(top)[::-1]
    figure = new_figure(6.4, 1.2 + 0.3 * len(sources))
    axes: Any = figure.subplots()
    axes.barh(range(len(sources)), [100 * share for _, share in sources], color=LINES[0])
    names = [clipped(f"{name}: {hops.texts[name]}", 50) for name, _ in sources]
    axes.set_yticks(range(len(sources)), names, parse_math=False, fontsize=8)
    axes.set_xlabel(
        f"% of {clipped(hops.target)}, through all steps", fontsize=9, color=QUIET, parse_math=False
    )
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8)
    return figure
