"""Tasks with known features: what each method finds of the columns that a decision depends on.

Rows have ten independent normal columns, as in Chen et al. 2018 (Section 4.1), with the coefficients of
Yoon et al. 2019. The black box answers with the true P(y | x). Removed columns are drawn from 20 other rows,
so that it nearly answers with P(y | x_S), and every column that it depends on matters for every row.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import pertinent
from experiments.shared.pages import table
from experiments.shared.stages import Run
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
"""Settings of each method; the words after a comma distinguish variants of a method."""
SIGNED = ("aim", "maple", "kernel-shap")
"""Methods with signed scores: columns are ranked by their magnitude, as in L2X's experiments."""
COUNTS = ("invase", "magnex")
"""Methods that learn how many columns to select: those with a score above one half."""


def log_odds(task: str, x: Floats) -> Floats:
    """Return the log-odds of the second class."""
    if task == "xor":
        return np.asarray(x[:, 0] * x[:, 1])
    if task == "orange skin":
        return np.asarray((x[:, :4] ** 2).sum(axis=1) - 4)
    if task == "additive":
        return np.asarray(-10 * np.sin(0.2 * x[:, 0]) + np.abs(x[:, 1]) + x[:, 2] + np.exp(-x[:, 3]) - 2.4)
    return np.where(x[:, 9] > 0, log_odds("orange skin", x), log_odds("additive", x[:, 4:]))


def black_box(task: str) -> Callable[[Any], Floats]:
    """Return a function from rows to P(y | x)."""

    def classify(rows: Any) -> Floats:
        p = 1 / (1 + np.exp(-np.clip(log_odds(task, np.asarray(rows, dtype=float)), -50, 50)))
        return np.column_stack([1 - p, p])

    return classify


def draw_rows(task: str, n: int, seed: int) -> Floats:
    """Return rows of independent normal columns; the last column of a switch has two modes."""
    rng = np.random.default_rng([seed, n])
    x = rng.normal(size=(n, N_COLUMNS))
    if task == "switch":
        x[:, 9] += rng.choice([-3, 3], n)
    return x


def relevant(task: str, x: Floats) -> Masks:
    """Return the columns that the answer to each row depends on."""
    mask = np.zeros(x.shape, dtype=np.bool_)
    if task == "switch":
        up = x[:, 9] > 0
        mask[up, :4] = mask[~up, 4:8] = mask[:, 9] = True
    else:
        mask[:, : 2 if task == "xor" else 4] = True
    return mask


def ranks_of(scores: Floats, rng: np.random.Generator) -> Floats:
    """Return the rank of each column, 1 for the largest score, equal scores in random order."""
    order = np.lexsort((rng.random(scores.shape), -scores), axis=1)
    return np.asarray(order.argsort(axis=1) + 1)


def measure(task: str, name: str, n: int, seed: int, n_test: int) -> tuple[float, float, float, float]:
    """Return the median rank of relevant columns, their share of the k best, and the selection's TPR and FDR.

    The selection is that of methods that learn how many columns to select; it is NaN for others.
    """
    method = name.partition(",")[0]
    train, test = draw_rows(task, n, seed), draw_rows(task, n_test, seed)
    model = pertinent.wrap(black_box(task), kind="table", background=train[:20])
    truth, settings = relevant(task, test), METHODS[name]
    k = int(truth[0].sum())
    options: dict[str, Any] = {"removal": FromBackground(rows=20), "seed": seed, "progress": False}
    explainer: Any = method
    if method != "kernel-shap":
        size: dict[str, Any] = {} if method in ("magnex", "maple") else {"k": k}
        explainer = pertinent.fit(model, train, method, **settings, **size, **options)
        settings = {}
    explanations = pertinent.explain(model, test, explainer, **settings, **options)
    scores = np.array([e.scores for e in explanations])
    ranks = ranks_of(np.abs(scores) if method in SIGNED else scores, np.random.default_rng(seed))
    median = float(np.mean([np.median(row[true]) for row, true in zip(ranks, truth, strict=True)]))
    best = float(((ranks <= k) & truth).sum() / truth.sum())
    return median, best, *(rates(scores > 0.5, truth) if method in COUNTS else (np.nan, np.nan))


def rates(chosen: Masks, truth: Masks) -> tuple[float, float]:
    """Return the share of relevant columns that are chosen (TPR), and of wrong ones among the chosen (FDR).

    Both are means over rows; if no column is chosen, none is wrong.
    """
    tpr = (chosen & truth).sum(axis=1) / truth.sum(axis=1)
    fdr = (chosen & ~truth).sum(axis=1) / np.maximum(chosen.sum(axis=1), 1)
    return float(tpr.mean()), float(fdr.mean())


def measure_task(run: Run, task: str, name: str, n: int, n_test: int, *, seeds: int) -> dict[str, Any]:
    """Measure a method on a task with several seeds."""
    start = time.perf_counter()
    rows = [measure(task, name, n, seed, n_test) for seed in range(seeds)]
    return {"task": task, "method": name, "rows": rows, "seconds": (time.perf_counter() - start) / seeds}


def task_table(records: Mapping[tuple[str, str], Any]) -> str:
    """Return a row for each task and method: means over seeds."""
    lines = []
    for task in TASKS:
        for name in [name for name in METHODS if (task, name) in records]:
            record = records[task, name]
            rows = np.array(record["rows"], dtype=float)
            median, best, tpr, fdr = rows.mean(axis=0)
            k = int(relevant(task, np.zeros((1, N_COLUMNS))).sum())
            selection = "–" if np.isnan(tpr) else f"{100 * tpr:.0f} / {100 * fdr:.0f}"
            by_seed = " ".join(f"{100 * share:.0f}" for share in rows[:, 1])
            cells = [f"{median:.2f} ({(k + 1) / 2:g})", f"{100 * best:.0f}", by_seed, selection]
            lines.append([task, f"`{name}`", *cells, f"{record['seconds']:.0f}"])
    head = ["task", "method", "median rank (best)", "found", "by seed", "own selection", "seconds"]
    return table(head, lines)
