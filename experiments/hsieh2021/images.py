"""Explanations of images by all methods, and their measures.

Baselines explain the logit of the predicted class, as the authors' do. Scores are kept in a file of their
own, so that rows may be explained on one machine and measured on another, and measured again.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

import pertinent
from experiments.hsieh2021.criteria import Judge
from experiments.hsieh2021.mnist import random_test_images, read_network, wrap_network
from experiments.hsieh2021.records import Rows
from experiments.hsieh2021.rows import MAGNITUDE, Row
from experiments.shared.stages import Run
from pertinent.array_types import Array, Floats
from pertinent.explainers.base import explainers

SLOW = ("greedy-as", "greedy", "one-step-banzhaf", "meaningful-perturbation", "thompson-search")
SUBSETS = 5000
"""Random subsets in each step of Greedy-AS, as in the paper."""


@dataclass(frozen=True)
class ImageSet:
    """Images and the network that classifies them."""

    module: torch.nn.Module
    model: Any
    images: Array


Load = Callable[[Run], ImageSet]
"""Function that loads a set of images on the device of a run."""


def load_digits(run: Run, dataset: str, weights: Path, n: int) -> ImageSet:
    """Return random test images of a data set in MNIST's format, and the network in a file."""
    module = read_network(weights).to(run.device)
    return ImageSet(module, wrap_network(module), random_test_images(run.data / dataset, n))


def settings_of(row: Row, subsets: int, scale: str) -> dict[str, Any]:
    """Return a row's settings with the number of subsets and, for baselines, the scale of the answers."""
    settings = row.settings | ({"subsets": subsets} if row.sampled else {})
    return settings | ({"scale": scale} if scale in explainers.get(row.method).traits.scales else {})


def mean_gradients(module: torch.nn.Module, images: Array, points: int) -> dict[str, Any]:
    """Return the mean gradients of the predicted class's logit on the path from 0 to each image.

    The authors' code calls them integrated gradients; it does not multiply them by the input.
    """
    start = time.perf_counter()
    pixels = torch.from_numpy(images).to(next(module.parameters()).device)
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


def explain_images(
    images: ImageSet, part: Array, row: Row, *, subsets: int, scale: str, features: str, seed: int
) -> dict[str, Any]:
    """Return the scores (images, features), the seconds of an image, and the passes of each."""
    if row.method == "mean-gradient":
        return mean_gradients(images.module, part, **row.settings)
    start = time.perf_counter()
    explanations = pertinent.explain(
        images.model,
        list(part),
        row.method,
        features=features,
        removal="constant",
        seed=seed,
        progress=False,
        **settings_of(row, subsets, scale),
    )
    seconds = time.perf_counter() - start
    for failure in explanations.failures:
        print(f"{row.method}, image {failure.index}: {failure.reason}", flush=True)
    scores = np.zeros((len(part), len(explanations[0].scores)), dtype=np.float32)  # failures have no order
    for e in explanations:
        scores[e.index] = e.scores
    return {
        "scores": compact(scores),
        "seconds": np.array(seconds / len(part)),
        "passes": np.array([e.evaluations for e in explanations]),
        "failed": np.array(len(explanations.failures)),
    }


def join(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Return the explanations of two sets of images as those of one."""
    weights = [len(each["scores"]) for each in (one, other)]
    return {
        "scores": np.concatenate([one["scores"], other["scores"]]),
        "passes": np.concatenate([one["passes"], other["passes"]]),
        "seconds": np.average([one["seconds"], other["seconds"]], weights=weights),
        "failed": one["failed"] + other["failed"],
    }


def explain_in_parts(
    path: Path, images: Array, size: int, explain: Callable[..., dict[str, Any]]
) -> dict[str, Any]:
    """Explain images in parts of a size, and save them after each; a stopped run is continued."""
    done = dict(np.load(path)) if path.exists() else None
    for first in range(len(done["scores"]) if done else 0, len(images), size):
        new = explain(images[first : first + size], seed=first)
        done = join(done, new) if done else new
        unfinished = path.with_suffix(".new.npz")
        np.savez_compressed(unfinished, **done)
        unfinished.rename(path)
        print(f"{len(done['scores'])} of {len(images)} explained", flush=True)
    assert done is not None
    return done


def explain_row(
    run: Run,
    load: Load,
    experiment: str,
    name: str,
    row: Row,
    *,
    subsets: int,
    part: int | None,
    scale: str = "raw",
    features: str = "pixels",
) -> None:
    """Write the scores of a row; slow rows in parts of images."""
    images = load(run)

    def explain(chosen: Array, seed: int) -> dict[str, Any]:
        options: dict[str, Any] = {"subsets": subsets, "scale": scale, "features": features, "seed": seed}
        return explain_images(images, chosen, row, **options)

    scores = run.results / experiment / f"{file_name(name)}.npz"
    scores.parent.mkdir(parents=True, exist_ok=True)
    partial = scores.with_suffix(".part.npz")
    size = part if part and row.method in SLOW else len(images.images)
    explain_in_parts(partial, images.images, size, explain)
    partial.rename(scores)


def measure_row(
    run: Run, load: Load, experiment: str, name: str, row: Row, *, judge: dict[str, Any]
) -> list[dict[str, Any]]:
    """Measure a row by all criteria; signed scores twice, in their order and in that of their magnitude."""
    images, rows = load(run), Rows(experiment)
    stored = dict(np.load(run.results / experiment / f"{file_name(name)}.npz"))
    rows.add(name, "passes", stored["passes"])
    rows.add(name, "seconds", [float(stored["seconds"])])
    rows.add(name, "failed", [int(stored["failed"])])
    scores = stored["scores"].astype(np.float32)
    own = Judge(images.model, images.module, images.images, **judge)
    own.measure(name, scores, rows)
    if row.signed:
        own.measure(name + MAGNITUDE, np.abs(scores), rows)
    return rows.rows


def file_name(row: str) -> str:
    """Return the name of a row as that of a file."""
    return re.sub(r"[^a-z0-9]+", "-", row.replace("%", " percent")).strip("-")
