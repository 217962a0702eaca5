"""The paper's tables and ours, side by side."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
from collect import TRAININGS, Key, Results, difference, interval, measured_seeds, shown, table
from data import SETS
from methods import AT_A_QUARTER, BUDGET, OBJECTIVES, REDUCED, SALIENCE
from paper import METHODS, TABLE_1, TABLE_3, TABLE_4, TABLE_5, TABLE_7

from pertinent.array_types import Floats

ORDER = [*METHODS, "thompson-search"]
ARROWS = {"sufficiency": "Sufficiency ↓", "comprehensiveness": "Comprehensiveness ↑"}
SIGN = {"sufficiency": -1, "comprehensiveness": 1}
VISIBLE = 0.01
"""Points that the tables show; searches that find the same sets differ by less, from rounding in bfloat16."""
COLUMNS = [(metric, training) for metric in OBJECTIVES for training in TRAININGS]


def columns(source: str) -> list[str]:
    """The four columns of a metric table."""
    return [f"{source}: {ARROWS[metric]} {TRAININGS[training]}" for metric, training in COLUMNS]


def metric_rows(
    cell: Callable[[str, str, str], Floats | None],
    paper: dict[str, tuple[tuple[float, float], ...]],
    methods: Iterable[str],
) -> list[list[str]]:
    """A row for each method: the paper's four numbers, then ours; the best of a column in bold if p < .05."""
    found = {m: {c: cell(m, *c) for c in COLUMNS} for m in methods}
    found = {m: cells for m, cells in found.items() if any(v is not None for v in cells.values())}
    best = {c: _clearly_best({m: v for m in found if (v := found[m][c]) is not None}, c[0]) for c in COLUMNS}
    rows = []
    for method, cells in found.items():
        theirs = [f"{mean:.2f} ({half:.2f})" for mean, half in paper.get(method, ())] or ["–"] * 4
        ours = []
        for column, values in cells.items():
            text = "–" if values is None else shown(interval(values)) + few_seeds(values)
            ours.append(f"**{text}**" if best[column] == method else text)
        rows.append([method, *theirs, *ours])
    return rows


def few_seeds(values: Floats) -> str:
    """A mark where not all model seeds were measured."""
    n = len(measured_seeds(values))
    return "" if n == len(values) else f" [{n}]"


def _clearly_best(values: dict[str, Floats], metric: str) -> str | None:
    """The best method, if it differs from the second best at p < .05, and by enough to be seen."""
    order = sorted(values, key=lambda m: -SIGN[metric] * float(np.nanmean(values[m])))
    if len(order) < 2:
        return None
    lead = difference(values[order[0]], values[order[1]])
    return order[0] if lead.p_value < 0.05 and abs(lead.mean) >= VISIBLE else None


def budget_of(method: str, which: str) -> int | None:
    """The budget that a method's full run has in the results."""
    if method in SALIENCE or method == "exhaustive-search":
        return None
    return REDUCED if method == "thompson-search" else SETS[which].budget


def ahead(values: dict[str, Floats], metric: str, method: str, others: Iterable[str]) -> str:
    """How a method stands beside the best of others, in words."""
    rivals = [m for m in others if m != method and m in values]
    rival = max(rivals, key=lambda m: SIGN[metric] * float(np.nanmean(values[m])))
    return f"{method} is {versus(values[method], values[rival], metric)} than {rival}"


def versus(a: Floats, b: Floats, metric: str) -> str:
    """How two columns of values differ, in words."""
    found = difference(a, b)
    better = SIGN[metric] * found.mean > 0
    return f"{abs(found.mean):.2f} points {'better' if better else 'worse'} ({found.p_text})"


def findings(cell: Callable[[str, str, str], Floats | None]) -> str:
    """The paper's claims about Table 1, in numbers."""
    page = ""
    for metric in OBJECTIVES:
        for training in TRAININGS:
            found = {m: v for m in ORDER if (v := cell(m, metric, training)) is not None}
            said = [
                ahead(found, metric, "parallel-local-search", METHODS),
                ahead(found, metric, "lime", SALIENCE),
                ahead(found, metric, "thompson-search", ["parallel-local-search"]),
            ]
            page += f"- {metric.capitalize()}, {TRAININGS[training]}: " + "; ".join(said) + ".\n"
        gaps = []
        for method in ("parallel-local-search", "lime"):
            standard, counterfactual = (cell(method, metric, training) for training in TRAININGS)
            assert standard is not None and counterfactual is not None
            gaps.append(f"{versus(counterfactual, standard, metric)} by {method}")
        page += f"- {metric.capitalize()} of CT models beside Standard's: {', '.join(gaps)}.\n"
    return page


