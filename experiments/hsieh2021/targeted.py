"""Targeted explanations (Figure 5): why is it this digit, and not that one?

    python experiments/hsieh2021/targeted.py --data DATA/mnist --weights WEIGHTS --results RESULTS/mnist

Writes RESULTS/targeted.npz: images, scores of pixels, and how an attack on the relevant pixels alone changes
them.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import torch
from criteria import SHOWN, relevant_sets
from mnist import read_network, read_set, wrapped
from rows import SIZES
from run import SUBSETS

import pertinent

DIGITS = {7: (9, 2), 1: (7, 4), 0: (6, 9), 5: (3, 6)}
"""Digits, and what else they might have been."""


def main() -> None:
    """Explain the first test image of each digit towards its targets."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--weights", type=Path, required=True)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--subsets", type=int, default=SUBSETS)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    arguments = parser.parse_args()
    arguments.results.mkdir(parents=True, exist_ok=True)
    module = read_network(arguments.weights)
    model = wrapped(module.to(arguments.device))
    images, labels = read_set(arguments.data, "t10k")
    found: dict[str, list[Any]] = {
        "images": [],
        "digits": [],
        "targets": [],
        "scores": [],
        "changes": [],
    }
    for digit, targets in DIGITS.items():
        image = images[np.flatnonzero(labels == digit)[0]]
        for target in targets:
            explained = pertinent.explain(
                model,
                image,
                "greedy-as",
                toward=str(target),
                chosen=SHOWN,
                subsets=arguments.subsets,
                features="pixels",
                progress=False,
            )
            relevant = relevant_sets(explained.scores[None])[0, SIZES.index(SHOWN)]
            attacked: Any = pertinent.attack_radius(
                model, image, relevant, toward=str(target), features="pixels", progress=False
            )
            print(f"{digit} → {target}: radius {attacked.radii[0]:.2f}", flush=True)
            values = (image, digit, target, explained.scores, attacked.changes[0])
            for own, value in zip(found.values(), values, strict=True):
                own.append(np.asarray(value))
    arrays: dict[str, Any] = {name: np.array(values) for name, values in found.items()}
    np.savez_compressed(arguments.results / "targeted.npz", **arrays)


if __name__ == "__main__":
    main()
