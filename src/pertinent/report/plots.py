"""Figures for papers and notebooks, made without pyplot: no global state, no display."""

from __future__ import annotations

from functools import partial
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np

from pertinent._optional import optional
from pertinent.control_characters import visible
from pertinent.errors import require
from pertinent.inputs.image import ImageInput
from pertinent.inputs.table import TableInput
from pertinent.report import facts as say
from pertinent.report.colours import LIGHT, NEUTRAL, full_colour
from pertinent.report.pictures import heat_map, original
from pertinent.report.summary import summary
from pertinent.results.evaluation import Evaluation
from pertinent.results.explanation import Explanation, Explanations

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure

_LONGEST_NAME, _LONGEST_LINE = 32, 80
_FIRST = 10
"""How many explanations one figure shows."""
SIDES = {"support": LIGHT.support, "against": LIGHT.against, "plain": NEUTRAL}
QUIET = "#5c626d"
# Okabe & Ito's colours, which are colour-blind safe; the markers differ in black and white, too.
LINES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#1b1d22")
MARKERS = "osD^vPX"


def plot(explanation: Explanation, top: int | None = 20) -> Figure:
    """Bars with standard errors for texts and rows; the image and its heat map for images.

    `top` is how many of the strongest features have a bar; ``None`` shows all.
    """
    figure = new_figure(6.4, _height(explanation, top))
    _draw(figure, explanation, top)
    return figure


def plot_all(explanations: Explanations, top: int | None = 5) -> Figure:
    """The first explanations one below the other, each as `plot` draws it."""
    shown = list(explanations[:_FIRST])
    require(bool(shown), "explanations", "at least one", 0)
    heights = [_height(e, top) for e in shown]
    figure = new_figure(6.4, sum(heights))
    for part, e in zip(
        figure.subfigures(len(shown), height_ratios=heights, squeeze=False), shown, strict=True
    ):
        _draw(part[0], e, top)
    return figure


def _height(e: Explanation, top: int | None) -> float:
    """The height of the figure of one explanation, in inches."""
    return 3.2 if isinstance(e.input, ImageInput) else 1.2 + 0.27 * len(say.strongest(e, top))


def _draw(figure: Figure | SubFigure, e: Explanation, top: int | None) -> None:
    if isinstance(e.input, ImageInput):
        _draw_image(figure, e, e.input)
    else:
        _draw_bars(figure, e, top)


def plot_evaluation(evaluation: Evaluation) -> Figure:
    """A panel for each metric: the mean of each method and its confidence interval."""
    metrics, methods = list(evaluation.better), evaluation.methods
    require(bool(methods), "evaluation", "one that measured something", evaluation.rows)
    found = summary(evaluation)
    figure = new_figure(1.8 + 3.2 * len(metrics), 1.3 + 0.38 * len(methods))
    panels = figure.subplots(1, len(metrics), sharey=True, squeeze=False)[0]
    for axes, metric in zip(panels, metrics, strict=True):
        for place, method in enumerate(methods):
            cell = found.cells.get((method, metric))
            if cell is None:
                continue
            i = cell.interval
            bounds = [[i.mean - i.low], [i.high - i.mean]] if cell.has_bounds else None
            axes.barh(place, i.mean, height=0.6, color=LIGHT.support if cell.best else NEUTRAL)
            axes.errorbar(i.mean, place, xerr=bounds, fmt="o", ms=3.5, color=LIGHT.ink, lw=1.3)
        tidy(axes, len(methods))
        better = evaluation.better[metric]
        axes.set_title(f"{visible(metric)} {say.arrow(better)}", loc="left", fontsize=10, parse_math=False)
        axes.set_xlabel(f"{better} is better", fontsize=9, color=QUIET)
    panels[0].set_yticks(range(len(methods)), [*map(visible, methods)], parse_math=False)
    figure.supxlabel(found.caption, fontsize=8, color=QUIET)
    return figure


