"""Stability, error and cost of Shapley values on a sentiment classifier, sampled and amortized.

    python experiments/yang2023/run.py --model FOLDER --data DATA --out RESULTS.json

`--model` is a fine-tuned classifier (`experiments/hase2021/fine_tune.py` makes one), `--data` a folder with
`sst2` as in `experiments/hase2021`. Scores are of logits and features are tokens, as in the paper.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import pertinent
from pertinent.models.embedded.load import load_transformer
from pertinent.results.agreement import spearman
from pertinent.results.explanation import Explanations

sys.path.insert(0, str(Path(__file__).parents[1] / "hase2021"))

from data import read

METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "SVS-25": ("shapley-sampling", {"samples": 25}),
    "KS-200": ("kernel-shap", {"samples": 200}),
    "KS-2000": ("kernel-shap", {"samples": 2000}),
    "shapley, 200": ("shapley", {"budget": 202}),
    "shapley, 500": ("shapley", {"budget": 502}),
    "shapley, 2000": ("shapley", {"budget": 2002}),
}
REFINED = (1, 2, 3, 5, 10, 25)
OPTIONS: dict[str, Any] = {"features": "tokens", "scale": "logit", "progress": False}


def main() -> None:
    """Measure everything and write one JSON file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--texts", type=int, default=200, help="test texts")
    parser.add_argument("--fit", type=int, default=3000, help="training texts of the amortized model")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--reference", type=int, default=500, help="permutations of the reference values")
    parser.add_argument("--epochs", type=int, default=10)
    arguments = parser.parse_args()
    model = load_transformer(arguments.model, device=arguments.device)
    test = [
        e["text"] for e in read(arguments.data, "sst2", "test", None).examples if len(e["text"].split()) > 8
    ]
    test = test[: arguments.texts]
    results: dict[str, Any] = {"texts": len(test), "seeds": arguments.seeds}
    truth = pertinent.explain(
        model, test, "shapley-sampling", samples=arguments.reference, seed=99, **OPTIONS
    )
    results["reference"] = {
        "permutations": arguments.reference,
        "tokens": _mean(len(e.features) for e in truth),
    }
    results["methods"] = {
        name: sampled(model, test, method, settings, seeds=arguments.seeds, truth=truth)
        for name, (method, settings) in METHODS.items()
    }
    _write(arguments.out, results)
    texts = long_enough(read(arguments.data, "sst2", "train", None))[: arguments.fit]
    start = time.perf_counter()
    references = pertinent.explain(model, texts, "shapley-sampling", samples=25, **OPTIONS)
    results["fit"] = {"texts": len(texts), "reference seconds": time.perf_counter() - start}
    start = time.perf_counter()
    fitted = pertinent.fit(model, texts, references=references, dev=0.1, epochs=arguments.epochs, **OPTIONS)
    results["fit"]["training seconds"] = time.perf_counter() - start
    results["fit"]["dev spearman"] = fitted.network.card["dev_spearman"]
    results["amortized"] = compared(pertinent.explain(model, test, fitted, **OPTIONS), truth)
    results["refined"] = {}
    for m in REFINED:
        rows = {
            "refined": [
                pertinent.explain(model, test, fitted.refined(m), seed=seed, **OPTIONS)
                for seed in range(arguments.seeds)
            ],
            "sampling": [
                pertinent.explain(model, test, "shapley-sampling", samples=m, seed=seed, **OPTIONS)
                for seed in range(arguments.seeds)
            ],
        }
        results["refined"][str(m)] = {
            name: {
                key: _mean(compared(found, truth)[key] for found in several)
                for key in ("spearman", "squared error", "evaluations")
            }
            for name, several in rows.items()
        }
    _write(arguments.out, results)


def long_enough(split: Any) -> list[str]:
    """Texts of more than eight words."""
    return [e["text"] for e in split.examples if len(e["text"].split()) > 8]


def sampled(
    model: Any, texts: list[str], method: str, settings: dict[str, Any], *, seeds: int, truth: Explanations
) -> dict[str, float]:
    """Stability over seeds, and the agreement with the reference."""
    start = time.perf_counter()
    found = [
        pertinent.explain(model, texts, method, seed=seed, **settings, **OPTIONS) for seed in range(seeds)
    ]
    seconds = time.perf_counter() - start
    between = []
    for of_one in zip(*found, strict=True):
        ranks = spearman(np.stack([e.scores for e in of_one]))
        between.append(ranks[np.triu_indices(len(of_one), 1)].mean())
    row = {key: _mean(compared(one, truth)[key] for one in found) for key in compared(found[0], truth)}
    return row | {"between seeds": _mean(between), "seconds per text": seconds / seeds / len(texts)}


def compared(found: Explanations, truth: Explanations) -> dict[str, float]:
    """Rank correlation and mean squared error against the reference, and evaluations."""
    assert len(found) == len(truth), found.failures[:1]
    pairs = list(zip(found, truth, strict=True))
    inside = [
        abs(e.scores - t.scores) <= 1.96 * np.hypot(e.standard_errors, t.standard_errors)
        for e, t in pairs
        if e.standard_errors is not None and t.standard_errors is not None
    ]
    return {
        "spearman": _mean(spearman(np.stack([e.scores, t.scores]))[0, 1] for e, t in pairs),
        "squared error": _mean(((e.scores - t.scores) ** 2).mean() for e, t in pairs),
        "evaluations": _mean(e.evaluations for e in found),
        "coverage": float(np.mean(np.concatenate(inside))) if inside else float("nan"),
    }


def _mean(values: Any) -> float:
    return float(np.nanmean(list(values)))


def _write(path: Path, results: dict[str, Any]) -> None:
    path.write_text(json.dumps(results, indent=1))
    print(f"written: {path}", flush=True)


if __name__ == "__main__":
    main()
