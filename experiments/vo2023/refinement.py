"""What a search gains from starting at a fitted explainer's scores, at the same budgets.

The network's pass counts as one evaluation. A search that can evaluate all sets needs no start, so inputs are
skipped that have no more sets than the largest budget.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, comb
from pathlib import Path
from typing import Any

import numpy as np

import pertinent
from experiments.shared.data import read_packed, read_parquet
from experiments.shared.pages import table
from experiments.shared.stages import Run
from pertinent.array_types import Floats
from pertinent.stats import paired_difference

BUDGETS = (10, 25, 50, 100, 250, 1000)
SEARCHES = ("parallel-local-search", "thompson-search")
SPARSITY = 0.2
DECISIONS = {"learns_from": "decisions"}


@dataclass(frozen=True)
class Case:
    """A model, inputs to learn from, inputs to explain, and explainers that searches start from."""

    model: Any
    train: Any
    test: Any
    starts: dict[str, dict[str, Any]]


def texts(data: Path) -> Case:
    """Return short reviews, of 12 to 30 words."""
    name = "sst2/train_sentences"
    rows = read_packed(data, name, lambda: read_parquet(data / name))
    short = [row["text"] for row in rows if 12 <= len(row["text"].split()) <= 30]
    return Case(
        pertinent.load("sentiment"),
        short[:1000],
        short[1000:],
        {"aim": DECISIONS | {"epochs": 10}, "magnex": {"epochs": 10}},
    )


def digits(data: Path) -> Case:
    """Return images of 64 pixels; the model was trained on some of them."""
    from sklearn.datasets import load_digits

    images = (load_digits().images[:, None] / 16).astype(np.float32)
    settings = {"samples": 10, "epochs": 30}
    return Case(
        pertinent.load("digits"),
        images[:600],
        images[600:],
        {"aim": DECISIONS, "amortized-shapley": settings},
    )


def table_rows(data: Path) -> Case:
    """Return rows of 24 columns, some of which matter by themselves, some in pairs and some not at all."""
    rng = np.random.default_rng(0)
    weights, pairs = rng.normal(size=24) * (np.arange(24) < 12), rng.permutation(24)[:16].reshape(8, 2)

    def classify(rows: Any) -> Floats:
        x = np.asarray(rows, dtype=float)
        p = 1 / (1 + np.exp(-(x @ weights + (x[:, pairs[:, 0]] * x[:, pairs[:, 1]]).sum(axis=1)) / 2))
        return np.column_stack([1 - p, p])

    rows = rng.normal(size=(1600, 24))
    model = pertinent.wrap(classify, kind="table", background=rows[:100])
    return Case(model, rows[:1500], rows[1500:], {"aim": DECISIONS, "amortized-shapley": {"samples": 10}})


CASES: dict[str, Callable[[Path], Case]] = {"texts": texts, "digits": digits, "table": table_rows}


def measure_case(
    run: Run,
    name: str,
    *,
    n_train: int | None,
    n_inputs: int,
    seeds: int,
    budgets: Sequence[int],
    starts: Sequence[str] | None,
) -> Iterator[dict[str, Any]]:
    """Measure the searches with and without a start, and yield the record after each start."""
    case = CASES[name](run.data)
    some = case.test[: 2 * n_inputs]
    sizes = [len(e.features) for e in pertinent.explain(case.model, some, "random", progress=False)]
    enough = [comb(d, ceil(SPARSITY * d)) > max(budgets) for d in sizes]
    inputs = [raw for raw, many in zip(some, enough, strict=True) if many][:n_inputs]
    alone = {(s, b): reached(case, inputs, s, b, seeds) for s in SEARCHES for b in budgets}
    rows = []
    for method, settings in case.starts.items():
        if starts and method not in starts:
            continue
        fitted = pertinent.fit(case.model, case.train[:n_train], method, progress=False, **settings)
        start = reached(case, inputs, SEARCHES[0], 2, 1, start=fitted).mean()
        for (search, budget), without in alone.items():
            with_start = reached(case, inputs, search, budget, seeds, start=fitted)
            gap = paired_difference(with_start, without)
            means = [f"{mean:.4f}" for mean in (start, without.mean(), with_start.mean())]
            interval = f"{gap.mean:+.4f} [{gap.low:+.4f}, {gap.high:+.4f}]"
            rows.append([method, search, str(budget), *means, interval])
            print(rows[-1], flush=True)
        yield {"inputs": len(inputs), "seeds": seeds, "rows": rows}


def case_table(record: Mapping[str, Any]) -> str:
    """Return sufficiency (lower is better), and the difference that the start makes."""
    head = ["start", "search", "budget", "the start itself", "search alone", "from the start", "difference"]
    return f"{record['inputs']} inputs, {record['seeds']} seeds.\n\n{table(head, record['rows'])}"


def reached(
    case: Case, inputs: Sequence[Any], search: str, budget: int, seeds: int, **settings: Any
) -> Floats:
    """Return the sufficiency (seeds, inputs) of the sets that a search finds."""
    options: dict[str, Any] = {"sparsity": SPARSITY, "budget": budget, "trajectory": True, "progress": False}
    rows = []
    for seed in range(seeds):
        explanations = pertinent.explain(case.model, inputs, search, seed=seed, **options, **settings)
        best = [next(iter(e.details["trajectory"].values()))[-1][1] for e in explanations]
        rows.append([e.prediction.values[e.target] - p for e, p in zip(explanations, best, strict=True)])
    return np.array(rows)
