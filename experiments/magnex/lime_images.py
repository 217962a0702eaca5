"""Why LIME is less sufficient on a convolutional network than in the paper's Table 2.

    python experiments/magnex/lime_images.py --data PACKED --cnn WEIGHTS --out lime_images.json

Of each image the k pixels with the highest scores are kept, as many as at the sparsity of `--sparsity`. The
paper used Captum's LIME: masks that keep each pixel with probability 1/2, weights exp(−D²/2) by the cosine
distance D of the images, and a lasso with α = 0.01. It is written again here, since the library's LIME draws
the number of removed features uniformly, and fits a ridge regression, as the lime package does.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import models
import numpy as np
from sets import images
from stages import PIXELS, top
from variants import measured

import pertinent
from pertinent.array_types import Floats, Masks

SAMPLES = 1500
LASSO = 0.01
Explain = Callable[[Any, Any, int], Floats]
"""From a model, an image and a seed to scores of pixels."""


def ours(samples: int = SAMPLES, **settings: Any) -> Explain:
    """The library's LIME."""

    def scores(model: Any, image: Any, seed: int) -> Floats:
        options = {**PIXELS, **settings}
        found = pertinent.explain(model, image, "lime", samples=samples, seed=seed, progress=False, **options)
        return of_pixels(found.scores, options["features"])

    return scores


def of_pixels(scores: Floats, features: str) -> Floats:
    """Scores of patches as scores of their pixels; of pixels as they are."""
    if features == "pixels":
        return scores
    size = int(features.partition(":")[2])
    side = round(len(scores) ** 0.5)
    return np.kron(scores.reshape(side, side), np.ones((size, size))).ravel()


def drawn(
    *, share: float | None, fit: str, logit: bool, samples: int = SAMPLES, reference: float = 0.0
) -> Explain:
    """LIME in parts: how masks are drawn, what is fitted, and on which scale.

    With a `share` each pixel is kept with that probability (Captum: 1/2); else a uniform number is.
    """

    def scores(model: Any, image: Any, seed: int) -> Floats:
        rng = np.random.default_rng(seed)
        kept = rng.random((samples, image.size)) < (rng.random((samples, 1)) if share is None else share)
        shown = np.where(kept, image.ravel(), reference).reshape(-1, *image.shape).astype(np.float32)
        answers = answered(model, np.concatenate([image[None], shown]), logit=logit)
        target = int(answers[0].argmax())
        weight = similarity(image, shown)
        return fitted(kept, answers[1:, target], weight, fit)

    return scores


def answered(model: Any, shown: Any, *, logit: bool) -> Floats:
    """Logits or probabilities of images."""
    import torch

    with torch.inference_mode():
        found = model.module(torch.from_numpy(shown).to(model.device))
    return np.asarray((found if logit else found.softmax(-1)).cpu().numpy(), dtype=np.float64)


def similarity(image: Any, shown: Any) -> Floats:
    """exp(−D²/2) by the cosine distance D of each image from the whole one, as Captum weighs samples."""
    whole, rows = image.ravel(), shown.reshape(len(shown), -1)
    length = np.linalg.norm(rows, axis=1) * np.linalg.norm(whole)
    cosine = rows @ whole / np.maximum(length, 1e-12)
    return np.asarray(np.exp(-((1 - cosine) ** 2) / 2))


def fitted(kept: Masks, values: Floats, weight: Floats, fit: str) -> Floats:
    """The coefficients of a weighted lasso or ridge regression on masks."""
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
    "Captum's: half kept, lasso, probabilities": drawn(share=0.5, fit="lasso", logit=False),
    "Captum's, logits": drawn(share=0.5, fit="lasso", logit=True),
    "half kept, ridge, probabilities": drawn(share=0.5, fit="ridge", logit=False),
    "half kept, ridge, logits": drawn(share=0.5, fit="ridge", logit=True),
    "uniform number kept, lasso, probabilities": drawn(share=None, fit="lasso", logit=False),
}


def sufficiency(model: Any, inputs: Sequence[Any], explain: Explain, k: int) -> tuple[list[float], list[int]]:
    """The sufficiency of the top k pixels of each image, and how many scores are not zero."""
    scores = [explain(model, image, 0) for image in inputs]
    found = list(pertinent.explain(model, list(inputs), "random", progress=False, **PIXELS))
    kept = measured(model, found, [top(own, k) for own in scores])
    return kept["sufficiency"], [int((own != 0).sum()) for own in scores]


def main() -> None:
    """Measure every variant that is not in the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--cnn", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--images", type=int, default=60)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--sparsity", type=float, default=0.907, help="that of magnex in the table")
    arguments = parser.parse_args()
    model = models.cnn(arguments.cnn, arguments.device)
    inputs = list(images(arguments.data, "test", arguments.images)[0])
    k = round((1 - arguments.sparsity) * inputs[0].size)
    made = json.loads(arguments.out.read_text()) if arguments.out.is_file() else {}
    for name, explain in VARIANTS.items():
        if name not in made:
            start = time.perf_counter()
            values, used = sufficiency(model, inputs, explain, k)
            seconds = (time.perf_counter() - start) / len(inputs)
            made[name] = {"sufficiency": values, "used": used, "seconds an image": seconds, "k": k}
            print(f"{name}: {np.mean(values):.3f}, {np.mean(used):.0f} pixels used", flush=True)
            arguments.out.write_text(json.dumps(made))


if __name__ == "__main__":
    main()
