"""Explain images by all methods, and measure the explanations.

    python experiments/hsieh2021/mnist.py --data DATA/mnist --out mnist.safetensors
    python experiments/hsieh2021/run.py --data DATA/mnist --weights mnist.safetensors --results RESULTS/mnist

The baselines explain the logit of the predicted class, as the authors' do (``--scale natural``: its
probability). WEIGHTS may be those of the authors' network, too.

For each row RESULTS/NAME.npz holds the scores of the pixels, RESULTS/NAME.jsonl what was measured. What is
there is not made again, so a run that was stopped goes on, and rows may be explained on one machine
(``--only explain``) and measured on another.
"""

from __future__ import annotations

import argparse
import re
import time
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from criteria import Judge
from mnist import read_network, read_set, wrapped
from records import Writer
from rows import MAGNITUDE, ROWS, Row

import pertinent
from pertinent.array_types import Array
from pertinent.explainers.base import explainers

SUBSETS = 5000
"""Random subsets in each step of Greedy-AS, as many as in the paper."""


def chosen_images(folder: Path, n: int, seed: int = 0) -> Array:
    """Random test images."""
    images: Array = read_set(folder, "t10k")[0]
    return np.asarray(images[np.random.default_rng(seed).permutation(len(images))[:n]])


def settings_of(row: Row, subsets: int, scale: str) -> dict[str, Any]:
    """The settings of a row: Greedy-AS draws so many subsets, baselines explain answers on this scale."""
    settings = row.settings | ({"subsets": subsets} if row.sampled else {})
    return settings | ({"scale": scale} if scale in explainers.get(row.method).scales else {})


def explained(
    model: Any,
    images: Array,
    row: Row,
    *,
    subsets: int,
    scale: str = "raw",
    features: str = "pixels",
) -> dict[str, Any]:
    """Scores of features (images, features), the seconds of an image, and the passes of each."""
    settings = settings_of(row, subsets, scale)
    start = time.perf_counter()
    found = pertinent.explain(
        model, list(images), row.method, features=features, removal="constant", progress=False, **settings
    )
    seconds = time.perf_counter() - start
    for failure in found.failures:
        print(f"{row.method}, image {failure.index}: {failure.reason}", flush=True)
    scores = np.zeros((len(images), len(found[0].scores)), dtype=np.float32)  # of failures, no order
    for own in found:
        scores[own.index] = own.scores
    passes = np.array([own.evaluations for own in found])
    failed = np.array(len(found.failures))
    return {
        "scores": scores,
        "seconds": np.array(seconds / len(images)),
        "passes": passes,
        "failed": failed,
    }


def file_name(row: str) -> str:
    """The name of a row as that of a file."""
    return re.sub(r"[^a-z0-9]+", "-", row.replace("%", " percent")).strip("-")


def carry_out(
    name: str,
    row: Row,
    explain: Callable[[], dict[str, Any]],
    judge: Judge,
    *,
    results: Path,
    only: str | None = None,
) -> None:
    """Explain and measure a row, unless that is done already; the name of `results` is the experiment's."""
    scores = results / f"{file_name(name)}.npz"
    if not scores.exists() and only != "measure":
        found = explain()
        np.savez_compressed(scores, **found)
        print(f"{name}: {found['seconds']:.3f} s, {found['passes'].mean():,.0f} passes", flush=True)
    records = scores.with_suffix(".jsonl")
    if scores.exists() and not records.exists() and only != "explain":
        unfinished = records.with_suffix(".part")
        unfinished.unlink(missing_ok=True)
        writer = Writer(unfinished, results.name)
        found = dict(np.load(scores))
        writer.write(name, "passes", found["passes"])
        writer.write(name, "seconds", [float(found["seconds"])])
        writer.write(name, "failed", [int(found["failed"])])
        start = time.perf_counter()
        judge.measure(name, found["scores"], writer)
        if row.signed:
            judge.measure(name + MAGNITUDE, np.abs(found["scores"]), writer)
        unfinished.rename(records)
        print(f"{name}: measured in {time.perf_counter() - start:.0f} s", flush=True)


def main() -> None:
    """Explain, then measure, row by row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--weights", type=Path, required=True)
    parser.add_argument("--results", type=Path, required=True, help="its name is that of the experiment")
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS), metavar="ROW")
    parser.add_argument("--only", choices=("explain", "measure"))
    parser.add_argument("--images", type=int, default=100)
    parser.add_argument("--subsets", type=int, default=SUBSETS)
    parser.add_argument("--scale", choices=("raw", "natural"), default="raw", help="of the baselines")
    parser.add_argument("--attack-steps", type=int, default=20, help="of the criteria")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    arguments = parser.parse_args()
    arguments.results.mkdir(parents=True, exist_ok=True)
    module = read_network(arguments.weights)
    model = wrapped(module.to(arguments.device))
    images = chosen_images(arguments.data, arguments.images)
    judge = Judge(model, module, images, arguments.attack_steps)
    for name in arguments.rows:
        row = ROWS[name]
        explain = partial(explained, model, images, row, subsets=arguments.subsets, scale=arguments.scale)
        try:
            carry_out(name, row, explain, judge, results=arguments.results, only=arguments.only)
        except Exception:  # noqa: BLE001  the other rows go on
            print(f"{name}: {traceback.format_exc()}", flush=True)


if __name__ == "__main__":
    main()
