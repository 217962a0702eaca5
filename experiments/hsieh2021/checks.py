"""Sanity check (App. I), sensitivity (App. J) and targeted explanations (Figure 5) of MNIST."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import pertinent
from experiments.hsieh2021.criteria import SHOWN, relevant_sets
from experiments.hsieh2021.images import ImageSet, Load, settings_of
from experiments.hsieh2021.mnist import load
from experiments.hsieh2021.records import Rows
from experiments.hsieh2021.rows import ROWS, SIZES
from experiments.shared.data import read_images
from experiments.shared.stages import Run
from pertinent.diagnostics.sanity import Correlation, correlation
from pertinent.explainers.base import Explainer, explainers
from pertinent.explainers.robustness.base import AttackExplainer
from pertinent.models.torch.randomised import RandomisedModel, layers_of

CHOSEN = 0.2
"""Share of pixels that is compared (App. J), and that Greedy-AS chooses."""
CHECKED = (
    "random",
    "gradient",
    "integrated-gradients",
    "expected-gradients",
    "leave-one-out",
    "counterfactual",
    "meaningful-perturbation",
    "greedy-as",
    "greedy-as, relevant",
    "shapley-sampling",
    "shapley",
)
DIGITS = {7: (9, 2), 1: (7, 4), 0: (6, 9), 5: (3, 6)}
"""Digits, and other digits that they are explained towards."""


def correlations(images: ImageSet, method: Explainer, options: Mapping[str, Any]) -> Sequence[Correlation]:
    """Return the correlations with explanations of the network with a random last layer.

    Attacks change the predicted class, which a random layer changes: they explain its prediction.
    """
    inputs = list(images.images)
    if not isinstance(method, AttackExplainer):
        return pertinent.sanity(images.model, inputs, method, layers="last", **options).rows
    copied = RandomisedModel(images.model, 0)
    copied.randomise(layers_of(images.model)[0])
    plain, random = (
        pertinent.explain(model, inputs, method, **options) for model in (images.model, copied.model)
    )
    by_index = {e.index: e for e in random}
    return [correlation(e, by_index[e.index], 1) for e in plain if e.index in by_index]


def check_row(
    run: Run, load_images: Load, name: str, *, experiment: str, moved: int, samples: int, subsets: int
) -> list[dict[str, Any]]:
    """Measure the correlations, of scores and of magnitudes, and the sensitivity of a row."""
    images, row, rows = load_images(run), ROWS[name], Rows(experiment)
    settings = settings_of(row, subsets, "raw")
    settings |= {"chosen": CHOSEN} if "chosen" in settings else {}
    options: dict[str, Any] = {"removal": "constant", "features": "pixels", "progress": False}
    options |= {key: settings.pop(key) for key in ("budget", "scale") if key in settings}
    method = explainers.get(row.method)(**settings)
    found = correlations(images, method, options)
    rows.add(name, "sanity", [one.spearman for one in found])
    rows.add(name, "sanity of magnitudes", [one.absolute for one in found])
    near = list(images.images[:moved])
    sensitivity = pertinent.sensitivity(
        images.model, near, method, samples=samples, sparsity=CHOSEN, **options
    )
    rows.add(name, "sensitivity", [one.value for one in sensitivity.rows])
    return rows.rows


def explain_towards(run: Run, weights: Path, experiment: str, subsets: int) -> None:
    """Explain the first test image of each digit towards other digits.

    The file has images, scores of pixels, and how an attack on only the relevant pixels changes them.
    """
    model = load(weights, run.device)
    images, labels = read_images(run.data / "mnist", "t10k")
    options: dict[str, Any] = {"features": "pixels", "progress": False}
    rows = []
    for digit, targets in DIGITS.items():
        image = images[np.flatnonzero(labels == digit)[0]]
        for target in targets:
            toward = {"toward": str(target)}
            e = pertinent.explain(
                model, image, "greedy-as", chosen=SHOWN, subsets=subsets, **toward, **options
            )
            relevant = relevant_sets(e.scores[None])[0, SIZES.index(SHOWN)]
            attack: Any = pertinent.attack_radius(model, image, relevant, **toward, **options)
            print(f"{digit} → {target}: radius {attack.radii[0]:.2f}", flush=True)
            rows.append((image, digit, target, e.scores, attack.changes[0]))
    names = ("images", "digits", "targets", "scores", "changes")
    arrays: dict[str, Any] = {
        name: np.array(values) for name, values in zip(names, zip(*rows, strict=True), strict=True)
    }
    path = run.results / experiment / "targeted.npz"
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, **arrays)
