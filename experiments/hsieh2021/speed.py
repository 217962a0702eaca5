"""How long Greedy-AS takes for an image of 28 × 28 pixels, and how good it is.

python experiments/hsieh2021/speed.py --data DATA/mnist --images 64 --subsets 5000
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from mnist import read_set, train, wrapped

import pertinent

METRICS = ("robustness-of-irrelevant", "robustness-of-relevant")


def main() -> None:
    """Explain, time and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--images", type=int, default=64)
    parser.add_argument("--subsets", type=int, default=5000)
    parser.add_argument("--chosen", type=float, default=0.2)
    parser.add_argument("--attack-steps", type=int, nargs="+", default=[4, 6, 10])
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    arguments = parser.parse_args()
    module, accuracy = train(arguments.data, epochs=arguments.epochs, device=arguments.device)
    model = wrapped(module)
    images = list(read_set(arguments.data, "t10k")[0][: arguments.images])
    rows: list[dict[str, Any]] = [{"accuracy": accuracy, "images": len(images)}]
    options: dict[str, Any] = {"features": "pixels", "progress": False}
    pertinent.explain(model, images[:2], "greedy-as", subsets=200, chosen=0.1, **options)  # warm up
    methods: list[tuple[str, dict[str, Any]]] = [
        ("random", {}),
        ("gradient", {}),
        ("integrated-gradients", {}),
    ]
    for steps in arguments.attack_steps:
        settings = {"subsets": arguments.subsets, "chosen": arguments.chosen, "attack_steps": steps}
        methods += [("greedy-as", settings), ("greedy-as", settings | {"criterion": "relevant"})]
    for method, settings in methods:
        start = time.perf_counter()
        found = pertinent.explain(model, images, method, **settings, **options)
        seconds = time.perf_counter() - start
        start = time.perf_counter()
        judged = pertinent.evaluate(found, model, METRICS, progress=False)
        rows.append(
            {
                "method": method,
                "settings": settings,
                "seconds per image": seconds / len(images),
                "passes per image": float(np.mean([e.evaluations for e in found])),
                "criteria, seconds": time.perf_counter() - start,
                **{name: judged.mean(method, name) for name in METRICS},
            }
        )
        print(json.dumps(rows[-1]), flush=True)
        if arguments.out is not None:
            arguments.out.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
