"""Variants of LIME on a convolutional network, where it is less sufficient than in the paper's Table 2.

Of each image the k pixels with the highest scores are kept, as many as at a sparsity. The paper used
Captum's LIME: masks that keep each pixel with probability 1/2, weights exp(−D²/2) by the cosine distance D
of the images, and a lasso with α = 0.01. It is reimplemented here because the library's LIME draws the number
of removed features uniformly and fits a ridge regression, as the lime package does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import pertinent
from experiments.hsieh2021.mnist import load
from experiments.magnex.fits import PIXELS
from experiments.magnex.measuring import explain, measure, top
from experiments.magnex.sets import images
from experiments.shared.stages import Run
from pertinent.array_types import Floats, Masks

SAMPLES = 1500
LASSO = 0.01
Explain = Callable[[Any, Any, int], Floats]
"""Function from a model, an image and a seed to scores of pixels."""


def ours(samples: int = SAMPLES, **settings: Any) -> Explain:
    """Return the library's LIME."""

    def scores(model: Any, image: Any, seed: int) -> Floats:
        options = {**PIXELS, **settings}
        e = pertinent.explain(model, image, "lime", samples=samples, seed=seed, progress=False, **options)
        return of_pixels(e.scores, options["features"])

    return scores


def of_pixels(scores: Floats, features: str) -> Floats:
    """Return scores of patches as scores of their pixels; scores of pixels as they are."""
    if features == "pixels":
        return scores
    size = int(features.partition(":")[2])
    side = round(len(scores) ** 0.5)
    return np.kron(scores.reshape(side, side), np.ones((size, size))).ravel()


def captums(*, share: float | None, fit: str, logit: bool) -> Explain:
    """Return LIME with other masks, another regression, or another scale.

    With a `share` each pixel is kept with that probability (Captum: 1/2); without, a uniform number is kept.
    """

    def scores(model: Any, image: Any, seed: int) -> Floats:
        rng = np.random.default_rng(seed)
        kept = rng.random((SAMPLES, image.size)) < (rng.random((SAMPLES, 1)) if share is None else share)
        masked = np.where(kept, image.ravel(), 0.0).reshape(-1, *image.shape).astype(np.float32)
        answers = answers_of(model, np.concatenate([image[None], masked]), logit=logit)
        target = int(answers[0].argmax())
        return regress(kept, answers[1:, target], similarity(image, masked), fit)

    return scores


def answers_of(model: Any, images: Any, *, logit: bool) -> Floats:
    """Return logits or probabilities of images."""
    import torch

    with torch.inference_mode():
        answer = model.module(torch.from_numpy(images).to(model.device))
    return np.asarray((answer if logit else answer.softmax(-1)).cpu().numpy(), dtype=np.float64)


def similarity(image: Any, masked: Any) -> Floats:
    """Return Captum's weight exp(−D²/2), where D is the cosine distance from the whole image."""
    whole, rows = image.ravel(), masked.reshape(len(masked), -1)
    length = np.linalg.norm(rows, axis=1) * np.linalg.norm(whole)
    cosine = rows @ whole / np.maximum(length, 1e-12)
    return np.asarray(np.exp(-((1 - cosine) ** 2) / 2))


def regress(kept: Masks, values: Floats, weight: Floats, fit: str) -> Floats:
    """Return the coefficients of a weighted lasso or ridge regression on masks."""
    from sklearn.linear_model import Lasso, Ridge

    regression = Lasso(LASSO) if fit == "lasso" else Ridge(1.0)
    regression.fit(kept.astype(float), values, sample_weight=weight)
    return np.asarray(regression.coef_)


VARIANTS: dict[str, Explain] = {
    "as in the table": ours(),
    "5,000 samples": ours(5000),
    "logits": ours(scale="logit"),
    "patches of 2 × 2": ours(features="patches:2"),
    "patches of 4 × 4": ours(features="patches:4"),
    "removed pixels are grey (0.5)": ours(removal="constant:value=0.5"),
    "Captum's: half kept, lasso, probabilities": captums(share=0.5, fit="lasso", logit=False),
    "Captum's, logits": captums(share=0.5, fit="lasso", logit=True),
    "half kept, ridge, probabilities": captums(share=0.5, fit="ridge", logit=False),
    "half kept, ridge, logits": captums(share=0.5, fit="ridge", logit=True),
    "uniform number kept, lasso, probabilities": captums(share=None, fit="lasso", logit=False),
}


def sufficiency(model: Any, inputs: Sequence[Any], lime: Explain, k: int) -> tuple[list[float], list[int]]:
    """Return the sufficiency of the top k pixels of each image, and the number of nonzero scores."""
    scores = [lime(model, image, 0) for image in inputs]
    explanations = explain(model, inputs, "random", **PIXELS)
    result = measure(model, explanations, [top(row, k) for row in scores])
    return result["sufficiency"], [int((row != 0).sum()) for row in scores]


def measure_lime(run: Run, weights: Path, n: int, sparsity: float) -> Iterator[dict[str, Any]]:
    """Measure every variant, and yield the record after each."""
    model = load(weights, run.device)
    inputs = list(images(run.data, "test", n)[0])
    k = round((1 - sparsity) * inputs[0].size)
    result: dict[str, Any] = {}
    for name, lime in VARIANTS.items():
        start = time.perf_counter()
        values, used = sufficiency(model, inputs, lime, k)
        seconds = (time.perf_counter() - start) / len(inputs)
        result[name] = {"sufficiency": values, "used": used, "seconds an image": seconds, "k": k}
        print(f"{name}: {np.mean(values):.3f}, {np.mean(used):.0f} pixels used", flush=True)
        yield result