def main_table(results: Results) -> str:
    """Table 1."""
    page = "# Table 1: sufficiency and comprehensiveness of all methods at equal budget\n\n"
    page += (
        f"{BUDGET} passes for each explanation, {REDUCED} for long documents (FEVER, MultiRC), forward and "
        f"backward counted together; `thompson-search`, ours, always has {REDUCED}. A search makes an "
        "explanation for each sparsity, a salience method one for all. Points "
        "(difference in probability × 100), with half the width of the 95% interval from a block "
        "bootstrap over inputs and model seeds, 100,000 resamples. Bold: best of its column at p < .05.\n"
    )
    for which in SETS:
        keys = results.cells(which)
        if not keys:
            continue

        def cell(method: str, metric: str, training: str, which: str = which) -> Floats | None:
            return results.values(Key(which, False, training, method, budget_of(method, which), metric))

        example = next(v for k in keys if (v := results.values(k)) is not None)
        page += f"\n## {SETS[which].name}: {example.shape[1]} test points, {example.shape[0]} seeds\n\n"
        page += table(
            ["method", *columns("paper"), *columns("ours")],
            metric_rows(cell, TABLE_1.get(which, {}), ORDER),
        )
        page += "\n" + findings(cell)
    if re.search(r"\[\d\]", page):
        page += (
            "\n[1], [2]: only so many of the model seeds were measured; comparisons are paired over these.\n"
        )
    return page


def accuracy_table(results: Path) -> str:
    """Table 3."""
    rows = []
    for which, spec in SETS.items():
        cells = []
        for training in TRAININGS:
            files = sorted(results.glob(f"{which}-{training}-*.train.json"))
            right = [json.loads(path.read_text())["right"] for path in files]
            cells.append(100 * np.array(right, dtype=float) if right else None)
        if cells[0] is None or cells[1] is None:
            continue
        paper = [f"{mean:.2f} ({half:.2f})" for mean, half in TABLE_3[which]]
        gap = difference(cells[1], cells[0])
        rows.append(
            [spec.name, *paper, *(shown(interval(c)) for c in cells), f"{gap.mean:+.2f} ({gap.p_text})"]
        )
    page = "# Table 3: accuracy of standard and counterfactual-trained models\n\n"
    page += (
        "Test accuracy in %, with half the width of the 95% interval. Paper: the best of ten seeds of "
        "BERT-base, intervals over data. Ours: three seeds of all-MiniLM-L6-v2, intervals over data and "
        "seeds.\n\n"
    )
    head = ["set", "paper Standard", "paper CT", "ours Standard", "ours CT", "ours CT − Standard"]
    return page + table(head, rows)


def short_table(results: Results) -> str:
    """Table 4."""

    def cell(method: str, metric: str, training: str) -> Floats | None:
        budget = None if method in SALIENCE or method == "exhaustive-search" else BUDGET
        return results.values(Key("sst2", True, training, method, budget, metric))

    page = "# Table 4: short sentences of SST-2, beside exhaustive search\n\n"
    page += "Sentences of 5 to 10 tokens, so that all sets can be judged. Otherwise as in Table 1.\n\n"
    return page + table(["method", *columns("paper"), *columns("ours")], metric_rows(cell, TABLE_4, ORDER))


def reduced_table(results: Results) -> str:
    """Table 5."""
    page = "# Table 5: a reduced budget, 1000 passes over all four sparsities\n\n"
    page += (
        "Searches have 250 passes for each sparsity, salience methods 1000 in all (250 on FEVER and "
        "MultiRC). On SST-2 and SNLI searches are read off their course after 250 evaluations: for random "
        "search and PLS a run of 1000, of which the first 250 are the same as a run of 250, for the others "
        "a run of 250. Marks as in Table 1.\n"
    )
    for which in SETS:
        if not results.cells(which):
            continue

        def cell(method: str, metric: str, training: str, which: str = which) -> Floats | None:
            budget = None if method in SALIENCE else REDUCED
            if budget is None or SETS[which].budget == REDUCED:
                return results.values(Key(which, False, training, method, budget, metric))
            if method in AT_A_QUARTER:
                return results.after(Key(which, False, training, method, REDUCED, metric), REDUCED)
            if method in ("random-search", "parallel-local-search"):
                return results.after(Key(which, False, training, method, BUDGET, metric), REDUCED)
            return None

        page += f"\n## {SETS[which].name}\n\n"
        page += table(
            ["method", *columns("paper"), *columns("ours")],
            metric_rows(cell, TABLE_5.get(which, {}), ORDER),
        )
    return page


def evidence_table(results: Results) -> str:
    """Table 7."""
    page = "# Table 7: weight of evidence, counterfactual-trained models\n\n"
    page += (
        "The same explanations as in Table 1, measured by the change in log-odds (Eqn. 2); marks as there.\n"
    )
    for which in SETS:
        if not results.cells(which):
            continue
        rows = []
        for method in ORDER:
            cells = [
                results.values(
                    Key(which, False, "attention-mask", method, budget_of(method, which), metric),
                    "weight-of-evidence",
                )
                for metric in OBJECTIVES
            ]
            if cells[0] is None or cells[1] is None:
                continue
            paper = TABLE_7.get(which, {}).get(method)
            theirs = [f"{m:.2f} ({h:.2f})" for m, h in paper] if paper else ["–", "–"]
            ours = [shown(interval(c)) + few_seeds(c) for c in cells if c is not None]
            rows.append([method, *theirs, *ours])
        head = [f"{source}: {ARROWS[metric]}" for source in ("paper", "ours") for metric in OBJECTIVES]
        page += f"\n## {SETS[which].name}\n\n" + table(["method", *head], rows)
    return page
