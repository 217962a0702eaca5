"""Images and their top 5 patches by AIM (Figure 3).

    python experiments/vo2023/figure3.py --data DATA --work WORK

Writes ``figure3.png``: of each set six test images, and below each what is left of it with the five patches
of 7 × 7 pixels alone that speak most for the predicted class. AIM is fitted on the CPU in about a minute.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from black_boxes import image_classifier
from sets import CLASSES, IMAGES, read
from stages import ALPHA_BETA

import pertinent
from pertinent.array_types import Array, Floats
from pertinent.metrics.top_features import Faithfulness
from pertinent.rendering.plots import new_figure

SIZE, K, SHOWN = 7, 5, 6
FEATURES = f"patches:{SIZE}"
REMOVAL = "constant:value=0"


def kept(image: Array, scores: Floats, k: int = K) -> Array:
    """The image (1, height, width) with its k patches of the highest scores alone; the others are black."""
    side = image.shape[-1] // SIZE
    mask = np.zeros(side * side)
    mask[np.argsort(-scores, kind="stable")[:k]] = 1
    return image * np.kron(mask.reshape(side, side), np.ones((SIZE, SIZE)))


def explained(arguments: Any, which: str) -> tuple[list[Array], list[Any], float]:
    """Test images, their explanations, and the share of decisions that their top patches keep."""
    training = read(arguments.data, which, "train").part(0, arguments.train)
    weights = arguments.work / f"{which}.safetensors"
    model = image_classifier(which, training, epochs=3, device="cpu", weights=weights)
    options = {"removal": REMOVAL, "features": FEATURES, "progress": False}
    beta = ALPHA_BETA[which][1]
    aim = pertinent.fit(model, training.inputs, "aim", k=K, beta=beta, epochs=arguments.epochs, **options)
    test = read(arguments.data, which, "test").part(0, arguments.test).inputs
    found = pertinent.explain(model, test, aim, **options)
    rows = pertinent.evaluate(model, found, [Faithfulness(k=K)], progress=False).rows
    return test, list(found), float(np.mean([row.value for row in rows]))


def draw(sets: dict[str, tuple[list[Array], list[Any]]], path: Path) -> None:
    """Two rows of each set: two images of each class, and their patches."""
    figure = new_figure(1.1 * SHOWN, 2.6 * len(sets))
    panels = figure.subplots(2 * len(sets), SHOWN, squeeze=False)
    for pair, (which, (test, found)) in enumerate(sets.items()):
        for column, place in enumerate(two_of_each(found, len(CLASSES[which]))):
            e = found[place]
            for row, image in enumerate((test[place], kept(test[place], e.scores))):
                axes = panels[2 * pair + row, column]
                axes.imshow(image[0], cmap="gray", vmin=0, vmax=1)
                axes.set_xticks([])
                axes.set_yticks([])
            panels[2 * pair, column].set_title(e.target_name, fontsize=9)
    figure.savefig(path, dpi=110)


def two_of_each(found: list[Any], n_classes: int) -> list[int]:
    """The places of the first two images that are predicted to be of each class."""
    return [
        place
        for target in range(n_classes)
        for place in [i for i, e in enumerate(found) if e.target == target][: SHOWN // n_classes]
    ]


def main() -> None:
    """Fit, explain and draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True, help="a folder for the black boxes' weights")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "figure3.png")
    parser.add_argument("--train", type=int, default=2000)
    parser.add_argument("--test", type=int, default=200)
    parser.add_argument("--epochs", type=int, default=10)
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    drawn = {}
    for which in IMAGES:
        test, found, share = explained(arguments, which)
        print(f"{which}: the top {K} patches keep {share:.1%} of {len(test)} decisions", flush=True)
        drawn[which] = test, found
    draw(drawn, arguments.out)


if __name__ == "__main__":
    main()
