"""Time that Greedy-AS takes for an image of 28 × 28 pixels, and its criteria."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import pertinent
from experiments.hsieh2021.mnist import fit_network, wrap_network
from experiments.shared.data import read_images
from experiments.shared.stages import Run

METRICS = ("robustness-of-irrelevant", "robustness-of-relevant")
COMPARED = ("random", "gradient", "integrated-gradients")
PLAIN_SUBSETS = 500
"""Subsets when Greedy-AS uses the paper's attack."""


def measure(
    run: Run,
    *,
    images: int,
    compared: int,
    plain: int,
    subsets: int,
    chosen: float,
    attack_steps: Sequence[int],
    criteria: Sequence[str],
    epochs: int,
) -> Iterator[dict[str, Any]]:
    """Explain, time and measure, and yield the record after each run.

    `plain` images are also explained with fewer subsets, by the default attack and by the paper's (pgd).
    """
    module, accuracy = fit_network(run.data / "mnist", epochs=epochs, device=run.device)
    model = wrap_network(module)
    inputs = list(read_images(run.data / "mnist", "t10k")[0][: max(compared, images)])
    options: dict[str, Any] = {"features": "pixels", "progress": False}
    warm_up = {"subsets": min(200, subsets), "chosen": 0.1}
    pertinent.explain(model, inputs[:2], "greedy-as", **warm_up, **options)
    runs: list[tuple[str, int, dict[str, Any]]] = [(name, compared, {}) for name in COMPARED]
    settings: dict[str, Any] = {"subsets": subsets, "chosen": chosen}
    for steps in attack_steps:
        for criterion in criteria:
            each = settings | {"attack_steps": steps, "criterion": criterion}
            runs.append(("greedy-as", images, each))
    if plain:
        few = settings | {"subsets": PLAIN_SUBSETS}
        runs += [("greedy-as", plain, few | {"attack_steps": steps}) for steps in attack_steps]
        runs.append(("greedy-as", plain, few | {"attack_steps": 20, "attack": "pgd"}))
    rows = []
    for method, n, each in runs:
        start = time.perf_counter()
        explanations = pertinent.explain(model, inputs[:n], method, **each, **options)
        seconds = time.perf_counter() - start
        start = time.perf_counter()
        evaluation = pertinent.evaluate(model, explanations, METRICS, progress=False)
        rows.append(
            {
                "method": method,
                "images": n,
                "settings": each,
                "seconds per image": seconds / n,
                "passes per image": float(np.mean([e.evaluations for e in explanations])),
                "criteria, seconds": time.perf_counter() - start,
                **{name: evaluation.mean(method, name) for name in METRICS},
            }
        )
        print(rows[-1], flush=True)
        yield {"accuracy": accuracy, "rows": rows}
