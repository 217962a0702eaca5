"""How long Greedy-AS takes for an image of 28 × 28 pixels, and how good it is.

python experiments/hsieh2021/speed.py --data DATA/mnist --images 64 --subsets 5000
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
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
    parser.add_argument("--criteria", nargs="+", default=["irrelevant", "relevant"])
    parser.add_argument("--plain", type=int, default=0, help="images for the paper's attack, pgd")
    parser.add_argument("--plain-subsets", type=int, default=500, help="subsets beside that attack")
    parser.add_argument("--beside", type=int, default=100, help="images for methods beside Greedy-AS")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--profile", action="store_true", help="show which operations take the time")
    arguments = parser.parse_args()
    module, accuracy = train(arguments.data, epochs=arguments.epochs, device=arguments.device)
    model = wrapped(module)
    images = list(read_set(arguments.data, "t10k")[0][: max(arguments.beside, arguments.images)])
    rows: list[dict[str, Any]] = [{"accuracy": accuracy}]
    options: dict[str, Any] = {"features": "pixels", "progress": False}
    pertinent.explain(
        model, images[:2], "greedy-as", subsets=min(200, arguments.subsets), chosen=0.1, **options
    )  # warm up
    if arguments.profile:
        profile(lambda: pertinent.explain(model, images[:4], "greedy-as", chosen=0.1, **options))
    runs: list[tuple[str, int, dict[str, Any]]] = [
        ("random", arguments.beside, {}),
        ("gradient", arguments.beside, {}),
        ("integrated-gradients", arguments.beside, {}),
    ]
    settings: dict[str, Any] = {"subsets": arguments.subsets, "chosen": arguments.chosen}
    for steps in arguments.attack_steps:
        for criterion in arguments.criteria:
            each = settings | {"attack_steps": steps, "criterion": criterion}
            runs.append(("greedy-as", arguments.images, each))
    if arguments.plain:
        few = settings | {"subsets": arguments.plain_subsets}
        runs += [
            ("greedy-as", arguments.plain, few | {"attack_steps": steps}) for steps in arguments.attack_steps
        ]
        runs.append(("greedy-as", arguments.plain, few | {"attack_steps": 20, "attack": "pgd"}))
    for method, n_images, own in runs:
        start = time.perf_counter()
        found = pertinent.explain(model, images[:n_images], method, **own, **options)
        seconds = time.perf_counter() - start
        start = time.perf_counter()
        judged = pertinent.evaluate(model, found, METRICS, progress=False)
        rows.append(
            {
                "method": method,
                "images": n_images,
                "settings": own,
                "seconds per image": seconds / n_images,
                "passes per image": float(np.mean([e.evaluations for e in found])),
                "criteria, seconds": time.perf_counter() - start,
                **{name: judged.mean(method, name) for name in METRICS},
            }
        )
        print(json.dumps(rows[-1]), flush=True)
        if arguments.out is not None:
            arguments.out.write_text(json.dumps(rows, indent=1))


def profile(call: Callable[[], object]) -> None:
    """Print the operations that take most time, on the device and here."""
    activities = [torch.profiler.ProfilerActivity.CPU]
    activities += [torch.profiler.ProfilerActivity.CUDA] if torch.cuda.is_available() else []
    start = time.perf_counter()
    with torch.profiler.profile(activities=activities) as found:
        call()
    print(f"profiled: {time.perf_counter() - start:.2f} s")
    by = "self_cuda_time_total" if torch.cuda.is_available() else "self_cpu_time_total"
    print(found.key_averages().table(sort_by=by, row_limit=20, max_name_column_width=50), flush=True)


if __name__ == "__main__":
    main()
