"""Figures: curves over the share of relevant pixels or the number of words, places, and pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.hsieh2021.comparisons import IRRELEVANT, RELEVANT, Experiment, reference_name
from experiments.hsieh2021.criteria import REFERENCES, SHOWN, relevant_sets
from experiments.hsieh2021.images import file_name
from experiments.hsieh2021.records import Records
from experiments.hsieh2021.rows import MAGNITUDE, SIZES
from experiments.hsieh2021.text_tables import CRITERIA, every_model
from experiments.shared.figures import draw_interval_curve, outside_legend, tidy
from experiments.shared.intervals import interval
from pertinent.array_types import Array, Floats, Masks
from pertinent.rendering.plots import LINES, MARKERS, QUIET, new_figure

CURVES = (
    "random",
    "gradient" + MAGNITUDE,
    "integrated-gradients",
    "expected-gradients",
    "shapley-sampling",
    "meaningful-perturbation",
    "counterfactual",
    "greedy-as",
    "greedy-as, relevant",
    "thompson-search",
)
COLOURS = (QUIET, *LINES[:5], "#8c564b", LINES[6], LINES[5], "#bcbd22")
TEXT_CURVES = (
    "random",
    "gradient",
    "integrated-gradients",
    "expected-gradients",
    "shapley-sampling",
    "counterfactual",
    "greedy-as",
    "greedy-as, relevant",
)
TEXT_COLOURS = (QUIET, *LINES[:4], "#8c564b", LINES[6], LINES[5])
PICTURED = (
    "gradient" + MAGNITUDE,
    "integrated-gradients",
    "expected-gradients",
    "shapley-sampling",
    "leave-one-out",
    "meaningful-perturbation",
    "counterfactual",
    "greedy-as",
    "greedy-as, relevant",
    "thompson-search",
)
VARIANTS = tuple(
    name + kind for kind in ("", ", relevant") for name in ("greedy", "one-step-banzhaf", "greedy-as")
)
"""Greedy-AS and its variants (Table 3), by both criteria."""
LIGHTER, DARKER = np.array([0.0, 0.45, 0.75]), np.array([0.9, 0.35, 0.0])
"""Colours of relevant pixels that an attack makes lighter (pertinent negative) and darker (positive)."""


def styles(names: Sequence[str], colours: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return the colour and the marker of each row."""
    return {
        name: {"color": colour, "marker": MARKERS[i % len(MARKERS)]}
        for i, (name, colour) in enumerate(zip(names, colours, strict=True))
    }


def radii(names: Sequence[str], records: Records) -> Any:
    """Return radii over the size of the relevant set, a line of panels for each set of images."""
    figure = new_figure(9.6, 3.4 * len(names))
    panels = figure.subplots(len(names), 2, squeeze=False)
    for line, name in zip(panels, names, strict=True):
        for axes, metric in zip(line, (IRRELEVANT, RELEVANT), strict=True):
            draw_curves(axes, curves_of(records, name, metric))
            features = "squares" if name == "photographs" else "pixels"
            title = f"{name}: attacks on {metric.rpartition(' ')[2]} {features}"
            axes.set_title(title, loc="left", fontsize=10)
            axes.set_ylabel("L2 radius", fontsize=9, color=QUIET)
    outside_legend(figure)
    return figure


def logits(name: str, records: Records) -> Any:
    """Return logits by insertion (above) and deletion (below) over the size of the relevant set."""
    figure = new_figure(2.6 * len(REFERENCES) + 1.6, 5.6)
    panels = figure.subplots(2, len(REFERENCES), squeeze=False)
    logit = Experiment(records, name).main_logit
    for line, kind in zip(panels, ("insertion", "deletion"), strict=True):
        for axes, reference in zip(line, REFERENCES, strict=True):
            draw_curves(axes, curves_of(records, name, kind + logit, reference=reference))
            axes.set_title(f"{kind}, {reference_name(reference)}", loc="left", fontsize=10)
        line[0].set_ylabel(logit.strip(), fontsize=9, color=QUIET)
    outside_legend(figure)
    return figure


def curves_of(records: Records, name: str, metric: str, **settings: object) -> dict[str, Floats]:
    """Return the curves (images, sizes) of each row, of the images that all of them have.

    Rows without signs, such as gradients of squares, have no suffix in the records.
    """
    found = {}
    for row in CURVES:
        values = records.values(name, row, metric, **settings)
        plain = row.removesuffix(MAGNITUDE)
        found[row] = records.values(name, plain, metric, **settings) if values is None else values
    curves = {row: values for row, values in found.items() if values is not None and values.ndim == 2}
    n = min((len(values) for values in curves.values()), default=0)
    return {row: values[:n] for row, values in curves.items()}


def draw_curves(axes: Any, curves: Mapping[str, Floats]) -> None:
    """Draw the mean over images of each row's curve, with its 95% interval."""
    every = styles(CURVES, COLOURS)
    for number, (name, values) in enumerate(curves.items()):
        points = [point for column in values.T if (point := interval(column)) is not None]
        x = 100 * np.array(SIZES) + 0.12 * (number - len(curves) / 2)
        draw_interval_curve(axes, x, points, ms=4, lw=1.3, elinewidth=0.7, label=name, **every[name])
    axes.set_xlabel("relevant, %", fontsize=9, color=QUIET)
    tidy(axes)


