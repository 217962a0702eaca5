"""Draw the examples: MNIST masks as pictures, and texts with what was selected in bold.

    python experiments/magnex/pictures.py --work WORK

Writes ``forest.png`` and ``cnn.png`` (Figures 5 and 6), and texts into README.md (Figures 3 and 4).
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from paper import NAMES
from stages import FITS, read

from pertinent.results.explanation import Explanation

HERE = Path(__file__).parent
IMAGES = 6
TEXTS = 2
LIME = "lime"
DIM = 0.35
"""How much of a removed pixel is drawn, in red."""


def masks_of(folder: Path, name: str) -> list[tuple[Explanation, Any, Any]]:
    """Each input with the features that magnex selected and as many by LIME."""
    pairs = zip(read(folder / f"{name}.json"), read(folder / f"{LIME}.json"), strict=True)
    return [(ours, ours.scores > 0.5, _top(other, int((ours.scores > 0.5).sum()))) for ours, other in pairs]


def _top(e: Explanation, k: int) -> Any:
    mask = np.zeros(len(e.scores), dtype=bool)
    mask[np.argsort(-e.scores, kind="stable")[:k]] = True
    return mask


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
        plain = feature.replace("*", "\\*").replace("_", "\\_").replace("|", "\\|")
        parts.append(f"**{plain}**" if keep else plain)
    return " ".join(parts)


def examples(which: str, found: list[tuple[Explanation, Any, Any]]) -> str:
    """The first texts, side by side."""
    lines = [f"{NAMES[which]}:\n", "| magnex | lime |", "| --- | --- |"]
    lines += [f"| {marked(e, ours)} | {marked(e, other)} |" for e, ours, other in found[:TEXTS]]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Draw what there is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--page", type=Path, default=HERE / "README.md")
    arguments = parser.parse_args()
    texts = []
    for which in NAMES:
        folder, name = arguments.work / which, FITS[which][0].name
        if not all((folder / f"{each}.json").is_file() for each in (name, LIME)):
            continue
        found = masks_of(folder, name)
        if which in ("forest", "cnn"):
            draw(which, found)
        else:
            texts.append(examples(which, found))
    page = arguments.page.read_text(encoding="utf-8")
    pattern = re.compile(r"(<!-- examples -->\n).*?(<!-- end -->)", re.DOTALL)
    filled = "\n".join(texts) or "not measured\n"
    arguments.page.write_text(pattern.sub(lambda m: f"{m[1]}\n{filled}\n{m[2]}", page), encoding="utf-8")


if __name__ == "__main__":
    main()