def _draw_bars(figure: Figure | SubFigure, e: Explanation, top: int | None) -> None:
    shown = say.strongest(e, top).tolist()
    errors = np.array([say.error_of(e, i) or 0.0 for i in shown])
    values = e.input.shown() if isinstance(e.input, TableInput) else None
    scores = e.scores[shown]
    axes = figure.subplots()
    axes.barh(
        range(len(shown)),
        scores,
        height=0.7,
        color=[SIDES[say.side(e, i)] for i in shown],
        xerr=errors if errors.any() else None,
        error_kw={"ecolor": LIGHT.ink, "elinewidth": 1.1},
    )
    names = [clipped(e.features[i]) + (f" = {clipped(values[i])}" if values else "") for i in shown]
    axes.set_yticks(range(len(shown)), names, parse_math=False)
    tidy(axes, len(shown))
    if not say.relative_scores(e).any():
        reach = float(np.abs(e.prediction).max()) or 1.0
        axes.set_xlim(-reach, reach)
    meaning = _meaning(e)
    bars = " ± standard error" if errors.any() else ""
    axes.set_xlabel(f"{meaning}{bars}", fontsize=9, color=QUIET, parse_math=False)
    axes.set_title(_title(e), loc="left", fontsize=10, parse_math=False)
    if e.pertinence is not None:
        add_key(figure, say.directions(e))


def _draw_image(figure: Figure | SubFigure, e: Explanation, input: ImageInput) -> None:
    for axes, picture in zip(figure.subplots(1, 2), (original(input), heat_map(e)), strict=True):
        axes.imshow(picture, interpolation="nearest")
        axes.set_axis_off()
    full = full_colour(say.coloured_scores(e))
    largest = full * float(np.abs(np.nan_to_num(e.scores)).max())
    bar = add_colour_bar(figure, largest, _meaning(e), is_clipped=full < 1, two_sides=say.has_two_sides(e))
    if e.pertinence is not None:
        bar.ax.yaxis.set_major_formatter(lambda value, _: f"{abs(value):g}")
        add_key(figure, say.directions(e))
    figure.suptitle(_title(e), x=0.02, ha="left", fontsize=10, parse_math=False)


def add_colour_bar(
    figure: Figure | SubFigure, largest: float, label: str, *, is_clipped: bool, two_sides: bool = True
) -> Any:
    """Draw the scale of heat maps: to the largest score, from minus it or, with one side, from 0."""
    ends = [LIGHT.against, LIGHT.ground, LIGHT.support][0 if two_sides else 1 :]
    scale = optional("matplotlib.colors").LinearSegmentedColormap.from_list("pertinent", ends)
    norm = optional("matplotlib.colors").Normalize(-(largest or 1.0) if two_sides else 0.0, largest or 1.0)
    mappable = optional("matplotlib.cm").ScalarMappable(norm, scale)
    beyond = ("both" if two_sides else "max") if is_clipped else "neither"
    bar = figure.colorbar(mappable, ax=figure.axes, shrink=0.7, aspect=18, pad=0.03, extend=beyond)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=8, length=2)
    bar.set_label(f"{label}{', clipped' if is_clipped else ''}", fontsize=9, color=QUIET, parse_math=False)
    return bar


def new_figure(width: float, height: float) -> Figure:
    """An empty figure that a notebook shows without pyplot."""
    figure: Figure = optional("matplotlib.figure").Figure(figsize=(width, height), layout="constrained")
    # Notebooks show figures automatically only if pyplot was set up.
    figure._repr_png_ = partial(_png, figure)  # type: ignore[attr-defined]
    return figure


def _png(figure: Figure) -> bytes:
    data = BytesIO()
    figure.savefig(data, format="png", dpi=110)
    return data.getvalue()


def add_key(figure: Figure | SubFigure, meanings: tuple[str, str], note: str | None = None) -> None:
    """What the two colours mean, below the axes, under a note."""
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
    """The first line on top, a line at zero, and no frame."""
    axes.set_ylim(n - 0.4, -0.6)
    axes.axvline(0, color=QUIET, lw=0.8)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0, labelsize=9)
    axes.tick_params(axis="x", labelsize=8)


def _title(e: Explanation) -> str:
    title = f"{clipped(e.target_name)} ({clipped(say.amount(e, e.target))}) · {clipped(e.method)}"
    nothing = say.says_nothing(e)
    return f"{title}\n{nothing}" if nothing else title


def clipped(name: str, most: int = _LONGEST_NAME) -> str:
    """A name short enough for an axis, its control characters visible."""
    name = visible(say.on_one_line(name))
    return name if len(name) <= most else name[: most - 1] + "…"


def _meaning(e: Explanation) -> str:
    """What the scores are of."""
    if e.meaning == "membership":
        return "share of sets that hold it"
    return "score" if e.meaning == "attack" else f"score for {clipped(e.target_name)}"
