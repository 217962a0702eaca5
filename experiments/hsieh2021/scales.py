"""Comparison of gradients of a probability, of its log-odds, and of logits, by the library's metrics."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import pertinent
from experiments.hsieh2021.mnist import load, random_test_images
from experiments.hsieh2021.records import Records, Rows
from experiments.shared.data import read_packed, read_parquet
from experiments.shared.intervals import difference, show, verdict
from experiments.shared.pages import table
from experiments.shared.stages import Run

SCALES = ("natural", "logit", "raw")
METHODS: dict[str, dict[str, Any]] = {
    "gradient": {},
    "gradient-x-input": {},
    "integrated-gradients": {"points": 25},
}
METRICS = ("sufficiency", "comprehensiveness", "insertion", "deletion")
LOWER = ("sufficiency", "deletion")
SATURATED = 0.99
"""Probability above which a prediction is saturated."""
MODELS = {
    "sentiment": "sst2/dev",
    "topics": "ag_news/test",
    "the authors' network, MNIST": None,
}
"""Embedded models with their texts, and a network of images."""


def read_texts(folder: Path, name: str, n: int) -> list[str]:
    """Return random texts of 8 to 40 words."""
    rows = read_packed(folder, name, lambda: read_parquet(folder / name))
    texts = [row["text"] for row in rows if 8 <= len(row["text"].split()) <= 40]
    return [texts[i] for i in np.random.default_rng(0).permutation(len(texts))[:n]]


def measure(run: Run, name: str, weights: Path, n: int) -> list[dict[str, Any]]:
    """Explain inputs by each method on each scale, and measure the explanations."""
    file, options, inputs = MODELS[name], {}, []
    if file is None:
        model: Any = load(weights, run.device)
        inputs = list(random_test_images(run.data / "mnist", n))
        options = {"features": "pixels", "removal": "constant"}
    else:
        model, inputs = pertinent.load(name), read_texts(run.data, file, n)
    rows = Rows(name)
    for method, settings in METHODS.items():
        if method == "gradient" and file is not None:
            settings = settings | {"reduce": "length"}  # BERT's gradients sum to 0
        for scale in SCALES:
            explanations = pertinent.explain(
                model, inputs, method, scale=scale, progress=False, **settings, **options
            )
            if method == "gradient" and scale == "natural":
                rows.add("–", "probability", [float(e.prediction.values[e.target]) for e in explanations])
            evaluation = pertinent.evaluate(model, explanations, METRICS, progress=False)
            for metric in METRICS:
                by_input: dict[int, list[float]] = {}
                for row in evaluation.rows:
                    if row.metric == metric:
                        by_input.setdefault(explanations[row.explanation].index, []).append(row.value)
                means = [np.mean(by_input[i]) if i in by_input else np.nan for i in range(len(inputs))]
                rows.add(method, metric, means, scale=scale)
            print(f"{method}, {scale}: measured", flush=True)
    return rows.rows


def scales_table(records: Records) -> str:
    """Return by how much each scale is better than probabilities, in hundredths."""
    rows = []
    for name in MODELS:
        p = records.values(name, "–", "probability")
        for method in METHODS if p is not None else ():
            for scale in SCALES[1:]:
                label = f"{name} ({(p > SATURATED).mean():.0%} with p > {SATURATED})"
                cells = [gain(records, name, method, metric, scale) for metric in METRICS]
                rows.append([label, f"`{method}`", f"`{scale}`", *cells])
    return table(["model", "method", "scale", *METRICS], rows)


def gain(records: Records, name: str, method: str, metric: str, scale: str) -> str:
    """Return by how much a scale is better, in hundredths, bold if the 95% interval excludes 0."""
    values = [records.values(name, method, metric, scale=each) for each in (scale, "natural")]
    sign = -100 if metric in LOWER else 100
    gap = difference(*(None if own is None else sign * own for own in values))
    text = show(gap, "+.1f")
    return f"**{text}**" if verdict(gap) in ("win", "loss") else text
