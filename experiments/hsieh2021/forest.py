"""A random forest on a table: it has no gradients, so attacks ask for decisions alone (App. B).

python experiments/hsieh2021/forest.py --results RESULTS/forest
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from criteria import area, relevant_sets
from records import Writer
from rows import LARGEST
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier

import pertinent
from pertinent.array_types import Floats

EXPERIMENT = "forest"
TRAINED = 400
BATCH = 100_000
"""Rows that the forest learns from, and rows at once: a call of the forest is dear, a row is cheap."""

ROBUST: dict[str, Any] = {"attack_steps": 3}
CHOSEN = ROBUST | {"chosen": LARGEST, "step": 0.1}
ROWS: dict[str, tuple[str, dict[str, Any]]] = {
    "random": ("random", {}),
    "leave-one-out": ("leave-one-out", {}),
    "lime": ("lime", {"budget": 1000}),
    "kernel-shap": ("kernel-shap", {"budget": 1000}),
    "tree-shap": ("tree-shap", {}),
    "shapley": ("shapley", {"budget": 1000}),
    "thompson-search": ("thompson-search", {"budget": 300}),
    "counterfactual": ("counterfactual", {"attack_steps": 10}),
    "greedy": ("greedy", ROBUST | {"chosen": LARGEST}),
    "one-step-banzhaf": ("one-step-banzhaf", ROBUST),
    "greedy-as": ("greedy-as", CHOSEN),
    "greedy-as, relevant": ("greedy-as", CHOSEN | {"criterion": "relevant"}),
}
REMOVALS = {"tree-shap": "background"}
SUBSETS = ("one-step-banzhaf", "greedy-as")


def radii(model: Any, inputs: Any, scores: Floats, reach: Floats) -> dict[str, Floats]:
    """Areas under the radii of attacks on relevant and irrelevant columns; `reach` where none was found."""
    relevant = relevant_sets(scores)
    n = relevant.shape[1]
    sets = list(np.concatenate([relevant, ~relevant], axis=1))
    attacked: Any = pertinent.attack_radius(model, inputs, sets, batch_size=BATCH, progress=False)
    found = np.array([own.radii for own in attacked])
    filled = np.where(np.isfinite(found), found, reach[:, None])
    return {
        "robustness of relevant": area(filled[:, :n]),
        "robustness of irrelevant": area(filled[:, n:]),
        "relevant without attack": np.isinf(found[:, :n]).mean(axis=1),
        "irrelevant without attack": np.isinf(found[:, n:]).mean(axis=1),
    }


def main() -> None:
    """Train, explain and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--inputs", type=int, default=50)
    parser.add_argument("--subsets", type=int, default=60)
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS), metavar="ROW")
    arguments = parser.parse_args()
    arguments.results.mkdir(parents=True, exist_ok=True)
    data = load_breast_cancer(as_frame=True)
    order = np.random.default_rng(0).permutation(len(data.target))
    train, test = order[:TRAINED], order[TRAINED:]
    forest = RandomForestClassifier(30, max_depth=6, random_state=0)
    forest.fit(data.data.iloc[train], data.target.iloc[train])
    accuracy = forest.score(data.data.iloc[test], data.target.iloc[test])
    background = data.data.iloc[train[:100]]
    model = pertinent.wrap(forest, background=background)
    inputs = data.data.iloc[test[: arguments.inputs]]
    units = (inputs.to_numpy() - background.to_numpy().mean(axis=0)) / background.to_numpy().std(axis=0)
    print(f"accuracy {accuracy:.1%} on {len(test)} rows", flush=True)
    for name in arguments.rows:
        path = arguments.results / f"{name.replace(', ', '-')}.jsonl"
        if path.exists():
            continue
        method, settings = ROWS[name]
        settings = settings | ({"subsets": arguments.subsets} if method in SUBSETS else {})
        start = time.perf_counter()
        found = pertinent.explain(
            model,
            inputs,
            method,
            removal=REMOVALS.get(method, "mean"),
            batch_size=BATCH,
            progress=False,
            **settings,
        )
        seconds = time.perf_counter() - start
        writer = Writer(path.with_suffix(".part"), EXPERIMENT)
        writer.path.unlink(missing_ok=True)
        scores = np.array([own.scores for own in found])
        for metric, values in radii(model, inputs, scores, np.linalg.norm(units, axis=1)).items():
            writer.write(name, metric, values)
        for removal in ("mean", "uniform-noise:samples=10"):
            judged = pertinent.evaluate(
                model, found, ("insertion", "deletion"), removal=removal, progress=False
            )
            for metric in judged.better:
                own = [row.value for row in judged.rows if row.metric == metric]
                writer.write(name, metric, own, removal=removal.partition(":")[0])
        writer.write(name, "passes", [own.evaluations for own in found])
        writer.write(name, "seconds", [seconds / len(inputs)])
        writer.write(name, "accuracy", [accuracy])
        writer.path.rename(path)
        print(f"{name}: {seconds / len(inputs):.3f} s a row", flush=True)


if __name__ == "__main__":
    main()
