"""Draw the examples: MNIST masks as pictures, and texts with what was selected in bold.

    python experiments/magnex/pictures.py --work WORK --results RESULTS

Writes ``forest.png`` and ``cnn.png`` (Figures 5 and 6), and texts into README.md (Figures 3 and 4).
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from paper import NAMES
from run import results_in
from stages import choose, top

from pertinent.results.explanation import Explanation

sys.path.append(str(Path(__file__).parents[1]))

from shared.legacy import fill_in

HERE = Path(__file__).parent
IMAGES = 6
TEXTS = 2
LONGEST = 150
"""Words of a text that is shown."""
LIME = "lime"
DIM = 0.35
"""How much of a removed pixel is drawn, in red."""


def masks_of(results: Path, work: Path, which: str) -> list[tuple[Explanation, Any, Any]]:
    """The first inputs, each with the features that magnex selected and as many by LIME."""
    found = results_in(results, which)
    best = choose(which, found)
    if best is None or LIME not in found:
        return []
    kept = json.loads((work / which / f"{best.name}.json").read_text(encoding="utf-8"))["explanations"]
    pairs = zip(map(Explanation.from_dict, kept), found[LIME]["scores"], strict=False)
    return [(e, e.scores > 0.5, top(np.array(lime), e.details["selected"])) for e, lime in pairs]


def draw(which: str, found: list[tuple[Explanation, Any, Any]]) -> None:
    """Images, and what is kept of them; where a kept pixel is black it is blue."""
    figure, axes = plt.subplots(3, IMAGES, figsize=(1.3 * IMAGES, 4.2), squeeze=False)
    for column, (e, ours, other) in enumerate(found[:IMAGES]):
        input: Any = e.input
        pixels, labels = input.pixels[0], input.labels
        for axis, mask in zip(axes[:, column], (None, ours, other), strict=True):
            axis.imshow(np.stack([pixels] * 3, axis=2) if mask is None else _masked(pixels, mask[labels]))
            axis.set_xticks([])
            axis.set_yticks([])
        axes[0, column].set_title(e.target_name)
    for axis, label in zip(axes[:, 0], ("image", "magnex", "lime"), strict=True):
        axis.set_ylabel(label)
    figure.tight_layout()
    figure.savefig(HERE / f"{which}.png", dpi=110)
    plt.close(figure)


def _masked(pixels: Any, kept: Any) -> Any:
    """White where strokes are kept, red where they are removed, blue where black is kept."""
    red = np.where(kept, pixels, np.maximum(pixels * DIM, 0) * 2)
    green = np.where(kept, pixels, 0)
    blue = np.where(kept, np.maximum(pixels, 0.45), 0)
    return np.clip(np.stack([red, green, blue], axis=2), 0, 1)


def marked(e: Explanation, kept: Any) -> str:
    """A text whose kept features are bold."""
    parts = []
    for feature, keep in zip(e.features, kept, strict=True):
        parts.append(f"**{escaped(feature)}**" if keep else escaped(feature))
    return " ".join(parts)


def escaped(text: str) -> str:
    """As it is, in Markdown."""
    for sign in "\\*_|`<[]#":
        text = text.replace(sign, f"\\{sign}")
    return " ".join(text.split())


def examples(which: str, found: list[tuple[Explanation, Any, Any]]) -> str:
    """The first texts that are not too long, side by side."""
    lines = [f"{NAMES[which]}:\n", "| magnex | lime |", "| --- | --- |"]
    shown = [each for each in found if len(each[0].features) <= LONGEST][:TEXTS]
    lines += [f"| {_question(e)}{marked(e, ours)} | {marked(e, other)} |" for e, ours, other in shown]
    return "\n".join(lines) + "\n"


def _question(e: Explanation) -> str:
    """What was asked of a context, and what the reader answers."""
    if "answer" not in e.details:
        return ""
    raw: Any = e.input.raw
    return f"*{escaped(raw.first)} – {escaped(str(e.details['answer']))}*: "


def main() -> None:
    """Draw what there is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--page", type=Path, default=HERE / "README.md")
    arguments = parser.parse_args()
    texts = []
    for which in NAMES:
        found = masks_of(arguments.results, arguments.work, which)
        if not found:
            continue
        if which in ("forest", "cnn"):
            draw(which, found)
        else:
            texts.append(examples(which, found))
    fill_in(arguments.page, {"examples": "\n".join(texts) or "not measured\n"})


if __name__ == "__main__":
    main()
