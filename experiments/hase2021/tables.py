"""The paper's tables and ours, side by side."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
from collect import TRAININGS, Key, Results, difference, interval, measured_seeds, shown, table
from data import SETS
from methods import AT_A_QUARTER, BUDGET, LAYERS, OBJECTIVES, REDUCED, SALIENCE, SECOND
from paper import METHODS, TABLE_1, TABLE_3, TABLE_4, TABLE_5, TABLE_6, TABLE_7

from pertinent.array_types import Floats

AT_250 = f"thompson-search at {REDUCED}"
ORDER = [*METHODS, AT_250, "thompson-search"]
COMPARED = ("ordered-search", "random-search", "parallel-local-search")
"""The searches of the paper's Table 5."""
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


def size(results: Results, which: str, layers: int | None = None) -> str:
    """How much was measured of a set: test points and model seeds."""
    shapes = {
        key.training: v.shape
        for key in results.cells(which, layers=layers)
        if (v := results.values(key)) is not None
    }
    points = {training: shapes[training][1] for training in TRAININGS if training in shapes}
    seeds = max(n for n, _ in shapes.values())
    text = " and ".join(f"{n} ({TRAININGS[training]})" for training, n in points.items())
    if len(set(points.values())) == 1:
        text = str(next(iter(points.values())))
    return f"{text} test points, {seeds} seed{'s' if seeds > 1 else ''}"


def title(results: Results, which: str, layers: int | None = None) -> str:
    """The heading of a set's section."""
    return f"\n## {SETS[which].name}: {size(results, which, layers)}\n\n"


def few_seeds(values: Floats) -> str:
    """A mark where not all model seeds were measured."""
    n = len(measured_seeds(values))
    return "" if n == len(values) else f" [{n}]"


def ranked(values: dict[str, Floats], metric: str) -> list[str]:
    """Methods, best first, by their means over the seeds that all of them were measured with, if any."""
    shared = ~np.isnan(sum(values.values())).any(axis=1)
    means = {m: float(np.nanmean(v[shared] if shared.any() else v)) for m, v in values.items()}
    return sorted(means, key=lambda m: -SIGN[metric] * means[m])


def _clearly_best(values: dict[str, Floats], metric: str) -> str | None:
    """The best method, if it is ahead of the second best at p < .05, and by enough to be seen."""
    if len(values) < 2:
        return None
    best, second, *_ = ranked(values, metric)
    lead = difference(values[best], values[second])
    return best if lead.p_value < 0.05 and SIGN[metric] * lead.mean >= VISIBLE else None


def run_of(row: str) -> tuple[str, int | None]:
    """The method and the budget of a table's row."""
    if row == AT_250:
        return "thompson-search", REDUCED
    return row, None if row in SALIENCE or row == "exhaustive-search" else BUDGET


def ahead(values: dict[str, Floats], metric: str, method: str, others: Iterable[str]) -> str:
    """How a method stands beside the best of others, in words."""
    rival = ranked({m: values[m] for m in others if m != method and m in values}, metric)[0]
    return f"{method} is {versus(values[method], values[rival], metric)} than {rival}"


def versus(a: Floats, b: Floats, metric: str) -> str:
    """How two columns of values differ, in words."""
    found = difference(a, b)
    better = SIGN[metric] * found.mean > 0
    return f"{abs(found.mean):.2f} points {'better' if better else 'worse'} ({found.p_text})"


BESIDE: Sequence[tuple[str, str, Iterable[str]]] = (
    ("parallel-local-search", "the best of the paper's other methods", METHODS),
    ("parallel-local-search", "random-search", ["random-search"]),
    ("lime", "the best other salience method", SALIENCE),
    (AT_250, "parallel-local-search", ["parallel-local-search"]),
    ("thompson-search", "parallel-local-search", ["parallel-local-search"]),
)
"""Comparisons: a method, what it is compared with in words, and the names of which the best is taken."""


