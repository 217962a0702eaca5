"""The features that a decision depends on, where they are known: what each method finds of them.

python experiments/vo2023/known_features.py [--tasks xor switch] [--methods l2x invase]

Rows of ten independent normal columns, as in Chen et al. 2018 (Section 4.1), with the coefficients of Yoon
et al. 2019. The black box answers with the true P(y | x). Removed columns are drawn from 20 other rows, so
that it nearly answers with P(y | x_S), and every column that it depends on matters for every row.
Prints a row for each task and method, as soon as it is measured: means over seeds.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import pertinent
from pertinent.array_types import Floats, Masks
from pertinent.removals import FromBackground

N_COLUMNS = 10
TASKS = ("xor", "orange skin", "additive", "switch")
FITTING: dict[str, Any] = {
    "batch_size": 256,
    "epochs": 20,
    "learning_rate": 2e-3,
    "validation_fraction": 0.05,
    "patience": None,
}
METHODS: dict[str, dict[str, Any]] = {
    "l2x": FITTING | {"temperature": 0.1},
    "l2x, selected": FITTING | {"temperature": 0.1, "subsets": "selected"},
    "vibi": FITTING | {"temperature": 0.1},
    "invase": FITTING,
    "invase, selected": FITTING | {"subsets": "selected"},
    "aim": FITTING,
    "aim, from decisions": FITTING | {"learns_from": "decisions"},
    "aim, with a selector": FITTING | {"trained": "both"},
    "magnex": FITTING,
    "maple": {},
    "kernel-shap": {"budget": 512},
}
"""The settings of each; a word after the comma tells two variants of a method apart."""
SIGNED = ("aim", "maple", "kernel-shap")
"""Methods whose scores tell a direction: columns are ranked by the scores' sizes, as in L2X's experiments."""
COUNTS = ("invase", "magnex")
"""Methods that learn how many columns to select: those above one half."""


def log_odds(task: str, x: Floats) -> Floats:
    """The logarithm of the odds of the second class."""
    if task == "xor":
        return np.asarray(x[:, 0] * x[:, 1])
    if task == "orange skin":
        return np.asarray((x[:, :4] ** 2).sum(axis=1) - 4)
    if task == "additive":
        return np.asarray(-10 * np.sin(0.2 * x[:, 0]) + np.abs(x[:, 1]) + x[:, 2] + np.exp(-x[:, 3]) - 2.4)
    return np.where(x[:, 9] > 0, log_odds("orange skin", x), log_odds("additive", x[:, 4:]))


def black_box(task: str) -> Callable[[Any], Floats]:
    """P(y | x)."""

    def classify(rows: Any) -> Floats:
        p = 1 / (1 + np.exp(-np.clip(log_odds(task, np.asarray(rows, dtype=float)), -50, 50)))
        return np.column_stack([1 - p, p])

    return classify


def draw_rows(task: str, n: int, seed: int) -> Floats:
    """Independent normal columns; the last one of a switch has two modes."""
    rng = np.random.default_rng([seed, n])
    x = rng.normal(size=(n, N_COLUMNS))
    if task == "switch":
        x[:, 9] += rng.choice([-3, 3], n)
    return x


def relevant(task: str, x: Floats) -> Masks:
    """The columns that the answer to each row depends on."""
    found = np.zeros(x.shape, dtype=np.bool_)
    if task == "switch":
        up = x[:, 9] > 0
        found[up, :4] = found[~up, 4:8] = found[:, 9] = True
    else:
        found[:, : 2 if task == "xor" else 4] = True
    return found


def ranks_of(scores: Floats, rng: np.random.Generator) -> Floats:
    """The rank of each column, 1 for the largest score, equal scores in random order."""
    order = np.lexsort((rng.random(scores.shape), -scores), axis=1)
    return np.asarray(order.argsort(axis=1) + 1)


def measure(task: str, name: str, n: int, seed: int, n_test: int = 500) -> tuple[float, float, float, float]:
    """The median rank of relevant columns, the share of the k best that are, TPR and FDR of the selection."""
    method = name.partition(",")[0]
    train, test = draw_rows(task, n, seed), draw_rows(task, n_test, seed)
    model = pertinent.wrap(black_box(task), kind="table", background=train[:20])
    truth, settings = relevant(task, test), METHODS[name]
    k = int(truth[0].sum())
    options: dict[str, Any] = {"removal": FromBackground(rows=20), "seed": seed, "progress": False}
    if method == "kernel-shap":
        found = pertinent.explain(model, test, method, **settings, **options)
    else:
        counted: dict[str, Any] = {} if method in ("magnex", "maple") else {"k": k}
        fitted = pertinent.fit(model, train, method, **settings, **counted, **options)
        found = pertinent.explain(model, test, fitted, **options)
    scores = np.array([e.scores for e in found])
    ranks = ranks_of(np.abs(scores) if method in SIGNED else scores, np.random.default_rng(seed))
    median = float(np.mean([np.median(own[true]) for own, true in zip(ranks, truth, strict=True)]))
    best = float(((ranks <= k) & truth).sum() / truth.sum())
    return median, best, *(rates(scores > 0.5, truth) if method in COUNTS else (np.nan, np.nan))


def rates(chosen: Masks, truth: Masks) -> tuple[float, float]:
    """The share of relevant columns that is chosen (TPR), and that of wrong ones among the chosen (FDR).

    Means over rows; where nothing is chosen, nothing is wrong.
    """
    tpr = (chosen & truth).sum(axis=1) / truth.sum(axis=1)
    fdr = (chosen & ~truth).sum(axis=1) / np.maximum(chosen.sum(axis=1), 1)
    return float(tpr.mean()), float(fdr.mean())


def main() -> None:
    """Measure every method on every task."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=4000, help="rows to learn from")
    parser.add_argument("--test", type=int, default=500, help="rows that are explained")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=TASKS)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    arguments = parser.parse_args()
    print("| task | method | median rank (best) | found | by seed | own selection | seconds |")
    print("|---|---|---|---|---|---|---|")
    for task in arguments.tasks:
        for name in arguments.methods:
            row(task, name, arguments.rows, arguments.seeds, arguments.test)


def row(task: str, name: str, n: int, seeds: int, n_test: int) -> None:
    """Print one row."""
    began = time.perf_counter()
    every = np.array([measure(task, name, n, seed, n_test) for seed in range(seeds)])
    seconds = (time.perf_counter() - began) / seeds
    median, best, tpr, fdr = every.mean(axis=0)
    k = int(relevant(task, np.zeros((1, N_COLUMNS))).sum())
    each: Sequence[str] = [f"{100 * own:.0f}" for own in every[:, 1]]
    own = "–" if np.isnan(tpr) else f"{100 * tpr:.0f} / {100 * fdr:.0f}"
    cells = (task, f"`{name}`", f"{median:.2f} ({(k + 1) / 2:g})", f"{100 * best:.0f}", " ".join(each), own)
    print("|", " | ".join((*cells, f"{seconds:.0f}")), "|", flush=True)


if __name__ == "__main__":
    main()
