"""Comparison of thompson-search with a quarter of the budget with Parallel Local Search with all of it.

The models are the embedded ones, which were trained counterfactually; features are words. Needs no GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import pertinent
from experiments.hase2021.methods import BUDGET, OBJECTIVES, REDUCED, SPARSITIES
from experiments.shared.data import read_packed, read_parquet
from experiments.shared.pages import table
from experiments.shared.stages import Run
from pertinent.array_types import Floats
from pertinent.results.explanation import Explanations
from pertinent.stats import paired_difference

SETS = {
    "sst2": ("sentiment", "sst2/test", 25, "SST-2 test, sentences of 25 words and more"),
    "ag_news": ("topics", "ag_news/test", 30, "AG News test, texts of 30 words and more"),
}
TIE = 1e-4
"""Differences in probability below this are ties."""
Log = list[list[float]]
"""Pairs of evaluations and the best probability so far."""


def logs_of(explanations: Explanations) -> list[list[Log]]:
    """Return the log of each text at each sparsity."""
    return [[e.details["trajectory"][str(int(e.mask(s).sum()))] for s in SPARSITIES] for e in explanations]


def reached(logs: Sequence[Sequence[Log]], budget: int = BUDGET) -> Floats:
    """Return the target's probability (texts, sparsities) after a number of evaluations."""
    return np.array([[[p for n, p in log if n <= budget][-1] for log in row] for row in logs])


def evaluations_needed(logs: Sequence[Sequence[Log]], goals: Floats, sign: int) -> Floats:
    """Return the evaluations after which a probability was reached; NaN where it never was."""
    rows = []
    for row, row_goals in zip(logs, goals, strict=True):
        pairs = zip(row, row_goals, strict=True)
        rows.append(
            [next((n for n, p in log if sign * p >= sign * goal - 1e-9), np.nan) for log, goal in pairs]
        )
    return np.array(rows)


def compare_searches(model: Any, texts: list[str], objective: str) -> list[str]:
    """Return the row of an objective."""
    sign = 1 if objective == "sufficiency" else -1
    options: dict[str, Any] = {"objective": objective, "trajectory": True, "sparsity": SPARSITIES}
    pls = logs_of(pertinent.explain(model, texts, "parallel-local-search", budget=BUDGET, **options))
    thompson = logs_of(pertinent.explain(model, texts, "thompson-search", budget=REDUCED, **options))
    at_pls, at_quarter, at_thompson = reached(pls), reached(pls, REDUCED), reached(thompson)
    gain = sign * (at_thompson - at_pls)
    over, behind = (
        paired_difference(100 * sign * at_thompson.mean(axis=1), 100 * sign * other.mean(axis=1))
        for other in (at_pls, at_quarter)
    )
    needed = evaluations_needed(thompson, at_pls, sign)
    return [
        objective,
        *(f"{100 * values.mean():.2f}" for values in (at_pls, at_quarter, at_thompson)),
        f"{over.mean:+.2f} [{over.low:.2f}, {over.high:.2f}] ({over.p_text})",
        f"{behind.mean:+.2f} ({behind.p_text})",
        f"{(gain > TIE).mean():.0%} / {(np.abs(gain) <= TIE).mean():.0%} / {(gain < -TIE).mean():.0%}",
        f"{float(np.isfinite(needed).mean()):.0%}, median {np.nanmedian(needed):.0f}",
    ]


def compare(run: Run, dataset: str, points: int) -> dict[str, Any]:
    """Compare the searches on texts of a data set."""
    name, file, shortest, title = SETS[dataset]
    rows = read_packed(run.data, file, lambda: read_parquet(run.data / file))
    texts = [row["text"] for row in rows if len(row["text"].split()) >= shortest][:points]
    model = pertinent.load(name)
    table_rows = [compare_searches(model, texts, objective) for objective in OBJECTIVES]
    return {"title": title, "texts": len(texts), "rows": table_rows}


def page(records: Sequence[dict[str, Any]]) -> str:
    """Return the page of the comparison."""
    head = ["looks for", f"p, PLS at {BUDGET}", f"p, PLS at {REDUCED}", f"p, thompson at {REDUCED}"]
    head += [f"ahead of PLS at {BUDGET}, points", f"ahead of PLS at {REDUCED}", "better / same / worse"]
    head += [f"reached PLS at {BUDGET}, after evaluations"]
    text = f"# thompson-search at {REDUCED} evaluations beside parallel-local-search at {BUDGET}\n\n"
    text += (
        "For each of four sparsities. p is the mean probability of the target in %: to be high when only "
        "the set is kept (sufficiency), low when it is removed (comprehensiveness). Positive differences "
        "favour `thompson-search`; they are paired by text and averaged over sparsities. Embedded models, "
        "features are words, one search seed.\n"
    )
    for record in records:
        text += f"\n## {record['title']}: {record['texts']} texts\n\n{table(head, record['rows'])}"
    return text
