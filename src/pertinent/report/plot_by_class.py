"""A figure of several classes side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pertinent.inputs.image import ImageInput
from pertinent.inputs.table import TableInput
from pertinent.report import facts as say
from pertinent.report.by_class import Panel, directions, is_clipped, largest, panels, set_text, title
from pertinent.report.colours import LIGHT
from pertinent.report.pictures import kept, original, painted
from pertinent.report.plots import QUIET, SIDES, add_colour_bar, add_key, clipped, new_figure, tidy
from pertinent.results.explanation import ByClass

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_OUTLINE = 1.4
_MOST_BARS, _MOST_IMAGES = 4, 5
"""The most panels in a line."""


def plot_by_class(found: ByClass, top: int | None = None) -> Figure:
    """Bars of each class on one axis, those of its set outlined; of an image the heat and the set of each."""
    every = panels(found, top)
    figure = _images(found, every) if isinstance(found[0].input, ImageInput) else _bars(found, every)
    e = found[0]
    predicted = say.predicted(e)
    heading = f"{clipped(e.classes[predicted])} ({clipped(say.amount(e, predicted))})"
    figure.suptitle(
        f"{heading} · {title(found)}, by {clipped(e.method)}",
        x=0.02,
        ha="left",
        fontsize=10,
        parse_math=False,
    )
    return figure


def _bars(found: ByClass, every: list[Panel]) -> Figure:
    lines, beside = _arranged(len(every), _MOST_BARS)
    is_row = isinstance(found[0].input, TableInput)
    most = max(len(panel.shown) for panel in every)
    figure = new_figure(1.2 + 2.9 * beside, 0.9 + lines * (0.6 + 0.25 * most))
    axes = figure.subplots(lines, beside, sharex=True, sharey=is_row, squeeze=False).ravel()
    for own, panel in zip(axes, every, strict=False):
        _draw_bars(own, panel)
    for unused in axes[len(every) :]:
        unused.set_axis_off()
    bars = "" if found[0].standard_errors is None else " ± standard error"
    add_key(figure, directions(found), f"score{bars} · outlined: {set_text(found)}")
    return figure


def _draw_bars(axes: Any, panel: Panel) -> None:
    e, shown = panel.explanation, panel.shown.tolist()
    errors = np.array([say.error_of(e, i) or 0.0 for i in shown])
    axes.barh(
        range(len(shown)),
        e.scores[shown],
        height=0.7,
        color=[SIDES[say.side(e, i)] for i in shown],
        xerr=errors if errors.any() else None,
        edgecolor=LIGHT.ink,
        linewidth=np.where(panel.chosen[shown], _OUTLINE, 0.0),
        error_kw={"ecolor": LIGHT.ink, "elinewidth": 1.1},
    )
    values = e.input.shown() if isinstance(e.input, TableInput) else None
    names = [clipped(e.features[i], 20) + (f" = {clipped(values[i], 10)}" if values else "") for i in shown]
    axes.set_yticks(range(len(shown)), names, parse_math=False)
    tidy(axes, len(shown))
    axes.set_title(f"{clipped(panel.name)} {clipped(panel.amount)}", loc="left", fontsize=9, parse_math=False)


def _images(found: ByClass, every: list[Panel]) -> Figure:
    """The image once; in each line the heat of some classes, and their sets below."""
    input = found[0].input
    assert isinstance(input, ImageInput)
    lines, beside = _arranged(len(every), _MOST_IMAGES)
    figure = new_figure(1.2 + 1.6 * (beside + 1), 0.4 + 3.8 * lines)
    axes = figure.subplots(2 * lines, beside + 1, squeeze=False)
    for own in axes.ravel():
        own.set_axis_off()
    axes[0, 0].imshow(original(input), interpolation="nearest")
    axes[0, 0].set_title("image", loc="left", fontsize=9)
    for place, panel in enumerate(every):
        heat, chosen = axes[2 * (place // beside) :, 1 + place % beside][:2]
        heat.imshow(painted(input, panel.share[input.labels]), interpolation="nearest")
        chosen.imshow(kept(input, panel.chosen), interpolation="nearest")
        name = f"{clipped(panel.name, 12)} {clipped(panel.amount, 12)}"
        heat.set_title(name, loc="left", fontsize=9, parse_math=False)
    axes[1, 1].set_title(set_text(found), loc="left", fontsize=8, color=QUIET)
    add_colour_bar(figure, largest(found), "score", is_clipped=is_clipped(found))
    return figure


def _arranged(n: int, most: int) -> tuple[int, int]:
    """How many lines `n` panels need, and how many are in each."""
    lines = -(-n // most)
    return lines, -(-n // lines)
