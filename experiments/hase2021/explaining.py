"""Explanations of one model by every method, and their measures; and the check of removals of Figure 2."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

import pertinent
from experiments.hase2021.data import SETS, read
from experiments.hase2021.methods import (
    AT_A_QUARTER,
    BUDGET,
    FILLER,
    GRID,
    OBJECTIVES,
    REDUCED,
    REMOVALS,
    SEARCHES,
    SPARSITIES,
    salience,
)
from experiments.shared.stages import Run, read_record
from pertinent.metrics.base import metrics
from pertinent.models.embedded.load import load_transformer
from pertinent.removals import Marginalize
from pertinent.results.explanation import Explanations

COMMON = {"features": "tokens", "sparsity": SPARSITIES, "removal": "attention-mask", "progress": False}
DIGITS = 6
"""Digits of probabilities and log-odds in records."""
SHORT = (5, 10)
"""Fewest and most tokens of short sentences, for which all sets can be judged."""


def measure(model: Any, explanations: Explanations, name: str) -> dict[str, list[list[float]]]:
    """Return a metric on both scales, as lists over inputs of values over sparsities."""
    values = {}
    for scale, setting in (("probability", "natural"), ("weight-of-evidence", "weight-of-evidence")):
        metric = metrics.make(name, {"scale": setting})
        evaluation = pertinent.evaluate(model, explanations, metric, progress=False)
        assert not evaluation.failures, evaluation.failures[0]
        values[scale] = [
            [round(float(v), DIGITS) for v in e.measures[name].values()] for e in evaluation.explanations
        ]
    return values


def course(explanations: Explanations) -> list[list[float | None]]:
    """Return the metric that each search had reached after the evaluations of `GRID`, over sparsities."""
    rows = []
    for e in explanations:
        full = float(e.prediction.values[e.target])
        per_sparsity = []
        for sparsity in SPARSITIES:
            log = e.details["trajectory"][str(int(e.mask(sparsity).sum()))]
            reached = [full - p for _, p in log]
            indices = np.searchsorted([step for step, _ in log], GRID, side="right") - 1
            per_sparsity.append([reached[i] if i >= 0 else np.nan for i in indices])
        mean = np.mean(per_sparsity, axis=0)
        rows.append([None if np.isnan(v) else round(float(v), DIGITS) for v in mean])
    return rows


@dataclass(frozen=True)
class Trial:
    """A method, its budget, and the objective of a search (``None`` for a salience method)."""

    method: str
    budget: int | None
    objective: str | None
    settings: dict[str, Any]

    def carry_out(self, model: Any, texts: list[Any], seed: int) -> list[dict[str, Any]]:
        """Explain all texts and return a row for each metric; no rows if a text cannot be explained."""
        settings = dict(self.settings)
        if self.objective is not None:
            settings |= {"objective": self.objective, "trajectory": self.method != "anchors"}
        start = time.perf_counter()
        explanations = pertinent.explain(
            model, texts, self.method, budget=self.budget, seed=seed, **COMMON, **settings
        )
        seconds = time.perf_counter() - start
        if explanations.failures:
            print(f"{self.method} is skipped: {explanations.failures[0].reason}", flush=True)
            return []
        return [
            {
                "method": self.method,
                "budget": self.budget,
                "metric": metric,
                "values": measure(model, explanations, metric),
                "course": course(explanations) if settings.get("trajectory") else None,
                "evaluations": float(np.mean([e.evaluations for e in explanations])),
                "seconds": seconds,
            }
            for metric in ([self.objective] if self.objective else OBJECTIVES)
        ]


def plan(objective: str, *, short: bool) -> list[Trial]:
    """Return every search for an objective with each budget; salience methods with the first objective."""
    trials = []
    if objective == OBJECTIVES[0]:
        trials = [Trial(name, None, None, settings) for name, settings in salience(BUDGET).items()]
    for name, settings in (SEARCHES | ({"exhaustive-search": {}} if short else {})).items():
        budgets: list[int | None] = [None if name == "exhaustive-search" else BUDGET]
        if name in AT_A_QUARTER and not short:
            budgets = [REDUCED, *budgets]
        trials += [Trial(name, budget, objective, settings) for budget in budgets]
    return trials


def extend(row: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """Return the row of some texts with the values of the texts after them."""
    n, m = (len(each["values"]["probability"]) for each in (row, more))
    return row | {
        "values": {scale: row["values"][scale] + more["values"][scale] for scale in row["values"]},
        "course": None if row["course"] is None else row["course"] + more["course"],
        "evaluations": (n * row["evaluations"] + m * more["evaluations"]) / (n + m),
        "seconds": row["seconds"] + more["seconds"],
    }


def explain_model(
    run: Run,
    record: str,
    name: str,
    dataset: str,
    objective: str,
    *,
    seed: int,
    points: int,
    together: int | None = None,
    methods: Sequence[str] | None = None,
    dtype: str = "float32",
    short: bool = False,
) -> Iterator[dict[str, Any]]:
    """Explain test texts by every method, and yield the record after each; an earlier record is continued."""
    torch.set_float32_matmul_precision("high")
    model = load_transformer(run.work / name, device=run.device, dtype=dtype)
    texts: list[Any] = read(run.data, SETS[dataset], "test").inputs
    if short:
        texts = [t for t in texts if SHORT[0] <= model.prepare(t, "tokens").n_features <= SHORT[1]]
    texts = texts[:points]
    trials = [t for t in plan(objective, short=short) if methods is None or t.method in methods]
    path = run.results / record
    rows = read_record(path)["results"] if path.is_file() else []
    results = {(row["method"], row["budget"], row["metric"]): row for row in rows}
    together = together or len(texts)
    for last in range(together, len(texts) + together, together):
        for trial in trials:
            before = results.get((trial.method, trial.budget, trial.objective or OBJECTIVES[0]))
            first = len(before["values"]["probability"]) if before else 0
            if first >= min(last, len(texts)):
                continue
            for row in trial.carry_out(model, texts[first:last], seed):
                key = row["method"], row["budget"], row["metric"]
                results[key] = extend(results[key], row) if key in results else row
            print(trial.method, trial.budget, trial.objective, min(last, len(texts)), flush=True)
            yield {"points": len(texts), "wanted": points, "results": list(results.values())}
    yield {"points": len(texts), "wanted": points, "results": list(results.values())}


def check_removals(
    run: Run, record: str, name: str, dataset: str, removal: str | None, *, points: int
) -> None:
    """Write how accurate a model stays as random tokens are removed (Figure 2).

    A counterfactual model is checked with its removal, a standard one with all, `marginalize` included.
    """
    model = load_transformer(str(run.work / name), device=run.device)
    dev = read(run.data, SETS[dataset], "dev", points)
    removals = [removal] if removal else [*REMOVALS, Marginalize(filler=str(run.work / FILLER))]
    check = pertinent.check_removal(
        model, dev.inputs, dev.labels, removals=removals, features="tokens", progress=False
    )
    check.save(run.results / record)
