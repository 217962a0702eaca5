"""Figures of one explanation, of several, and of several classes side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pertinent.array_types import Array, Masks
from pertinent.errors import require
from pertinent.rendering import panels
from pertinent.rendering import wording as say
from pertinent.rendering.by_input import Explained, by_input
from pertinent.rendering.colours import LIGHT, NEUTRAL, Look, full_colour
from pertinent.rendering.drawings import drawing_of
from pertinent.rendering.panels import Panel
from pertinent.rendering.plots import QUIET, SIDES, add_colour_bar, add_key, new_figure, tidy
from pertinent.rendering.wording import clipped
from pertinent.results.explanation import ByClass, Explanation, Explanations

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure

_FIRST = 10
"""How many explanations one figure shows."""

_OUTLINE = 1.4
_MOST_BARS, _MOST_PICTURES = 4, 5
"""The most panels in a line."""


def show(explanation: Explanation, top: int | None = 20, **look: Any) -> Figure:
    """Bars with standard errors for texts and rows; the image and its heat map for images.

    `top` is how many of the strongest features have a bar; ``None`` shows all. `look` are fields of `Look`.
    """
    panel = panels.panel(explanation, top, Look(**look))
    figure = new_figure(6.4, _height(panel))
    _draw(figure, panel)
    return figure


def show_all(explanations: Explanations, top: int | None = 5, **look: Any) -> Figure:
    """The first ten explanations one below the other, each as it is alone; images in a grid."""
    require(len(explanations) > 0, "explanations", "at least one", 0)
    if all(e.input.is_picture for e in explanations):
        return _grid(by_input(explanations)[:_FIRST], Look(**look))
    shown = [panels.panel(e, top, Look(**look)) for e in explanations[:_FIRST]]
    heights = [_height(panel) for panel in shown]
    figure = new_figure(6.4, sum(heights))
    parts = figure.subfigures(len(shown), height_ratios=heights, squeeze=False)[:, 0]
    for part, panel in zip(parts, shown, strict=True):
        _draw(part, panel)
    return figure


def show_by_class(found: ByClass, top: int | None = None, **look: Any) -> Figure:
    """Bars of each class on one axis, those of its set outlined; of an image the heat and the set of each."""
    every, e = panels.class_panels(found, top, Look(**look)), found[0]
    pictures = [drawing_of(e.input).pictures(panel) for panel in every]
    figure = _class_pictures(found, every, pictures) if any(pictures) else _class_bars(found, every)
    predicted = say.predicted(e)
    heading = f"{clipped(e.classes[predicted])} ({clipped(say.amount(e, predicted))})"
    title = f"{heading} · {panels.title(found)}, by {clipped(e.method)}"
    figure.suptitle(title, x=0.02, ha="left", fontsize=10, parse_math=False)
    return figure


def _height(panel: Panel) -> float:
    """The height of the figure of one explanation, in inches."""
    drawing = drawing_of(panel.explanation.input)
    return 3.2 if panel.explanation.input.is_picture else drawing.height_of_plot(panel) + _bars_height(panel)


def _bars_height(panel: Panel) -> float:
    return 1.2 + 0.27 * len(panel.shown)


def _draw(figure: Figure | SubFigure, panel: Panel) -> None:
    e, drawing = panel.explanation, drawing_of(panel.explanation.input)
    pictures = drawing.pictures(panel)
    if pictures:
        _draw_pictures(figure, panel, pictures[:2])
        return
    height = drawing.height_of_plot(panel)
    heights = [height, _bars_height(panel)] if height else [1.0]
    *above, axes = figure.subplots(len(heights), height_ratios=heights, squeeze=False)[:, 0]
    for own in above:
        drawing.plot(own, panel)
        own.spines[["top", "right"]].set_visible(False)
        own.tick_params(labelsize=8)
    has_errors = _draw_bars(axes, panel)
    if not say.relative_scores(e).any():
        reach = float(np.abs(e.prediction.values).max()) or 1.0
        axes.set_xlim(-reach, reach)
    bars = " ± standard error" if has_errors else ""
    axes.set_xlabel(f"{_meaning(e)}{bars}", fontsize=9, color=QUIET, parse_math=False)
    figure.axes[0].set_title(_title(e), loc="left", fontsize=10, parse_math=False)
    if e.pertinence is not None:
        add_key(figure, say.directions(e))


def _draw_bars(axes: Any, panel: Panel, outlined: Masks | None = None, longest: int = 32) -> bool:
    """A bar for each feature shown; whether there are standard errors."""
    e, shown = panel.explanation, panel.shown.tolist()
    errors = np.array([say.error_of(e, i) or 0.0 for i in shown])
    axes.barh(
        range(len(shown)),
        e.scores[shown],
        height=0.7,
        color=[SIDES[say.side(e, i)] for i in shown],
        xerr=errors if errors.any() else None,
        edgecolor=LIGHT.ink,
        linewidth=0.0 if outlined is None else np.where(outlined[shown], _OUTLINE, 0.0),
        error_kw={"ecolor": LIGHT.ink, "elinewidth": 1.1},
    )
    values = e.input.value_texts()
    half = longest if outlined is None else longest // 2
    names = [
        clipped(e.features[i], longest) + (f" = {clipped(values[i], half)}" if values else "") for i in shown
    ]
    axes.set_yticks(range(len(shown)), names, parse_math=False)
    tidy(axes, len(shown))
    return bool(errors.any())


def _draw_pictures(figure: Figure | SubFigure, panel: Panel, pictures: tuple[Array, ...]) -> None:
    e = panel.explanation
    for axes, picture in zip(figure.subplots(1, 2), pictures, strict=True):
        _show_picture(axes, picture)
    full = full_colour(say.coloured_scores(e))
    largest = full * float(np.abs(np.nan_to_num(e.scores)).max())
    two_sides = say.has_two_sides(e)
    bar = add_colour_bar(
        figure, largest, _meaning(e), look=panel.look, is_clipped=full < 1, two_sides=two_sides
    )
    if e.pertinence is not None:
        bar.ax.yaxis.set_major_formatter(lambda value, _: f"{abs(value):g}")
        add_key(figure, say.directions(e))
    figure.suptitle(_title(e), x=0.02, ha="left", fontsize=10, parse_math=False)


def _show_picture(axes: Any, picture: Array) -> None:
    """A picture in a thin frame, so that one that is white at its edges has edges."""
    axes.set_axis_on()
    axes.imshow(picture, interpolation="nearest")
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_color(NEUTRAL)


def _grid(inputs: list[Explained], look: Look) -> Figure:
    """In each line an image and its heat maps; two lines of an image and its map stand side by side."""
    methods = max(len(found.explanations) for found in inputs)
    beside = 2 if methods == 1 and len(inputs) > 1 else 1
    lines, width = -(-len(inputs) // beside), beside * (1 + methods)
    figure = new_figure(1.4 + 1.9 * width, 0.4 + 2.1 * lines)
    axes = figure.subplots(lines, width, squeeze=False)
    for own in axes.ravel():
        own.set_axis_off()
    two_sides = any(say.has_two_sides(e) for found in inputs for e in found.explanations)
    for place, found in enumerate(inputs):
        line, first = place // beside, (1 + methods) * (place % beside)
        for column, e in enumerate(found.explanations):
            picture, heat, _ = drawing_of(e.input).pictures(panels.panel(e, look=look))
            _show_picture(axes[line, first], picture)
            _show_picture(axes[line, first + 1 + column], heat)
            title = (
                f"{clipped(e.method, 22)}\n{clipped(e.target_name, 14)} {clipped(say.amount(e, e.target), 8)}"
            )
            axes[line, first + 1 + column].set_title(title, loc="left", fontsize=8, parse_math=False)
        axes[line, first].set_title(clipped(found.name, 22), loc="left", fontsize=8, parse_math=False)
    shares = [say.coloured_scores(e) for found in inputs for e in found.explanations]
    is_clipped = any(full_colour(share) < 1 for share in shares)
    label = "score, each map on a scale of its own"
    bar = add_colour_bar(figure, 1.0, label, look=look, is_clipped=is_clipped, two_sides=two_sides)
    bar.set_ticks([])
    return figure


def _class_bars(found: ByClass, every: list[Panel]) -> Figure:
    lines, beside = _arranged(len(every), _MOST_BARS)
    most = max(len(panel.shown) for panel in every)
    figure = new_figure(1.2 + 2.9 * beside, 0.9 + lines * (0.6 + 0.25 * most))
    same = drawing_of(found[0].input).lists_features
    axes = figure.subplots(lines, beside, sharex=True, sharey=same, squeeze=False).ravel()
    for own, panel in zip(axes, every, strict=False):
        _draw_bars(own, panel, panel.marked, 20)
        name = f"{clipped(panel.name)} {clipped(panel.amount)}"
        own.set_title(name, loc="left", fontsize=9, parse_math=False)
    for unused in axes[len(every) :]:
        unused.set_axis_off()
    bars = "" if found[0].standard_errors is None else " ± standard error"
    add_key(figure, panels.directions(found), f"score{bars} · outlined: {panels.set_text(found)}")
    return figure


def _class_pictures(found: ByClass, every: list[Panel], pictures: list[tuple[Array, ...]]) -> Figure:
    """The image once; in each line the heat of some classes, and their sets below."""
    lines, beside = _arranged(len(every), _MOST_PICTURES)
    figure = new_figure(1.2 + 1.6 * (beside + 1), 0.4 + 3.8 * lines)
    axes = figure.subplots(2 * lines, beside + 1, squeeze=False)
    for own in axes.ravel():
        own.set_axis_off()
    _show_picture(axes[0, 0], pictures[0][0])
    axes[0, 0].set_title(found[0].input.kind, loc="left", fontsize=9)
    for place, (panel, (_, heat, chosen)) in enumerate(zip(every, pictures, strict=True)):
        above, below = axes[2 * (place // beside) :, 1 + place % beside][:2]
        _show_picture(above, heat)
        _show_picture(below, chosen)
        name = f"{clipped(panel.name, 12)} {clipped(panel.amount, 12)}"
        above.set_title(name, loc="left", fontsize=9, parse_math=False)
    axes[1, 1].set_title(panels.set_text(found), loc="left", fontsize=8, color=QUIET)
    largest, is_clipped = panels.largest(found), panels.is_clipped(found)
    add_colour_bar(figure, largest, "score", look=every[0].look, is_clipped=is_clipped)
    return figure


def _arranged(n: int, most: int) -> tuple[int, int]:
    """How many lines `n` panels need, and how many are in each."""
    lines = -(-n // most)
    return lines, -(-n // lines)


def _title(e: Explanation) -> str:
    title = f"{clipped(e.target_name)} ({clipped(say.amount(e, e.target))}) · {clipped(e.method)}"
    nothing = say.says_nothing(e)
    return f"{title}\n{nothing}" if nothing else title


def _meaning(e: Explanation) -> str:
    """What the scores are of."""
    if e.meaning == "membership":
        return "share of sets that hold it"
    return "score" if e.meaning == "attack" else f"score for {clipped(e.target_name)}"
