"""Should gradient methods follow a probability or its log-odds? Measured by the library's own metrics.

    python experiments/hsieh2021/scales.py --data DATA --weights mnist_cnn.safetensors --results RESULTS

`DATA` holds ``sst2``, ``ag_news`` and ``mnist``; WEIGHTS are the authors' network. The other models are
embedded. Writes RESULTS/scales.jsonl, and the table into README.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from mnist import read_network, wrapped
from records import Records, Writer, difference, fill_in, table
from run import chosen_images

import pertinent
from pertinent.array_types import Array

SCALES = ("natural", "logit", "raw")
METHODS: dict[str, dict[str, Any]] = {
    "gradient": {},
    "gradient-x-input": {},
    "integrated-gradients": {"points": 25},
}
METRICS = ("sufficiency", "comprehensiveness", "insertion", "deletion")
LOWER = ("sufficiency", "deletion")
SATURATED = 0.99
"""The probability from which on a prediction counts as saturated."""
PAGE = Path(__file__).parent / "README.md"


def texts(path: Path, n: int) -> list[str]:
    """Random texts of 8 to 40 words."""
    import pandas as pd

    every = [text for text in pd.read_parquet(path)["text"] if 8 <= len(text.split()) <= 40]
    return [every[i] for i in np.random.default_rng(0).permutation(len(every))[:n]]


def models(data: Path, weights: Path, n: int) -> Iterator[tuple[str, Any, list[Any], dict[str, Any]]]:
    """Name, model, inputs, and how they are explained."""
    yield "sentiment", pertinent.load("sentiment"), texts(data / "sst2" / "dev.parquet", n), {}
    yield "topics", pertinent.load("topics"), texts(data / "ag_news" / "test.parquet", n), {}
    images: Array = chosen_images(data / "mnist", n)
    pixels = {"features": "pixels", "removal": "constant"}
    yield "the authors' network, MNIST", wrapped(read_network(weights)), list(images), pixels


def measure(name: str, model: Any, inputs: list[Any], options: dict[str, Any], writer: Writer) -> None:
    """Explain by each method on each scale, and write what the metrics say."""
    for method, own_settings in METHODS.items():
        on_text = method == "gradient" and "features" not in options
        settings = own_settings | ({"reduce": "length"} if on_text else {})  # BERT's sums are 0
        for scale in SCALES:
            found = pertinent.explain(
                model, inputs, method, scale=scale, progress=False, **settings, **options
            )
            if method == "gradient" and scale == "natural":
                writer.write("–", "probability", [float(e.prediction.values[e.target]) for e in found])
            judged = pertinent.evaluate(model, found, METRICS, progress=False)
            for metric in METRICS:
                own: dict[int, list[float]] = {}
                for row in judged.rows:
                    if row.metric == metric:
                        own.setdefault(found[row.explanation].index, []).append(row.value)
                values = [np.mean(own[i]) if i in own else np.nan for i in range(len(inputs))]
                writer.write(method, metric, values, scale=scale)
            print(f"{name}, {method}, {scale}: measured", flush=True)


def verdict_rows(records: Records, name: str) -> list[list[str]]:
    """By how much each scale is better than probabilities."""
    p = records.values(name, "–", "probability")
    assert p is not None
    rows = []
    for method in METHODS:
        for scale in SCALES[1:]:
            cells = [
                f"{name} ({(p > SATURATED).mean():.0%} with p > {SATURATED})",
                f"`{method}`",
                f"`{scale}`",
            ]
            for metric in METRICS:
                natural, own = (
                    records.values(name, method, metric, scale=each) for each in ("natural", scale)
                )
                assert natural is not None
                assert own is not None
                cells.append(gain(metric, own, natural))
            rows.append(cells)
    return rows


def gain(metric: str, own: Array, natural: Array) -> str:
    """By how much the first is better, in hundredths, bold if the 95% interval is on one side of 0."""
    sign = -1 if metric in LOWER else 1
    found = difference(100 * sign * own, 100 * sign * natural)
    assert found is not None
    text = f"{found.mean:+.1f} [{found.low:+.1f}, {found.high:+.1f}]"
    return f"**{text}**" if found.low > 0 or found.high < 0 else text


def main() -> None:
    """Measure what is not there, then write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--weights", type=Path, required=True)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--inputs", type=int, default=100)
    parser.add_argument("--page", type=Path, default=PAGE)
    arguments = parser.parse_args()
    arguments.results.mkdir(parents=True, exist_ok=True)
    path = arguments.results / "scales.jsonl"
    names = []
    for name, model, inputs, options in models(arguments.data, arguments.weights, arguments.inputs):
        names.append(name)
        if not path.exists() or not Records(arguments.results, path.name).methods(name):
            measure(name, model, inputs, options, Writer(path, name))
    records = Records(arguments.results, path.name)
    rows = [row for name in names for row in verdict_rows(records, name)]
    fill_in(arguments.page, {"scales": table(["model", "method", "scale", *METRICS], rows)})


if __name__ == "__main__":
    main()
