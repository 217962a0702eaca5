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
from pertinent.array_types import Array, Floats
from pertinent.explainers.base import explainers
from pertinent.models.torch.randomised import module_of

SLOW = ("greedy-as", "greedy", "one-step-banzhaf", "meaningful-perturbation", "thompson-search")

SUBSETS = 5000
"""Random subsets in each step of Greedy-AS, as many as in the paper."""


def chosen_images(folder: Path, n: int, seed: int = 0) -> Array:
    """Random test images."""
    images: Array = read_set(folder, "t10k")[0]
    return np.asarray(images[np.random.default_rng(seed).permutation(len(images))[:n]])


def settings_of(row: Row, subsets: int, scale: str) -> dict[str, Any]:
    """The settings of a row: Greedy-AS draws so many subsets, baselines explain answers on this scale."""
    settings = row.settings | ({"subsets": subsets} if row.sampled else {})
    return settings | ({"scale": scale} if scale in explainers.get(row.method).traits.scales else {})


def mean_gradients(module: torch.nn.Module, images: Array, points: int) -> dict[str, Any]:
    """Return the mean gradients of the predicted class's logit on the way from 0 to each image.

    The authors' code calls them integrated gradients; it does not multiply them by the input.
    """
    start = time.perf_counter()
    device = next(module.parameters()).device
    pixels = torch.from_numpy(images).to(device)
    total = torch.zeros_like(pixels)
    with torch.no_grad():
        predicted = module(pixels).argmax(dim=1, keepdim=True)
    for point in range(points):
        moved = ((point + 0.5) / points * pixels).requires_grad_()
        total += torch.autograd.grad(module(moved).gather(1, predicted).sum(), moved)[0]
    return {
        "scores": compact((total / points).flatten(1).cpu().numpy()),
        "seconds": np.array((time.perf_counter() - start) / len(images)),
        "passes": np.full(len(images), 2 * points),
        "failed": np.array(0),
    }


def compact(scores: Floats) -> Array:
    """Return scores as multiples of the largest magnitude of each image, in two bytes.

    Criteria are measured of these, so that they can be measured again from what is kept.
    """
    largest = np.abs(scores).max(axis=1, keepdims=True)
    return (scores / np.where(largest > 0, largest, 1)).astype(np.float16)


def explained(
    model: Any,
    images: Array,
    row: Row,
    *,
    subsets: int,
    scale: str = "raw",
    features: str = "pixels",
    seed: int = 0,
) -> dict[str, Any]:
    """Scores of features (images, features), the seconds of an image, and the passes of each."""
    if row.method == "mean-gradient":
        return mean_gradients(module_of(model), images, **row.settings)
    settings = settings_of(row, subsets, scale)
    start = time.perf_counter()
    found = pertinent.explain(
        model,
        list(images),
        row.method,
        features=features,
        removal="constant",
        seed=seed,
        progress=False,
        **settings,
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
        "scores": compact(scores),
        "seconds": np.array(seconds / len(images)),
        "passes": passes,
        "failed": failed,
    }


def file_name(row: str) -> str:
    """The name of a row as that of a file."""
    return re.sub(r"[^a-z0-9]+", "-", row.replace("%", " percent")).strip("-")


def explain_in_parts(
    path: Path, images: Array, size: int, explain: Callable[..., dict[str, Any]]
) -> dict[str, Any]:
    """Explain `size` images after the other, keeping what is done in `path` so that it can be resumed."""
    done = dict(np.load(path)) if path.exists() else {}
    first = len(done["scores"]) if done else 0
    for start in range(first, len(images), size):
        new = explain(images=images[start : start + size], seed=start)
        done = join(done, new) if done else new
        unfinished = path.with_suffix(".new.npz")
        np.savez_compressed(unfinished, **done)
        unfinished.rename(path)
        print(f"{path.stem}: {len(done['scores'])} of {len(images)} explained", flush=True)
    return done


def join(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Return the explanations of two sets of images as those of one."""
    weights = [len(own["scores"]) for own in (one, other)]
    return {
        "scores": np.concatenate([one["scores"], other["scores"]]),
        "passes": np.concatenate([one["passes"], other["passes"]]),
        "seconds": np.average([one["seconds"], other["seconds"]], weights=weights),
        "failed": one["failed"] + other["failed"],
    }


def carry_out(
    name: str,
    row: Row,
    explain: Callable[..., dict[str, Any]],
    judge: Judge,
    *,
    results: Path,
    only: str | None = None,
    size: int | None = None,
) -> None:
    """Explain and measure a row, unless that is done already; the name of `results` is the experiment's.

    `explain` is called with `images` and `seed`, for `size` images of the judge or for all of them.
    """
    scores = results / f"{file_name(name)}.npz"
    part = scores.with_suffix(".part.npz")
    if not scores.exists() and only != "measure":
        found = explain_in_parts(part, judge.images, size or len(judge.images), explain)
        part.rename(scores)
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
        values = found["scores"].astype(np.float32)
        judge.measure(name, values, writer)
        if row.signed:
            judge.measure(name + MAGNITUDE, np.abs(values), writer)
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
    parser.add_argument("--part", type=int, help="images that slow rows explain before they save")
    parser.add_argument("--subsets", type=int, default=SUBSETS)
    parser.add_argument("--no-probabilities", action="store_true", help="leave out the library's metrics")
    parser.add_argument("--scale", choices=("raw", "natural"), default="raw", help="of the baselines")
    parser.add_argument("--attack-steps", type=int, default=20, help="of the criteria")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    arguments = parser.parse_args()
    arguments.results.mkdir(parents=True, exist_ok=True)
    module = read_network(arguments.weights)
    model = wrapped(module.to(arguments.device))
    images = chosen_images(arguments.data, arguments.images)
    probabilities = not arguments.no_probabilities
    judge = Judge(model, module, images, arguments.attack_steps, probabilities=probabilities)
    for name in arguments.rows:
        row = ROWS[name]
        explain = partial(explained, model, row=row, subsets=arguments.subsets, scale=arguments.scale)
        size = arguments.part if row.method in SLOW else None
        try:
            carry_out(name, row, explain, judge, results=arguments.results, only=arguments.only, size=size)
        except Exception:  # noqa: BLE001  the other rows go on
            print(f"{name}: {traceback.format_exc()}", flush=True)


if __name__ == "__main__":
    main()
