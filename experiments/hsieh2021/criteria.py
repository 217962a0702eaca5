"""The paper's criteria for explanations of images: radii of attacks, and logits as pixels are removed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch

import pertinent
from experiments.hsieh2021.records import Rows
from experiments.hsieh2021.rows import SIZES
from pertinent.array_types import Array, Floats, Ints, Masks
from pertinent.explainers.base import n_kept
from pertinent.explainers.robustness.base import ABSENT
from pertinent.inputs.image import image_input
from pertinent.results.explanation import Explanation

REFERENCES: tuple[float | str, ...] = ("uniform", 0.0, 0.25, 0.5, 0.75, 1.0)
"""Reference values of removed pixels: drawn uniformly from 0 to 1, or constant."""

DRAWS = 10
"""Draws of uniform values for each mask."""

LOGITS = CLASS_LOGIT, MAXIMUM_LOGIT = " logit", " maximum logit"
"""Suffixes of insertion and deletion: the logit that they measure.

The authors have not published the code of these criteria. Their areas are all positive, which the maximum
logit fits better than the logit of the predicted class.
"""

SHOWN = 0.2
"""Share of pixels that pictures show."""

REMOVALS = {
    reference: "uniform-noise:low=0,high=1,samples=10"
    if reference == "uniform"
    else f"constant:value={reference}"
    for reference in REFERENCES
}


@dataclass(frozen=True, eq=False)
class Judge:
    """Measures of scores (images, features) of the same images.

    Attributes
    ----------
    attack_steps
        Steps of the attacks whose radii are measured.
    features
        Pixels, or squares of them.
    probabilities
        Whether insertion and deletion are also measured by the library's metrics.
    """

    model: Any
    module: torch.nn.Module
    images: Array
    attack_steps: int = 20
    features: str = "pixels"
    probabilities: bool = True
    batch: int = 2048

    def measure(self, name: str, scores: Floats, rows: Rows) -> None:
        """Add all criteria of one row."""
        relevant = relevant_sets(scores)
        for reference in REFERENCES:
            for kind, kept in (("insertion", relevant), ("deletion", ~relevant)):
                for logit, curves in self.logits(kept, reference).items():
                    rows.add(name, kind + logit, curves, reference=reference)
        for kind, radii in self.radii(relevant).items():
            rows.add(name, f"robustness of {kind}", radii)
        if self.features == "pixels":
            shape = self.images.shape[-2:]
            rows.add(name, "pieces", count_components(relevant[:, SIZES.index(SHOWN)], shape))
        if not self.probabilities:
            return
        explanations = self.explanations(scores)
        for reference, removal in REMOVALS.items():
            evaluation = pertinent.evaluate(
                self.model, explanations, ("insertion", "deletion"), removal=removal, progress=False
            )
            for metric in evaluation.better:
                values = [row.value for row in evaluation.rows if row.metric == metric]
                rows.add(name, metric, values, reference=reference)

    def radii(self, relevant: Masks) -> dict[str, Floats]:
        """Return the radii (images, sizes) of attacks on the relevant pixels, and on all others."""
        n = relevant.shape[1]
        attacks: Any = pertinent.attack_radius(
            self.model,
            list(self.images),
            list(np.concatenate([relevant, ~relevant], axis=1)),
            features=self.features,
            steps=self.attack_steps,
            progress=False,
        )
        radii = np.array([attack.radii for attack in attacks])
        largest = np.where(np.isfinite(radii), radii, 0.0).max(axis=1, keepdims=True)
        radii = np.where(np.isfinite(radii), radii, ABSENT * largest)  # as in the library's criteria
        return {"relevant": radii[:, :n], "irrelevant": radii[:, n:]}

    def logits(self, kept: Masks, reference: float | str) -> dict[str, Floats]:
        """Return the logit of the predicted class and the maximum logit with only the features `kept`.

        Both are (images, sizes); with noise they are means over draws.
        """
        device = next(self.module.parameters()).device
        generator = torch.Generator(device).manual_seed(0)
        labels = torch.from_numpy(image_input(self.images[0], self.features).labels)
        total = {logit: np.zeros(kept.shape[:2]) for logit in LOGITS}
        draws = DRAWS if reference == "uniform" else 1
        size = max(1, self.batch // kept.shape[1])
        for _ in range(draws):
            for first in range(0, len(kept), size):
                part = slice(first, first + size)
                sets = torch.from_numpy(kept[part])[:, :, labels][:, :, None].to(device)
                images = torch.from_numpy(self.images[part])[:, None].to(device)
                shape = torch.broadcast_shapes(sets.shape, images.shape)
                other = (
                    torch.rand(shape, generator=generator, device=device)
                    if reference == "uniform"
                    else torch.tensor(reference, device=device)
                )
                answer = self._answer(torch.where(sets, images, other).flatten(0, 1))
                answer = answer.reshape(*shape[:2], -1)
                predicted = self.predicted[part][:, None, None]
                total[CLASS_LOGIT][part] += np.take_along_axis(answer, predicted, axis=2)[:, :, 0]
                total[MAXIMUM_LOGIT][part] += answer.max(axis=2)
        return {logit: curves / draws for logit, curves in total.items()}

    @cached_property
    def predicted(self) -> Array:
        """Return the class predicted for each image."""
        return np.asarray(self._answer(torch.from_numpy(self.images)).argmax(axis=1))

    @cached_property
    def _plain(self) -> Any:
        return pertinent.explain(
            self.model, list(self.images), "random", features=self.features, progress=False
        )

    def explanations(self, scores: Floats) -> list[Explanation]:
        """Return explanations with these scores."""
        return [replace(e, scores=row) for e, row in zip(self._plain, scores, strict=True)]

    def _answer(self, rows: torch.Tensor) -> Array:
        device = next(self.module.parameters()).device
        with torch.inference_mode():
            parts = [self.module(part.to(device)).cpu() for part in rows.split(self.batch)]
        return torch.cat(parts).numpy()


def count_components(relevant: Masks, shape: Sequence[int]) -> Ints:
    """Count the connected components of each set of pixels (images, pixels), diagonals included.

    The paper calls explanations noisy if their pixels are scattered (Figure 9).
    """
    from scipy.ndimage import label

    neighbours = np.ones((3, 3))
    return np.array([label(mask.reshape(shape), neighbours)[1] for mask in relevant])


def relevant_sets(scores: Floats) -> Masks:
    """Return the pixels with the largest scores (images, sizes, pixels)."""
    n_pixels = scores.shape[1]
    order = np.argsort(-scores, axis=1, kind="stable")
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.arange(n_pixels)[None], axis=1)
    counts = np.array([n_kept(share, n_pixels) for share in SIZES])
    return rank[:, None] < counts[None, :, None]


def area(curves: Floats) -> Floats:
    """Return the area under curves (…, sizes) over the share of relevant pixels in percent (Sec. 3.2)."""
    return np.asarray(np.trapezoid(curves, 100 * np.array(SIZES), axis=-1))