def places(name: str, records: Records) -> Any:
    """Return the place of each method among the paper's, by reference value."""
    own, figure = Experiment(records, name), new_figure(9.6, 3.4)
    panels = figure.subplots(1, 2, sharey=True)
    for axes, kind in zip(panels, ("insertion", "deletion"), strict=True):
        for number, (row, style) in enumerate(styles(CURVES, COLOURS).items()):
            places = [
                own.place(row, kind + own.main_logit, reference=reference).partition(" of ")[0]
                for reference in REFERENCES
            ]
            if all(place.isdigit() for place in places):
                shift = 0.03 * (number - len(CURVES) / 2)
                axes.plot([int(place) + shift for place in places], ms=5, lw=1.2, label=row, **style)
        axes.set_xticks(range(len(REFERENCES)), list(map(reference_name, REFERENCES)))
        axes.set_title(f"{name}: {kind}", loc="left", fontsize=10)
        axes.set_xlabel("reference value", fontsize=9, color=QUIET)
        tidy(axes)
    panels[0].set_ylabel("place", fontsize=9, color=QUIET)
    panels[0].invert_yaxis()
    outside_legend(figure)
    return figure


def text_curves(records: Records) -> Any:
    """Return the criteria of texts over one to five words (Figures 8, 12 and 21)."""
    models = every_model(records)
    figure = new_figure(16, 2.6 * len(models))
    panels = figure.subplots(len(models), len(CRITERIA), squeeze=False)
    for line, own in zip(panels, models, strict=True):
        for axes, (criterion, (title, sign, _)) in zip(line, CRITERIA.items(), strict=True):
            for name, style in styles(TEXT_CURVES, TEXT_COLOURS).items():
                curves = own.curves(name, criterion)
                points = [] if curves is None else [interval(column) for column in curves.T]
                y = [point.mean for point in points if point is not None]
                if y:
                    axes.plot(np.arange(1, 6), y, ms=4, lw=1.2, label=name, **style)
            axes.set_title(f"{title} {'↑' if sign > 0 else '↓'}", loc="left", fontsize=9)
            axes.set_xticks(range(1, 6))
            tidy(axes)
        line[0].set_ylabel(own.name.replace(", ", ",\n"), fontsize=9, color=QUIET)
    for axes in panels[-1]:
        axes.set_xlabel("first words", fontsize=9, color=QUIET)
    outside_legend(figure)
    return figure


def scores_file(folder: Path, name: str) -> Path:
    """Return the file with the scores of a row."""
    return folder / f"{file_name(name.removesuffix(MAGNITUDE))}.npz"


def scores_of(folder: Path, name: str) -> Floats:
    """Return the scores (images, pixels) of a row."""
    scores: Floats = np.load(scores_file(folder, name))["scores"]
    return np.abs(scores) if name.endswith(MAGNITUDE) else scores


def coloured(image: Array, relevant: Masks, lighter: Masks) -> Array:
    """Return a grey image with the relevant pixels in two colours."""
    grey = np.repeat(0.75 * image.reshape(28, 28, 1), 3, axis=2)
    colours = np.where(lighter.reshape(28, 28, 1), LIGHTER, DARKER)
    return np.where(relevant.reshape(28, 28, 1), 0.25 * grey + 0.75 * colours, grey)


def pictures(folder: Path, images: Array, names: Sequence[str]) -> Any:
    """Return the top 20% of pixels of the methods that were run, bright and dark ones in two colours."""
    names = [name for name in names if scores_file(folder, name).exists()]
    figure = new_figure(1.05 * (len(names) + 1), 1.12 * len(images) + 0.3)
    panels = figure.subplots(len(images), len(names) + 1, squeeze=False)
    for column, name in enumerate(names, start=1):
        sets = relevant_sets(scores_of(folder, name))[:, SIZES.index(SHOWN)]
        for row, image in enumerate(images):
            picture = coloured(image, sets[row], image.ravel() < 0.5)
            panels[row, column].imshow(picture, interpolation="nearest")
        panels[0, column].set_title(title(name), fontsize=7)
    for row, image in enumerate(images):
        panels[row, 0].imshow(image.reshape(28, 28), cmap="gray", interpolation="nearest")
    for axes in panels.ravel():
        axes.set_axis_off()
    return figure


def title(name: str) -> str:
    """Return a name in lines short enough for a column."""
    lines = name.split(", ")
    return ",\n".join(line if len(line) < 15 else line.replace("-", "-\n", 1) for line in lines)


def targeted(folder: Path) -> Any:
    """Return targeted explanations: the image, then the relevant pixels towards each of two digits."""
    if not (folder / "targeted.npz").is_file():
        return None
    stored = np.load(folder / "targeted.npz")
    digits = list(dict.fromkeys(stored["digits"].tolist()))
    figure = new_figure(1.2 * 3 * len(digits), 1.6)
    panels = figure.subplots(1, 3 * len(digits))
    for number, digit in enumerate(digits):
        indices = np.flatnonzero(stored["digits"] == digit)
        image = stored["images"][indices[0]]
        panels[3 * number].imshow(image.reshape(28, 28), cmap="gray", interpolation="nearest")
        panels[3 * number].set_title(f"{digit}", fontsize=9)
        for axes, i in zip(panels[3 * number + 1 :], indices, strict=False):
            relevant = relevant_sets(stored["scores"][i][None])[0, SIZES.index(SHOWN)]
            picture = coloured(image, relevant, stored["changes"][i].ravel() > 0)
            axes.imshow(picture, interpolation="nearest")
            axes.set_title(f"not {stored['targets'][i]}", fontsize=9)
    for axes in panels:
        axes.set_axis_off()
    return figure
