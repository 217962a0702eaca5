"""A random forest on a table: it has no gradients, so attacks ask only for decisions (App. B)."""

from __future__ import annotations

import time
from functools import cache
from typing import Any

import numpy as np

import pertinent
from experiments.hsieh2021.criteria import area, relevant_sets
from experiments.hsieh2021.records import Rows
from experiments.hsieh2021.rows import LARGEST
from experiments.shared.stages import Run
from pertinent.array_types import Floats

EXPERIMENT = "forest"
TRAINED = 400
"""Rows that the forest learns from."""
BATCH = 100_000
"""Rows in a batch: a call of the forest is expensive, a row is not."""

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
METRIC_REMOVALS = ("mean", "uniform-noise:samples=10")


@cache
def load() -> tuple[Any, Any, Any, float]:
    """Return the forest, the background, the test rows, and the accuracy."""
    from sklearn.datasets import load_breast_cancer
    from sklearn.ensemble import RandomForestClassifier

    data = load_breast_cancer(as_frame=True)
    order = np.random.default_rng(0).permutation(len(data.target))
    train, test = order[:TRAINED], order[TRAINED:]
    forest = RandomForestClassifier(30, max_depth=6, random_state=0)
    forest.fit(data.data.iloc[train], data.target.iloc[train])
    accuracy = forest.score(data.data.iloc[test], data.target.iloc[test])
    return forest, data.data.iloc[train[:100]], data.data.iloc[test], accuracy


def areas_of_radii(model: Any, inputs: Any, scores: Floats, reach: Floats) -> dict[str, Floats]:
    """Return areas under the radii of attacks on relevant and irrelevant columns.

    Where no attack was found, the radius is `reach`.
    """
    relevant = relevant_sets(scores)
    n = relevant.shape[1]
    sets = list(np.concatenate([relevant, ~relevant], axis=1))
    attacks: Any = pertinent.attack_radius(model, inputs, sets, batch_size=BATCH, progress=False)
    radii = np.array([attack.radii for attack in attacks])
    limited = np.where(np.isfinite(radii), radii, reach[:, None])
    return {
        "robustness of relevant": area(limited[:, :n]),
        "robustness of irrelevant": area(limited[:, n:]),
        "relevant without attack": np.isinf(radii[:, :n]).mean(axis=1),
        "irrelevant without attack": np.isinf(radii[:, n:]).mean(axis=1),
    }


def measure(run: Run, name: str, n_inputs: int, subsets: int) -> list[dict[str, Any]]:
    """Explain and measure one row."""
    forest, background, test, accuracy = load()
    model, inputs = pertinent.wrap(forest, background=background), test[:n_inputs]
    units = (inputs.to_numpy() - background.to_numpy().mean(axis=0)) / background.to_numpy().std(axis=0)
    method, settings = ROWS[name]
    settings = settings | ({"subsets": subsets} if method in SUBSETS else {})
    removal, start = REMOVALS.get(method, "mean"), time.perf_counter()
    explanations = pertinent.explain(
        model, inputs, method, removal=removal, batch_size=BATCH, progress=False, **settings
    )
    seconds = time.perf_counter() - start
    rows = Rows(EXPERIMENT)
    scores = np.array([e.scores for e in explanations])
    for metric, values in areas_of_radii(model, inputs, scores, np.linalg.norm(units, axis=1)).items():
        rows.add(name, metric, values)
    for removal in METRIC_REMOVALS:
        evaluation = pertinent.evaluate(
            model, explanations, ("insertion", "deletion"), removal=removal, progress=False
        )
        for metric in evaluation.better:
            values = [row.value for row in evaluation.rows if row.metric == metric]
            rows.add(name, metric, values, removal=removal.partition(":")[0])
    rows.add(name, "passes", [e.evaluations for e in explanations])
    rows.add(name, "seconds", [seconds / len(inputs)])
    rows.add(name, "accuracy", [accuracy])
    return rows.rows
