"""Draw photographs with the squares that each method finds most relevant.

python experiments/hsieh2021/photo_figure.py --results RESULTS/photographs --photographs DIR
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from photo_model import photographs
from run import file_name

from pertinent.array_types import Array, Floats, Masks
from pertinent.explainers.base import n_kept
from pertinent.inputs.image import image_input
from pertinent.rendering.plots import new_figure

TOP = 0.2
"""The share of squares that is shown."""
PICTURED = (
    "gradient",
    "integrated-gradients",
    "expected-gradients",
    "shapley-sampling",
    "leave-one-out",
    "meaningful-perturbation",
    "counterfactual",
    "greedy-as",
    "greedy-as, relevant",
)


def top_squares(scores: Floats, labels: Array) -> Masks:
    """The pixels (height, width) of the squares with the largest scores."""
    chosen = np.argsort(-scores, kind="stable")[: n_kept(TOP, len(scores))]
    return np.asarray(np.isin(labels, chosen))


def draw(images: list[Array], names: list[str], scores: dict[str, Floats], patch: int) -> Any:
    """A row for each photograph, a column for each method; what is not relevant is dimmed."""
    figure = new_figure(1.3 * (1 + len(scores)), 1.4 * len(images))
    panels = figure.subplots(len(images), 1 + len(scores), squeeze=False)
    for number, (line, pixels, name) in enumerate(zip(panels, images, names, strict=True)):
        labels = image_input(pixels, f"patches:{patch}").labels
        line[0].imshow(np.moveaxis(pixels, 0, -1))
        line[0].set_title(name, fontsize=7)
        for axes, (method, several) in zip(line[1:], scores.items(), strict=True):
            top = top_squares(several[number], labels)
            axes.imshow(np.moveaxis(np.where(top, pixels, 0.8 + 0.2 * pixels), 0, -1))
            if number == 0:
                axes.set_title(method.replace("-", "-\n", 1), fontsize=7)
    for axes in panels.flat:
        axes.set_axis_off()
    return figure


def main() -> None:
    """Draw the first photographs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--photographs", type=Path, required=True)
    parser.add_argument("--side", type=int, default=224)
    parser.add_argument("--patch", type=int, default=32)
    parser.add_argument("--n", type=int, default=6)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "photographs.jpg")
    arguments = parser.parse_args()
    run = json.loads((arguments.results / "photographs.json").read_text())
    shown = run["explained"][: arguments.n]
    every = photographs(arguments.photographs, arguments.side)
    files = {name: arguments.results / f"{file_name(name)}.npz" for name in PICTURED}
    scores: dict[str, Floats] = {
        name: np.load(file)["scores"] for name, file in files.items() if file.exists()
    }
    images = [every[name] for name, _, _ in shown]
    titles = [f"{kind}\n{p:.2f}" for _, kind, p in shown]
    figure = draw(images, titles, scores, arguments.patch)
    figure.savefig(arguments.out, dpi=90, pil_kwargs={"quality": 85})


if __name__ == "__main__":
    main()