def findings(cell: Callable[[str, str, str], Floats | None]) -> str:
    """The paper's claims about Table 1, in numbers."""
    page = ""
    for metric in OBJECTIVES:
        for training in TRAININGS:
            found = {m: v for m in ORDER if (v := cell(m, metric, training)) is not None}
            said = [
                ahead(found, metric, method, others)
                for method, _, others in BESIDE
                if method in found and (set(others) - {method}) & set(found)
            ]
            page += f"- {metric.capitalize()}, {TRAININGS[training]}: " + "; ".join(said) + ".\n"
        gaps = []
        for method in ("parallel-local-search", "random-search", "lime"):
            standard, counterfactual = (cell(method, metric, training) for training in TRAININGS)
            if standard is not None and counterfactual is not None:
                gaps.append(f"{versus(counterfactual, standard, metric)} by {method}")
        page += f"- {metric.capitalize()} of CT models beside Standard's: {', '.join(gaps)}.\n"
    return page


def tallies(cell: Callable[[str, str, str, str], Floats | None], sets: Iterable[str]) -> str:
    """In how many columns of Table 1 each claim holds, and in how many clearly."""
    pairs: dict[str, list[tuple[Floats, Floats, str]]] = {}
    every = (*BESIDE, ("thompson-search", "the best of the paper's methods", METHODS))
    for which, metric in itertools.product(sets, OBJECTIVES):
        for training in TRAININGS:
            found = {m: v for m in ORDER if (v := cell(which, m, metric, training)) is not None}
            for method, name, others in every:
                rivals = {m: found[m] for m in others if m != method and m in found}
                if method in found and rivals:
                    pair = found[method], rivals[ranked(rivals, metric)[0]], metric
                    pairs.setdefault(f"{method} beside {name}", []).append(pair)
        standard, trained = (cell(which, "parallel-local-search", metric, each) for each in TRAININGS)
        if standard is not None and trained is not None:
            pairs.setdefault("Standard models beside CT, by PLS", []).append((standard, trained, metric))
    lines = ""
    for name, columns in pairs.items():
        clear = [clear_wins(a, b, metric) for a, b, metric in columns]
        better = sum(SIGN[metric] * difference(a, b).mean > 0 for a, b, metric in columns)
        lines += f"- {name}: better in {better} of {len(columns)}, clearly in {clear.count(1)}; clearly "
        lines += f"worse in {clear.count(-1)}.\n"
    return lines


def main_table(results: Results) -> str:
    """Table 1."""
    page = "# Table 1: sufficiency and comprehensiveness of all methods at equal budget\n\n"
    page += (
        f"{BUDGET} passes for each explanation, forward and backward counted together; `thompson-search` is "
        f"ours, with {BUDGET} and with {REDUCED}. A search makes an explanation for each sparsity, a "
        "salience method one for all. Points "
        "(difference in probability × 100), with half the width of the 95% interval from a block "
        "bootstrap over inputs and model seeds, 100,000 resamples; where there is one seed, over inputs. "
        "Bold: best of its column at p < .05. –: not measured. [1], [2]: only so many of the model seeds "
        "were measured; comparisons are paired over these.\n"
    )
    for which in SETS:
        if not results.cells(which):
            continue

        def cell(row: str, metric: str, training: str, which: str = which) -> Floats | None:
            return results.values(Key(which, False, training, *run_of(row), metric))

        page += title(results, which)
        page += table(
            ["method", *columns("paper"), *columns("ours")],
            metric_rows(cell, TABLE_1.get(which, {}), ORDER),
        )
        page += "\n" + findings(cell)
    measured = [which for which in SETS if results.cells(which)]

    def of_set(which: str, row: str, metric: str, training: str) -> Floats | None:
        return results.values(Key(which, False, training, *run_of(row), metric))

    names = ", ".join(SETS[which].name for which in measured)
    return page + f"\n## In how many columns\n\n{names}; clearly: p < .05.\n\n{tallies(of_set, measured)}"


def accuracies_by_training(results: Path, which: str) -> list[Floats] | None:
    """Standard and CT accuracies in % (seeds, points), NaN where a seed lacks one; None without both."""
    by_seed = []
    for start in (f"{which}-{training}-" for training in TRAININGS):
        files = results.glob(f"{start}*.train.json")
        by_seed.append({p.name.removeprefix(start): json.loads(p.read_text())["right"] for p in files})
    if not all(by_seed):
        return None
    n = len(next(iter(by_seed[0].values())))
    seeds = sorted(by_seed[0].keys() | by_seed[1].keys())
    return [100 * np.array([rights.get(s, [np.nan] * n) for s in seeds], dtype=float) for rights in by_seed]


