"""Examples: masks of MNIST (Figures 5 and 6), and texts with the selection in bold (Figures 3 and 4)."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.magnex.fits import NAMES
from experiments.magnex.measuring import fit_folder, record_of, top
from experiments.shared.pages import escape
from experiments.shared.stages import Run, read_record
from pertinent.array_types import Masks
from pertinent.results.explanation import Explanation

IMAGES = 6
TEXTS = 2
LONGEST = 150
"""Words of a text that is shown."""
LIME = "lime"
DIM = 0.35
"""Brightness of a removed pixel, in red."""
Example = tuple[Explanation, Masks, Masks]
"""An explanation, the features that magnex selects, and as many by LIME."""


def read_examples(run: Run, box: str) -> list[Example]:
    """Return the first inputs of a black box, if there are records."""
    lime, kept = run.results / record_of(f"{box} {LIME}"), fit_folder(run, box, 0).with_suffix(".json")
    if not lime.is_file() or not kept.is_file():
        return []
    explanations = map(Explanation.from_dict, read_record(kept)["explanations"])
    pairs = zip(explanations, read_record(lime)["scores"], strict=False)
    return [(e, e.scores > 0.5, top(np.array(row), e.details["selected"])) for e, row in pairs]


def draw(run: Run, box: str) -> Any:
    """Return a figure of images and what is kept of them; a kept black pixel is blue."""
    import matplotlib.pyplot as plt

    examples = read_examples(run, box)
    if not examples:
        return None
    figure, axes = plt.subplots(3, IMAGES, figsize=(1.3 * IMAGES, 4.2), squeeze=False)
    for column, (e, ours, other) in enumerate(examples[:IMAGES]):
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
    plt.close(figure)
    return figure


def _masked(pixels: Any, kept: Any) -> Any:
    """Return white where strokes are kept, red where they are removed, blue where black is kept."""
    red = np.where(kept, pixels, np.maximum(pixels * DIM, 0) * 2)
    green = np.where(kept, pixels, 0)
    blue = np.where(kept, np.maximum(pixels, 0.45), 0)
    return np.clip(np.stack([red, green, blue], axis=2), 0, 1)


def mark(e: Explanation, kept: Masks) -> str:
    """Return a text with kept features in bold."""
    features = [" ".join(escape(feature).split()) for feature in e.features]
    words = [f"**{text}**" if keep else text for text, keep in zip(features, kept, strict=True)]
    return " ".join(words)


def examples(run: Run) -> str:
    """Return the first short texts of the classifier and of the reader, with both methods' selections."""
    parts = []
    for box in ("imdb", "squad"):
        shown = [each for each in read_examples(run, box) if len(each[0].features) <= LONGEST][:TEXTS]
        lines = [f"{NAMES[box]}:\n", "| magnex | lime |", "| --- | --- |"]
        lines += [f"| {_question(e)}{mark(e, ours)} | {mark(e, other)} |" for e, ours, other in shown]
        parts += ["\n".join(lines) + "\n"] if shown else []
    return "\n".join(parts)


def _question(e: Explanation) -> str:
    """Return the question about a context, and the reader's answer."""
    if "answer" not in e.details:
        return ""
    raw: Any = e.input.raw
    return f"*{escape(raw.first)} – {escape(str(e.details['answer']))}*: "
