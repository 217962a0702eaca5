"""Draw Figures 2, 5, 6, 9, 13, and 14 with 10 and 15; of photographs Figures 7, and 16 with 11 and 17.

python experiments/hsieh2021/figures.py --results RESULTS --data DATA
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import curve_figures
import numpy as np
from criteria import SHOWN, relevant_sets
from records import Records
from rows import MAGNITUDE, SIZES
from run import chosen_images, file_name

from pertinent.array_types import Array, Floats, Masks
from pertinent.rendering.plots import new_figure

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
"""Greedy-AS and what lacks one of its parts (Table 3), by both criteria."""
LIGHTER, DARKER = np.array([0.0, 0.45, 0.75]), np.array([0.9, 0.35, 0.0])
"""Of relevant pixels: those that an attack makes lighter (pertinent negative) and darker (positive)."""


def scores_file(folder: Path, name: str) -> Path:
    """Where the scores of a row are."""
    return folder / f"{file_name(name.removesuffix(MAGNITUDE))}.npz"


def scores_of(folder: Path, name: str) -> Floats:
    """The scores (images, pixels) of a row."""
    scores: Floats = np.load(scores_file(folder, name))["scores"]
    return np.abs(scores) if name.endswith(MAGNITUDE) else scores


def coloured(image: Array, relevant: Masks, lighter: Masks) -> Array:
    """A grey image with the relevant pixels in two colours."""
    grey = np.repeat(0.75 * image.reshape(28, 28, 1), 3, axis=2)
    colours = np.where(lighter.reshape(28, 28, 1), LIGHTER, DARKER)
    return np.where(relevant.reshape(28, 28, 1), 0.25 * grey + 0.75 * colours, grey)


def pictures(folder: Path, images: Array, names: Sequence[str]) -> Any:
    """The top 20% of pixels of the methods that were run: bright ones in one colour, dark in the other."""
    names = [name for name in names if scores_file(folder, name).exists()]
    count = len(images)
    figure = new_figure(1.05 * (len(names) + 1), 1.12 * count + 0.3)
    panels = figure.subplots(count, len(names) + 1, squeeze=False)
    place = SIZES.index(SHOWN)
    for column, name in enumerate(names, start=1):
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


def makers(results: Path, data: Path, count: int) -> dict[str, Callable[[], Any]]:
    """A function that draws each figure, by the figure's name."""
    records = Records(results, "**/*.jsonl")
    folder = results / "mnist"
    images = chosen_images(data / "mnist", count)
    clothes = partial(chosen_images, data / "fashion_mnist", count)
    photographs = "photographs-20" if records.methods("photographs-20") else "photographs"
    return {
        "figure2": partial(pictures, folder, images, PICTURED),
        "figure5": partial(figure_5, folder),
        "figure6": partial(curve_figures.radii, records, ("mnist", "fashion-mnist")),
        "figure9": partial(pictures, folder, images, VARIANTS),
        "fashion": partial(curve_figures.radii, records, ("fashion-mnist",)),
        "fashion9": lambda: pictures(results / "fashion-mnist", clothes(), VARIANTS),
        "figure13": partial(curve_figures.places, records, "mnist"),
        "figure14": partial(curve_figures.logits, records, "mnist"),
        "figure7": partial(curve_figures.radii, records, ("photographs",)),
        "figure16": partial(curve_figures.logits, records, photographs),
    }


def main() -> None:
    """Draw the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--images", type=int, default=5, help="in pictures, at most those of run.py")
    parser.add_argument("--figures", nargs="+", metavar="NAME", help="such as figure9, if not all")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    arguments = parser.parse_args()
    every = makers(arguments.results, arguments.data, arguments.images)
    for name in arguments.figures or every:
        every[name]().savefig(arguments.out / f"{name}.png", dpi=100)
        print(f"{name}.png", flush=True)


if __name__ == "__main__":
    main()
