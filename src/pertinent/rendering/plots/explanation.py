"""Figures of one or several explanations, and of several classes side by side."""

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
"""Largest number of explanations per figure."""

_OUTLINE = 1.4
_MOST_BARS, _MOST_PICTURES = 4, 5
"""Largest number of panels per line."""


def show(explanation: Explanation, top: int | None = 20, **look: Any) -> Figure:
    """Return bars with standard errors for texts and rows, or the image and its heat map.

    `top` is the number of strongest features with a bar; ``None`` shows all. `look` are fields of `Look`.
    """
    panel = panels.panel(explanation, top, Look(**look))
    figure = new_figure(6.4, _height(panel))
    _draw(figure, panel)
    return figure


def show_all(explanations: Explanations, top: int | None = 5, **look: Any) -> Figure:
    """Return the first ten explanations in a column, or images in a grid."""
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


def show_by_class(classes: ByClass, top: int | None = None, **look: Any) -> Figure:
    """Return bars for each class on a shared axis, or a heat map and a set for each class of an image.

    The bars of the features in a class's set are outlined.
    """
    class_panels, e = panels.class_panels(classes, top, Look(**look)), classes[0]
    pictures = [drawing_of(e.input).pictures(panel) for panel in class_panels]
    if any(pictures):
        figure = _class_pictures(classes, class_panels, pictures)
    else:
        figure = _class_bars(classes, class_panels)
    predicted = say.predicted(e)
    heading = f"{clipped(e.classes[predicted])} ({clipped(say.amount(e, predicted))})"
    title = f"{heading} · {panels.title(classes)}, by {clipped(e.method)}"
    figure.suptitle(title, x=0.02, ha="left", fontsize=10, parse_math=False)
    return figure


def _height(panel: Panel) -> float:
    """Return the height of the figure of one explanation, in inches."""
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
    for input_axes in above:
        drawing.plot(input_axes, panel)
        input_axes.spines[["top", "right"]].set_visible(False)
        input_axes.tick_params(labelsize=8)
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
    """Draw a bar for each shown feature; return whether any has a standard error."""
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
    """Draw a picture in a thin frame that marks its edges on a white background."""
    axes.set_axis_on()
    axes.imshow(picture, interpolation="nearest")
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_color(NEUTRAL)


def _grid(inputs: list[Explained], look: Look) -> Figure:
    """Return rows of an image with its heat maps; images with a single map fill two columns."""
    methods = max(len(explained.explanations) for explained in inputs)
    columns = 2 if methods == 1 and len(inputs) > 1 else 1
    lines, width = -(-len(inputs) // columns), columns * (1 + methods)
    figure = new_figure(1.4 + 1.9 * width, 0.4 + 2.1 * lines)
    axes = figure.subplots(lines, width, squeeze=False)
    for unused in axes.ravel():
        unused.set_axis_off()
    every = [e for explained in inputs for e in explained.explanations]
    for i, explained in enumerate(inputs):
        line, first = i // columns, (1 + methods) * (i % columns)
        for column, e in enumerate(explained.explanations):
            picture, heat, _ = drawing_of(e.input).pictures(panels.panel(e, look=look))
            _show_picture(axes[line, first], picture)
            _show_picture(axes[line, first + 1 + column], heat)
            title = (
                f"{clipped(e.method, 22)}\n{clipped(e.target_name, 14)} {clipped(say.amount(e, e.target), 8)}"
            )
            axes[line, first + 1 + column].set_title(title, loc="left", fontsize=8, parse_math=False)
        axes[line, first].set_title(clipped(explained.name, 22), loc="left", fontsize=8, parse_math=False)
    is_clipped = any(full_colour(say.coloured_scores(e)) < 1 for e in every)
    two_sides = any(map(say.has_two_sides, every))
    label = "score, scaled for each map"
    bar = add_colour_bar(figure, 1.0, label, look=look, is_clipped=is_clipped, two_sides=two_sides)
    bar.set_ticks([])
    return figure


def _class_bars(classes: ByClass, class_panels: list[Panel]) -> Figure:
    lines, columns = _grid_shape(len(class_panels), _MOST_BARS)
    most = max(len(panel.shown) for panel in class_panels)
    figure = new_figure(1.2 + 2.9 * columns, 0.9 + lines * (0.6 + 0.25 * most))
    same = drawing_of(classes[0].input).lists_features
    grid = figure.subplots(lines, columns, sharex=True, sharey=same, squeeze=False).ravel()
    for axes, panel in zip(grid, class_panels, strict=False):
        _draw_bars(axes, panel, panel.marked, 20)
        name = f"{clipped(panel.name)} {clipped(panel.amount)}"
        axes.set_title(name, loc="left", fontsize=9, parse_math=False)
    for unused in grid[len(class_panels) :]:
        unused.set_axis_off()
    bars = "" if classes[0].standard_errors is None else " ± standard error"
    add_key(figure, panels.directions(classes), f"score{bars} · outlined: {panels.set_text(classes)}")
    return figure


def _class_pictures(classes: ByClass, class_panels: list[Panel], pictures: list[tuple[Array, ...]]) -> Figure:
    """Return the image, and rows of class heat maps with the chosen sets below."""
    lines, columns = _grid_shape(len(class_panels), _MOST_PICTURES)
    figure = new_figure(1.2 + 1.6 * (columns + 1), 0.4 + 3.8 * lines)
    axes = figure.subplots(2 * lines, columns + 1, squeeze=False)
    for unused in axes.ravel():
        unused.set_axis_off()
    _show_picture(axes[0, 0], pictures[0][0])
    axes[0, 0].set_title(classes[0].input.kind, loc="left", fontsize=9)
    for i, (panel, (_, heat, chosen)) in enumerate(zip(class_panels, pictures, strict=True)):
        above, below = axes[2 * (i // columns) :, 1 + i % columns][:2]
        _show_picture(above, heat)
        _show_picture(below, chosen)
        name = f"{clipped(panel.name, 12)} {clipped(panel.amount, 12)}"
        above.set_title(name, loc="left", fontsize=9, parse_math=False)
    axes[1, 1].set_title(panels.set_text(classes), loc="left", fontsize=8, color=QUIET)
    largest, is_clipped = panels.largest(classes), panels.is_clipped(classes)
    add_colour_bar(figure, largest, "score", look=class_panels[0].look, is_clipped=is_clipped)
    return figure


def _grid_shape(n: int, most: int) -> tuple[int, int]:
    """Return the numbers of rows and columns for `n` panels, with at most `most` columns."""
    lines = -(-n // most)
    return lines, -(-n // lines)


def _title(e: Explanation) -> str:
    title = f"{clipped(e.target_name)} ({clipped(say.amount(e, e.target))}) · {clipped(e.method)}"
    reason = say.uninformative_reason(e)
    return f"{title}\n{reason}" if reason else title


def _meaning(e: Explanation) -> str:
    if e.meaning == "membership":
        return "share of sets with the feature"
    return "score" if e.meaning == "attack" else f"score for {clipped(e.target_name)}"
