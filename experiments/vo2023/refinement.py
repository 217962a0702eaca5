"""What a search gains from a start: alone, and from where a fitted explainer says, at the same budgets.

python experiments/vo2023/refinement.py --data DATA [--only texts digits table]

`DATA` has the folder `sst2`. Prints a table for each model: sufficiency at 20% of the features (lower is
better) and the paired difference that the start makes, with its 95% interval over inputs and seeds. The
network's pass counts as one evaluation. A search that can evaluate all sets needs no start, so inputs are
left out that have no more sets than the largest budget.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import ceil, comb
from pathlib import Path
from typing import Any

import numpy as np

import pertinent
from pertinent.array_types import Floats
from pertinent.stats import paired_difference

BUDGETS = (10, 25, 50, 100, 250, 1000)
SEARCHES = ("parallel-local-search", "thompson-search")
SPARSITY = 0.2
DECISIONS = {"learns_from": "decisions"}  # as the page was made


@dataclass(frozen=True)
class Case:
    """A model, inputs to learn from and others to explain, and the explainers to start from."""

    model: Any
    train: Any
    test: Any
    starts: dict[str, dict[str, Any]]


def texts(data: Path) -> Case:
    """Short reviews, of 12 to 30 words."""
    import pandas as pd

    short = [
        t
        for t in pd.read_parquet(data / "sst2" / "train_sentences.parquet")["text"]
        if 12 <= len(t.split()) <= 30
    ]
    return Case(
        pertinent.load("sentiment"),
        short[:1000],
        short[1000:],
        {"aim": DECISIONS | {"epochs": 10}, "magnex": {"epochs": 10}},
    )


def digits(data: Path) -> Case:
    """64 pixels; the model has seen some of them in training."""
    del data
    from sklearn.datasets import load_digits

    images = (load_digits().images[:, None] / 16).astype(np.float32)
    settings = {"samples": 10, "epochs": 30}
    return Case(
        pertinent.load("digits"),
        images[:600],
        images[600:],
        {"aim": DECISIONS, "amortized-shapley": settings},
    )


def table(data: Path) -> Case:
    """24 columns, of which some matter by themselves, some in pairs and some not at all."""
    del data
    rng = np.random.default_rng(0)
    weights, pairs = rng.normal(size=24) * (np.arange(24) < 12), rng.permutation(24)[:16].reshape(8, 2)

    def classify(rows: Any) -> Floats:
        x = np.asarray(rows, dtype=float)
        p = 1 / (1 + np.exp(-(x @ weights + (x[:, pairs[:, 0]] * x[:, pairs[:, 1]]).sum(axis=1)) / 2))
        return np.column_stack([1 - p, p])

    rows = rng.normal(size=(1600, 24))
    model = pertinent.wrap(classify, kind="table", background=rows[:100])
    return Case(model, rows[:1500], rows[1500:], {"aim": DECISIONS, "amortized-shapley": {"samples": 10}})


CASES: dict[str, Callable[[Path], Case]] = {"texts": texts, "digits": digits, "table": table}


def main() -> None:
    """Measure each case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path())
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--starts", nargs="+", help="explainers to start from, if not all")
    parser.add_argument("--train", type=int, help="inputs to learn from, if not all")
    parser.add_argument("--inputs", type=int, default=60)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--budgets", type=int, nargs="+", default=BUDGETS)
    arguments = parser.parse_args()
    for name in arguments.only:
        case = CASES[name](arguments.data)
        case = replace(case, train=case.train[: arguments.train])
        if arguments.starts:
            case = replace(case, starts={start: case.starts[start] for start in arguments.starts})
        report(name, case, arguments.inputs, arguments.seeds, arguments.budgets)


def report(name: str, case: Case, n_inputs: int, seeds: int, budgets: Sequence[int]) -> None:
    """Print the table of one case."""
    some = case.test[: 2 * n_inputs]
    sizes = [len(e.features) for e in pertinent.explain(case.model, some, "random", progress=False)]
    enough = [comb(d, ceil(SPARSITY * d)) > max(budgets) for d in sizes]
    inputs = [raw for raw, many in zip(some, enough, strict=True) if many][:n_inputs]
    print(f"\n## {name}, {len(inputs)} inputs, {seeds} seeds\n")
    print("| start | search | budget | the start itself | search alone | from the start | difference |")
    print("|---|---|---|---|---|---|---|")
    alone = {(s, b): reached(case, inputs, s, b, seeds) for s in SEARCHES for b in budgets}
    for method, settings in case.starts.items():
        fitted = pertinent.fit(case.model, case.train, method, progress=False, **settings)
        itself = reached(case, inputs, "parallel-local-search", 2, 1, start=fitted).mean()
        for search in SEARCHES:
            for budget in budgets:
                own = alone[search, budget]
                begun = reached(case, inputs, search, budget, seeds, start=fitted)
                gap = paired_difference(begun, own)
                means = " | ".join(f"{mean:.4f}" for mean in (itself, own.mean(), begun.mean()))
                apart = f"{gap.mean:+.4f} [{gap.low:+.4f}, {gap.high:+.4f}]"
                print(f"| {method} | {search} | {budget} | {means} | {apart} |", flush=True)


def reached(
    case: Case, inputs: Sequence[Any], search: str, budget: int, seeds: int, **settings: Any
) -> Floats:
    """The sufficiency (seeds, inputs) of what a search finds."""
    rows = []
    for seed in range(seeds):
        options: dict[str, Any] = {
            "sparsity": SPARSITY,
            "budget": budget,
            "seed": seed,
            "trajectory": True,
            "progress": False,
        }
        found = pertinent.explain(case.model, inputs, search, **options, **settings)
        best = [next(iter(e.details["trajectory"].values()))[-1][1] for e in found]
        rows.append([e.prediction.values[e.target] - p for e, p in zip(found, best, strict=True)])
    return np.array(rows)


if __name__ == "__main__":
    main()
