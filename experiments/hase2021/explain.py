"""Explain one model's decisions by every method, and measure them.

`python explain.py --data DIR --model DIR --set sst2 --objective sufficiency --out results.json`; with
`--together 20` every method has explained 20 texts before the first explains more, so that a run that is
stopped has as many of all.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from data import SETS, read
from methods import AT_A_QUARTER, BUDGET, GRID, OBJECTIVES, REDUCED, SALIENCE, SEARCHES, SPARSITIES, salience

import pertinent
from pertinent.files import atomic_write
from pertinent.metrics.base import metrics
from pertinent.models.embedded.load import load_transformer
from pertinent.results.explanation import Explanations

COMMON = {"features": "tokens", "sparsity": SPARSITIES, "removal": "attention-mask", "progress": False}
DIGITS = 6
"""Of probabilities and log-odds that are written."""


def measured(found: Explanations, model: Any, name: str) -> dict[str, list[list[float]]]:
    """A metric on both scales: a list over inputs of values over sparsities."""
    values = {}
    for scale, own in (("probability", "natural"), ("weight-of-evidence", "weight-of-evidence")):
        metric = metrics.make(name, {"scale": own})
        evaluation = pertinent.evaluate(model, found, metric, progress=False)
        assert not evaluation.failures, evaluation.failures[0]
        values[scale] = [
            [round(float(v), DIGITS) for v in e.measures[name].values()] for e in evaluation.explanations
        ]
    return values


def course(found: Explanations) -> list[list[float | None]]:
    """The metric that each search had reached after each number of evaluations, over sparsities."""
    rows = []
    for e in found:
        full = float(e.prediction.values[e.target])
        per_sparsity = []
        for sparsity in SPARSITIES:
            log = e.details["trajectory"][str(int(e.mask(sparsity).sum()))]
            steps = np.array([step for step, _ in log])
            reached = [full - p for _, p in log]
            place = np.searchsorted(steps, GRID, side="right") - 1
            per_sparsity.append([reached[i] if i >= 0 else np.nan for i in place])
        mean = np.mean(per_sparsity, axis=0)
        rows.append([None if np.isnan(v) else round(float(v), DIGITS) for v in mean])
    return rows


@dataclass(frozen=True)
class Run:
    """A method, its budget, and what it looks for (a salience method: nothing)."""

    method: str
    budget: int | None
    objective: str | None
    settings: dict[str, Any]

    def carry_out(self, model: Any, texts: list[Any], seed: int) -> list[dict[str, Any]]:
        """Explain all texts and measure the explanations; nothing if a text cannot be explained."""
        settings = dict(self.settings)
        if self.objective is not None:
            settings |= {"objective": self.objective, "trajectory": self.method != "anchors"}
        start = time.perf_counter()
        found = pertinent.explain(
            model, texts, self.method, budget=self.budget, seed=seed, **COMMON, **settings
        )
        seconds = time.perf_counter() - start
        if found.failures:
            print(f"{self.method} is left out: {found.failures[0].reason}", flush=True)
            return []
        return [
            {
                "method": self.method,
                "budget": self.budget,
                "metric": metric,
                "values": measured(found, model, metric),
                "course": course(found) if settings.get("trajectory") else None,
                "evaluations": float(np.mean([e.evaluations for e in found])),
                "seconds": seconds,
            }
            for metric in ([self.objective] if self.objective else OBJECTIVES)
        ]


def planned(searches: dict[str, Any], objective: str, budget: int, *, shortest: bool) -> list[Run]:
    """Every search for an objective, with each budget; salience methods with the first objective."""
    runs = []
    if objective == OBJECTIVES[0]:
        runs = [Run(name, None, None, settings) for name, settings in salience(budget).items()]
    for name, settings in searches.items():
        budgets: list[int | None] = [None if name == "exhaustive-search" else budget]
        if name in AT_A_QUARTER and not shortest and budget > REDUCED:
            budgets = [REDUCED, *budgets]
        runs += [Run(name, each, objective, settings) for each in budgets]
    return runs


def joined(row: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """What was measured of some texts, and of those after them, in one row."""
    n, m = (len(each["values"]["probability"]) for each in (row, more))
    return row | {
        "values": {scale: row["values"][scale] + more["values"][scale] for scale in row["values"]},
        "course": None if row["course"] is None else row["course"] + more["course"],
        "evaluations": (n * row["evaluations"] + m * more["evaluations"]) / (n + m),
        "seconds": row["seconds"] + more["seconds"],
    }


def main() -> None:
    """Run every method, and write what was measured after each; what is there already stays."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--set", choices=SETS, required=True)
    parser.add_argument("--objective", choices=OBJECTIVES, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--points", type=int, default=200)
    parser.add_argument("--together", type=int, help="texts that every method explains before more of them")
    parser.add_argument("--methods", nargs="+", choices=[*SALIENCE, *SEARCHES], help="by default all")
    parser.add_argument("--shortest", action="store_true", help="the shortest texts, with exhaustive search")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--budget", type=int, default=BUDGET, help="of a search, for each sparsity")
    parser.add_argument("--dtype", default="float32", help="what the model computes in")
    arguments = parser.parse_args()
    torch.set_float32_matmul_precision("high")
    torch.set_num_threads(1 if torch.cuda.is_available() else 2)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = load_transformer(arguments.model, device=device, dtype=arguments.dtype)
    texts: list[Any] = read(arguments.data, arguments.set, "test").examples
    searches = SEARCHES
    if arguments.shortest:
        texts = [t for t in texts if 5 <= model.prepare(t, "tokens").n_features <= 10]
        searches = SEARCHES | {"exhaustive-search": {}}
    texts = texts[: arguments.points]
    plan = planned(searches, arguments.objective, arguments.budget, shortest=arguments.shortest)
    plan = [run for run in plan if arguments.methods is None or run.method in arguments.methods]
    rows = json.loads(arguments.out.read_text())["results"] if arguments.out.is_file() else []
    results = {(row["method"], row["budget"], row["metric"]): row for row in rows}
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    together = arguments.together or len(texts)
    for last in range(together, len(texts) + together, together):
        for run in plan:
            known = results.get((run.method, run.budget, run.objective or OBJECTIVES[0]))
            first = len(known["values"]["probability"]) if known else 0
            if first >= min(last, len(texts)):
                continue
            for row in run.carry_out(model, texts[first:last], arguments.seed):
                key = row["method"], row["budget"], row["metric"]
                results[key] = joined(results[key], row) if key in results else row
            finished = last >= len(texts) and run is plan[-1]
            content = {
                "points": len(texts),
                "wanted": arguments.points,
                "finished": finished,
                "results": list(results.values()),
            }
            with atomic_write(arguments.out) as unfinished:
                unfinished.write_text(json.dumps(content))
            print(
                arguments.out.stem, run.method, run.budget, run.objective, min(last, len(texts)), flush=True
            )


if __name__ == "__main__":
    main()
