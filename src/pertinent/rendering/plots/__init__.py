"""Figures for papers and notebooks, made without pyplot and its global state."""

from __future__ import annotations

from functools import partial
from io import BytesIO
from typing import TYPE_CHECKING, Any

from pertinent._optional import optional
from pertinent.rendering.colours import LIGHT, NEUTRAL, Look
from pertinent.rendering.wording import clipped

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure

_LONGEST_LINE = 80
SIDES = {"support": LIGHT.support, "against": LIGHT.against, "plain": NEUTRAL}
QUIET = "#5c626d"
# The colour-blind-safe palette of Okabe & Ito; the markers also differ in black and white.
LINES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#1b1d22")
MARKERS = "osD^vPX"


def add_colour_bar(
    figure: Figure | SubFigure,
    largest: float,
    label: str,
    *,
    look: Look,
    is_clipped: bool,
    two_sides: bool = True,
    axes: Any = None,
) -> Any:
    """Add a colour bar for heat maps, from −`largest` to `largest`, or from 0 without `two_sides`.

    It is placed next to `axes`; by default next to all axes.
    """
    norm = optional("matplotlib.colors").Normalize(-(largest or 1.0), largest or 1.0)
    mappable = optional("matplotlib.cm").ScalarMappable(norm, look.scale())
    beyond = ("both" if two_sides else "max") if is_clipped else "neither"
    bar = figure.colorbar(
        mappable, ax=axes or figure.axes, shrink=0.7, aspect=18, pad=0.03, extend=beyond, alpha=look.opacity
    )
    if not two_sides:
        bar.ax.set_ylim(0.0)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=8, length=2)
    bar.set_label(f"{label}{', clipped' if is_clipped else ''}", fontsize=9, color=QUIET, parse_math=False)
    return bar


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of this size in inches, which notebooks show without pyplot."""
    figure: Figure = optional("matplotlib.figure").Figure(figsize=(width, height), layout="constrained")
    # Notebooks show figures automatically only if pyplot has been set up.
    figure._repr_png_ = partial(_png, figure)  # type: ignore[attr-defined]
    return figure


def _png(figure: Figure) -> bytes:
    data = BytesIO()
    figure.savefig(data, format="png", dpi=110)
    return data.getvalue()


def add_key(figure: Figure | SubFigure, meanings: tuple[str, str], note: str | None = None) -> None:
    """Add a legend of the two colours below the axes, with a note as its title."""
    patch = optional("matplotlib.patches").Patch
    colours = zip((LIGHT.support, LIGHT.against), meanings, strict=True)
    handles = [patch(color=colour, label=clipped(meaning, _LONGEST_LINE)) for colour, meaning in colours]
    key = figure.legend(
        handles=handles,
        fontsize=9,
        frameon=False,
        loc="outside lower left",
        title=note,
        title_fontproperties={"size": 8},
        alignment="left",
    )
    for text in (*key.get_texts(), key.get_title()):
        text.set_parse_math(False)


def tidy(axes: Any, n: int) -> None:
    """Put the first row on top, draw a line at zero, and remove the frame."""
    axes.set_ylim(n - 0.4, -0.6)
    axes.axvline(0, color=QUIET, lw=0.8)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0, labelsize=9)
    axes.tick_params(axis="x", labelsize=8)