def accuracy_table(results: Path) -> str:
    """Table 3."""
    rows = []
    for which, spec in SETS.items():
        cells = accuracies_by_training(results, which)
        if cells is None:
            continue
        paper = [f"{mean:.2f} ({half:.2f})" for mean, half in TABLE_3[which]]
        gap = difference(cells[1], cells[0])
        ours = [*(shown(interval(c)) + few_seeds(c) for c in cells), f"{gap.mean:+.2f} ({gap.p_text})"]
        rows.append([spec.name, *paper, *ours, str(len(cells[0]))])
    page = "# Table 3: accuracy of standard and counterfactual-trained models\n\n"
    page += (
        "Test accuracy in %, with half the width of the 95% interval. Paper: the best of ten seeds of "
        "BERT-base, intervals over data. Ours: all-MiniLM-L6-v2, intervals over data and seeds.\n\n"
    )
    head = [
        "set",
        "paper Standard",
        "paper CT",
        "ours Standard",
        "ours CT",
        "ours CT − Standard",
        "our seeds",
    ]
    return page + table(head, rows)


def short_table(results: Results) -> str:
    """Table 4."""

    def cell(row: str, metric: str, training: str) -> Floats | None:
        return results.values(Key("sst2", True, training, *run_of(row), metric))

    page = "# Table 4: short sentences of SST-2, beside exhaustive search\n\n"
    page += "Sentences of 5 to 10 tokens, so that all sets can be judged. Otherwise as in Table 1.\n\n"
    return page + table(["method", *columns("paper"), *columns("ours")], metric_rows(cell, TABLE_4, ORDER))


def reduced(results: Results, which: str, row: str, metric: str, training: str) -> Floats | None:
    """What a method has reached with a reduced budget; one run of a salience method serves all sparsities."""
    method, budget = run_of(row)
    if budget is None:
        return results.values(Key(which, False, training, method, None, metric))
    if method in AT_A_QUARTER:
        return results.after(Key(which, False, training, method, REDUCED, metric), REDUCED)
    if method in ("random-search", "parallel-local-search"):
        return results.after(Key(which, False, training, method, BUDGET, metric), REDUCED)
    return None


def clear_wins(a: Floats, b: Floats, metric: str) -> int:
    """1 if the first is better at p < .05, -1 if the second is, else 0."""
    found = difference(a, b)
    return 0 if found.p_value >= 0.05 else (1 if SIGN[metric] * found.mean > 0 else -1)


def counted(signs: Sequence[int], one: str, other: str) -> str:
    """How often each of two is clearly better, in words."""
    n = len(signs)
    return f"{one} is preferable in {signs.count(1)} of {n} comparisons, {other} in {signs.count(-1)}"


def counts(cell: Callable[[str, str, str, str], Floats | None], sets: Iterable[str]) -> str:
    """How often searches are preferable to LIME, and PLS to random search (App. C), at p < .05."""
    signs: dict[tuple[str, str], list[int]] = {}
    for which, (metric, training) in itertools.product(sets, COLUMNS):
        found = {m: v for m in ORDER if (v := cell(which, m, metric, training)) is not None}
        searches = [method for method in COMPARED if method in found]
        if "lime" not in found or not searches:
            continue
        best = ranked({m: found[m] for m in searches}, metric)[0]
        pairs = {
            ("the best search", "LIME"): (best, "lime"),
            ("PLS", "LIME"): ("parallel-local-search", "lime"),
            ("PLS", "random search"): ("parallel-local-search", "random-search"),
            ("thompson-search", "LIME"): (AT_250, "lime"),
        }
        for names, (a, b) in pairs.items():
            if {a, b} <= set(found):
                signs.setdefault(names, []).append(clear_wins(found[a], found[b], metric))
    return "".join(f"- {counted(each, *names)}.\n" for names, each in signs.items())


