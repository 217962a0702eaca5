"""Draw Figures 2, 5, 6 and 13.

python experiments/hsieh2021/figures.py --results RESULTS --data DATA
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import conclusions
import numpy as np
from criteria import REFERENCES, relevant_sets
from records import Records, interval
from rows import MAGNITUDE, SIZES
from run import chosen_images, file_name

from pertinent.array_types import Array, Floats, Masks
from pertinent.report.plots import LINES, MARKERS, QUIET, new_figure

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
SHOWN = 0.2
LIGHTER, DARKER = np.array([0.0, 0.45, 0.75]), np.array([0.9, 0.35, 0.0])
"""Of relevant pixels: those that an attack makes lighter (pertinent negative) and darker (positive)."""


def scores_of(folder: Path, name: str) -> Floats:
    """The scores (images, pixels) of a row."""
    scores: Floats = np.load(folder / f"{file_name(name.removesuffix(MAGNITUDE))}.npz")["scores"]
    return np.abs(scores) if name.endswith(MAGNITUDE) else scores


def coloured(image: Array, relevant: Masks, lighter: Masks) -> Array:
    """A grey image with the relevant pixels in two colours."""
    grey = np.repeat(0.75 * image.reshape(28, 28, 1), 3, axis=2)
    colours = np.where(lighter.reshape(28, 28, 1), LIGHTER, DARKER)
    return np.where(relevant.reshape(28, 28, 1), 0.25 * grey + 0.75 * colours, grey)


def figure_2(folder: Path, images: Array) -> Any:
    """The top 20% of pixels by method: bright pixels in one colour, dark ones in the other."""
    count = len(images)
    figure = new_figure(1.05 * (len(PICTURED) + 1), 1.12 * count + 0.3)
    panels = figure.subplots(count, len(PICTURED) + 1, squeeze=False)
    place = SIZES.index(SHOWN)
    for column, name in enumerate(PICTURED, start=1):
        sets = relevant_sets(scores_of(folder, name))[:, place]
        for row in range(count):
            picture = coloured(images[row], sets[row], images[row].ravel() < 0.5)
            panels[row, column].imshow(picture, interpolation="nearest")
        panels[0, column].set_title(title(name), fontsize=7)
    for row in range(count):
        panels[row, 0].imshow(images[row].reshape(28, 28), cmap="gray", interpolation="nearest")
    for axes in panels.ravel():
        axes.set_axis_off()
    return figure


def title(name: str) -> str:
    """A name in lines short enough for a column."""
    lines = name.split(", ")
    return ",\n".join(line if len(line) < 15 else line.replace("-", "-\n", 1) for line in lines)


def figure_5(folder: Path) -> Any:
    """Targeted explanations: the image, then the relevant pixels towards each of two other digits."""
    found = np.load(folder / "targeted.npz")
    digits = list(dict.fromkeys(found["digits"].tolist()))
    figure = new_figure(1.2 * 3 * len(digits), 1.6)
    panels = figure.subplots(1, 3 * len(digits))
    for number, digit in enumerate(digits):
        own = np.flatnonzero(found["digits"] == digit)
        image = found["images"][own[0]]
        panels[3 * number].imshow(image.reshape(28, 28), cmap="gray", interpolation="nearest")
        panels[3 * number].set_title(f"{digit}", fontsize=9)
        for place, i in enumerate(own, start=1):
            relevant = relevant_sets(found["scores"][i][None])[0, SIZES.index(SHOWN)]
            picture = coloured(image, relevant, found["changes"][i].ravel() > 0)
            panels[3 * number + place].imshow(picture, interpolation="nearest")
            panels[3 * number + place].set_title(f"not {found['targets'][i]}", fontsize=9)
    for axes in panels:
        axes.set_axis_off()
    return figure


def figure_6(records: Records, which: Sequence[str] = ("mnist", "fashion-mnist")) -> Any:
    """Radii over the size of the relevant set."""
    figure = new_figure(9.6, 3.4 * len(which))
    panels = figure.subplots(len(which), 2, squeeze=False)
    for row, data in enumerate(which):
        for axes, metric in zip(panels[row], (conclusions.IRRELEVANT, conclusions.RELEVANT), strict=True):
            for number, name in enumerate(CURVES):
                found = records.values(data, name, metric)
                if found is None:
                    continue
                points = [interval(column) for column in found.T]
                x = 100 * np.array(SIZES) + 0.12 * (number - len(CURVES) / 2)
                mean, low, high = (
                    np.array([getattr(p, of) for p in points]) for of in ("mean", "low", "high")
                )
                style = {"color": COLOURS[number], "marker": MARKERS[number % len(MARKERS)]}
                axes.errorbar(
                    x,
                    mean,
                    yerr=np.stack([mean - low, high - mean]),
                    ms=4,
                    lw=1.3,
                    elinewidth=0.7,
                    label=name,
                    **style,
                )
            axes.set_title(f"{data}: attacks on {metric.rpartition(' ')[2]} pixels", loc="left", fontsize=10)
            axes.set_xlabel("relevant pixels, %", fontsize=9, color=QUIET)
            axes.set_ylabel("L2 radius", fontsize=9, color=QUIET)
            tidy(axes)
    labels = dict(zip(*reversed(panels[0, 0].get_legend_handles_labels()), strict=True))
    figure.legend(labels.values(), labels.keys(), fontsize=8, frameon=False, loc="outside right center")
    return figure


def figure_13(records: Records) -> Any:
    """The place of each method among the paper's, by reference value."""
    figure = new_figure(9.6, 3.4)
    panels = figure.subplots(1, 2, sharey=True)
    for axes, kind in zip(panels, ("insertion", "deletion"), strict=True):
        for number, name in enumerate(CURVES):
            at = [
                conclusions.place(records, "mnist", name, f"{kind} logit", reference=reference)
                for reference in REFERENCES
            ]
            if None in at:
                continue
            shift = 0.03 * (number - len(CURVES) / 2)
            y = [own[0] + shift for own in at if own is not None]
            axes.plot(
                y, color=COLOURS[number], marker=MARKERS[number % len(MARKERS)], ms=5, lw=1.2, label=name
            )
        axes.set_xticks(range(len(REFERENCES)), [conclusions.reference_name(own) for own in REFERENCES])
        axes.set_title(f"mnist: {kind}", loc="left", fontsize=10)
        axes.set_xlabel("reference value", fontsize=9, color=QUIET)
        tidy(axes)
    panels[0].set_ylabel("place", fontsize=9, color=QUIET)
    panels[0].invert_yaxis()
    labels = dict(zip(*reversed(panels[0].get_legend_handles_labels()), strict=True))
    figure.legend(labels.values(), labels.keys(), fontsize=8, frameon=False, loc="outside right center")
    return figure


def tidy(axes: Any) -> None:
    """No frame, small numbers."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8)


def main() -> None:
    """Draw each figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--images", type=int, default=5, help="in figure 2, at most those of run.py")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    arguments = parser.parse_args()
    records = Records(arguments.results, "**/*.jsonl")
    folder = arguments.results / "mnist"
    figures = {
        "figure2": figure_2(folder, chosen_images(arguments.data / "mnist", arguments.images)),
        "figure5": figure_5(folder),
        "figure6": figure_6(records),
        "figure13": figure_13(records),
    }
    for name, figure in figures.items():
        figure.savefig(arguments.out / f"{name}.png", dpi=100)
        print(f"{name}.png", flush=True)


if __name__ == "__main__":
    main()