def reduced_table(results: Results, beside: Results) -> str:
    """Table 5; sets that were measured beside it are counted, and have no rows."""
    page = f"# Table 5: a reduced budget, {BUDGET} passes over all four sparsities\n\n"
    page += (
        f"Searches have {REDUCED} passes for each sparsity, salience methods {BUDGET} in all. Searches are "
        f"read off their course after {REDUCED} evaluations: for random search and PLS a run of {BUDGET}, of "
        f"which the first {REDUCED} are the same as a run of {REDUCED}, for the others a run of {REDUCED}. "
        "Marks as in Table 1.\n"
    )
    measured = [which for which in SETS if results.cells(which)]
    for which in measured:

        def cell(row: str, metric: str, training: str, which: str = which) -> Floats | None:
            return reduced(results, which, row, metric, training)

        page += f"\n## {SETS[which].name}\n\n"
        rows = [row for row in ORDER if row != "thompson-search"]
        page += table(
            ["method", *columns("paper"), *columns("ours")],
            metric_rows(cell, TABLE_5.get(which, {}), rows),
        )
    names = ", ".join(SETS[which].name for which in measured)
    page += f"\n## Which is preferable, at p < .05\n\n{names}"
    again = [which for which in SETS if beside.cells(which) and which not in measured]
    for which in again:
        page += f"; {size(beside, which)} in a later run of {SETS[which].name}"
    page += "; two metrics and two trainings each, where both methods were measured.\n\n"

    def cell(which: str, row: str, metric: str, training: str) -> Floats | None:
        return reduced(beside if which in again else results, which, row, metric, training)

    page += counts(cell, [*measured, *again])
    page += (
        "\nThe best search is the one of ordered search, random search and PLS with the best mean. Paper: "
        "searches are preferable to LIME in 15 of 24, LIME in 8; PLS to random search in 7, random search "
        "in 1.\n"
    )
    return page


def second_table(results: Results) -> str:
    """The page of Table 6: methods on a second encoder."""
    page = "# Table 6: another encoder, counterfactual-trained models\n\n"
    page += (
        f"Paper: RoBERTa-base. Ours: the first {LAYERS} of the encoder's six layers, fine-tuned as the whole "
        "is. Otherwise as in Table 1; bold is the best of the paper's three methods at p < .05.\n"
    )
    rows = [row for row in ORDER if run_of(row)[0] in SECOND]
    for which in SETS:
        if not results.cells(which, layers=LAYERS):
            continue
        found: dict[str, dict[str, Floats]] = {metric: {} for metric in OBJECTIVES}
        for row, metric in itertools.product(rows, OBJECTIVES):
            key = Key(which, False, "attention-mask", *run_of(row), metric, LAYERS)
            if (values := results.values(key)) is not None:
                found[metric][row] = values
        lines = []
        theirs = {m: {r: v for r, v in found[m].items() if r in METHODS} for m in OBJECTIVES}
        best = {metric: _clearly_best(theirs[metric], metric) for metric in OBJECTIVES}
        for row in rows:
            paper = TABLE_6.get(which, {}).get(row)
            cells = [f"{m:.2f} ({h:.2f})" for m, h in paper] if paper else ["–", "–"]
            for metric in OBJECTIVES:
                text = shown(interval(found[metric][row])) if row in found[metric] else "–"
                cells.append(f"**{text}**" if best[metric] == row else text)
            lines.append([row, *cells])
        head = [f"{source}: {ARROWS[metric]}" for source in ("paper", "ours") for metric in OBJECTIVES]
        page += title(results, which, LAYERS)
        page += table(["method", *head], lines) + "\n"
        for metric in OBJECTIVES:
            said = [
                ahead(found[metric], metric, method, [other])
                for method, other in (
                    ("parallel-local-search", "lime"),
                    ("parallel-local-search", "random-search"),
                    ("lime", "random-search"),
                    (AT_250, "parallel-local-search"),
                    ("thompson-search", "parallel-local-search"),
                )
                if {method, other} <= set(found[metric])
            ]
            page += f"- {metric.capitalize()}: {'; '.join(said)}.\n"
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
                    Key(which, False, "attention-mask", *run_of(method), metric),
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
