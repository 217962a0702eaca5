"""Tables of the paper with ours next to them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from experiments.hase2021.data import SETS
from experiments.hase2021.methods import AT_250, BUDGET, LAYERS, OBJECTIVES, REDUCED, SALIENCE, SECOND, run_of
from experiments.hase2021.paper import METHODS, PUBLISHED
from experiments.hase2021.results import TRAININGS, Part, difference, interval, measured_seeds, show
from experiments.shared.pages import MISSING, table
from experiments.shared.stages import read_record
from pertinent.array_types import Floats

ORDER = [*METHODS, AT_250, "thompson-search"]
COMPARED = ("ordered-search", "random-search", "parallel-local-search")
"""Searches of the paper's Table 5."""
ARROWS = {"sufficiency": "Sufficiency ↓", "comprehensiveness": "Comprehensiveness ↑"}
SIGN = {"sufficiency": -1, "comprehensiveness": 1}
VISIBLE = 0.01
"""Points that the tables show; searches that find the same sets differ by less, from rounding in bfloat16."""
COLUMNS = [(metric, training) for metric in OBJECTIVES for training in TRAININGS]
Parts = Mapping[str, Part]
ValuesOf = Callable[[str, str, str], Floats | None]
"""Function from a row, a metric and a training to values (seeds, inputs)."""
Printed = Mapping[str, Sequence[tuple[float, float]]]


def columns(source: str) -> list[str]:
    """Return the heads of the four columns of a metric table."""
    return [f"{source}: {ARROWS[metric]} {TRAININGS[training]}" for metric, training in COLUMNS]


def printed(paper: Printed, row: str, n: int = 4) -> list[str]:
    """Return the paper's numbers of a row."""
    return [f"{mean:.2f} ({half:.2f})" for mean, half in paper.get(row, ())] or [MISSING] * n


def metric_rows(
    values_of: ValuesOf,
    paper: Printed,
    rows: Iterable[str],
    columns: Sequence[tuple[str, str]] = COLUMNS,
    ranked_rows: Iterable[str] | None = None,
) -> list[list[str]]:
    """Return a line for each row: the paper's numbers, then ours; the best of a column is bold if p < .05."""
    cells = {row: {column: values_of(row, *column) for column in columns} for row in rows}
    cells = {row: own for row, own in cells.items() if any(v is not None for v in own.values())}
    candidates = [row for row in cells if ranked_rows is None or row in ranked_rows]
    best = {
        c: clearly_best({row: v for row in candidates if (v := cells[row][c]) is not None}, c[0])
        for c in columns
    }
    lines = []
    for row, by_column in cells.items():
        ours = []
        for column, values in by_column.items():
            text = MISSING if values is None else show(interval(values)) + few_seeds(values)
            ours.append(f"**{text}**" if best[column] == row else text)
        lines.append([row, *printed(paper, row, len(columns)), *ours])
    return lines


def size(part: Part) -> str:
    """Return the numbers of test points and model seeds of a part."""
    shapes = {training: part.shapes[training] for training in TRAININGS if training in part.shapes}
    points = {training: n for training, (_, n) in shapes.items()}
    seeds = max(n for n, _ in shapes.values())
    text = " and ".join(f"{n} ({TRAININGS[training]})" for training, n in points.items())
    if len(set(points.values())) == 1:
        text = str(next(iter(points.values())))
    return f"{text} test points, {seeds} seed{'s' if seeds > 1 else ''}"


def title(part: Part, dataset: str) -> str:
    """Return the heading of a data set's section."""
    return f"\n## {SETS[dataset].name}: {size(part)}\n\n"


def few_seeds(values: Floats) -> str:
    """Return a mark where not all model seeds were measured."""
    n = len(measured_seeds(values))
    return "" if n == len(values) else f" [{n}]"


def ranked(values: Mapping[str, Floats], metric: str) -> list[str]:
    """Return the rows, best first, by their means over the seeds that all of them have, if any."""
    shared = ~np.isnan(sum(values.values())).any(axis=1)
    means = {row: float(np.nanmean(v[shared] if shared.any() else v)) for row, v in values.items()}
    return sorted(means, key=lambda row: -SIGN[metric] * means[row])


def clearly_best(values: Mapping[str, Floats], metric: str) -> str | None:
    """Return the best row if it is ahead of the second at p < .05, and by a visible number of points."""
    if len(values) < 2:
        return None
    best, second, *_ = ranked(values, metric)
    lead = difference(values[best], values[second])
    return best if lead.p_value < 0.05 and SIGN[metric] * lead.mean >= VISIBLE else None


def ahead(values: Mapping[str, Floats], metric: str, row: str, others: Iterable[str]) -> str:
    """Return a sentence that compares a row with the best of others."""
    rival = ranked({other: values[other] for other in others if other != row and other in values}, metric)[0]
    return f"{row} is {versus(values[row], values[rival], metric)} than {rival}"


def versus(a: Floats, b: Floats, metric: str) -> str:
    """Return by how many points one column of values is better or worse than another."""
    gap = difference(a, b)
    better = SIGN[metric] * gap.mean > 0
    return f"{abs(gap.mean):.2f} points {'better' if better else 'worse'} ({gap.p_text})"


def measured_rows(values_of: ValuesOf, metric: str, training: str) -> dict[str, Floats]:
    """Return the values of all rows that were measured."""
    return {row: v for row in ORDER if (v := values_of(row, metric, training)) is not None}


COMPARISONS: Sequence[tuple[str, str, Iterable[str]]] = (
    ("parallel-local-search", "the best of the paper's other methods", METHODS),
    ("parallel-local-search", "random-search", ["random-search"]),
    ("lime", "the best other salience method", SALIENCE),
    (AT_250, "parallel-local-search", ["parallel-local-search"]),
    ("thompson-search", "parallel-local-search", ["parallel-local-search"]),
)
"""A row, a description of what it is compared with, and the rows of which the best is taken."""


def findings(values_of: ValuesOf) -> str:
    """Return the paper's claims about Table 1 as numbers."""
    page = ""
    for metric in OBJECTIVES:
        for training in TRAININGS:
            values = measured_rows(values_of, metric, training)
            sentences = [
                ahead(values, metric, row, others)
                for row, _, others in COMPARISONS
                if row in values and (set(others) - {row}) & set(values)
            ]
            page += f"- {metric.capitalize()}, {TRAININGS[training]}: " + "; ".join(sentences) + ".\n"
        gaps = []
        for row in ("parallel-local-search", "random-search", "lime"):
            standard, counterfactual = (values_of(row, metric, training) for training in TRAININGS)
            if standard is not None and counterfactual is not None:
                gaps.append(f"{versus(counterfactual, standard, metric)} by {row}")
        page += f"- {metric.capitalize()} of CT models beside Standard's: {', '.join(gaps)}.\n"
    return page


def tallies(parts: Parts, sets: Iterable[str]) -> str:
    """Return in how many columns of Table 1 each claim holds, and in how many clearly."""
    pairs: dict[str, list[tuple[Floats, Floats, str]]] = {}
    comparisons = (*COMPARISONS, ("thompson-search", "the best of the paper's methods", METHODS))
    for dataset, metric in itertools.product(sets, OBJECTIVES):
        values_of = parts[dataset].values
        for training in TRAININGS:
            values = measured_rows(values_of, metric, training)
            for row, name, others in comparisons:
                rivals = {other: values[other] for other in others if other != row and other in values}
                if row in values and rivals:
                    pair = values[row], rivals[ranked(rivals, metric)[0]], metric
                    pairs.setdefault(f"{row} beside {name}", []).append(pair)
        standard, trained = (values_of("parallel-local-search", metric, own) for own in TRAININGS)
        if standard is not None and trained is not None:
            pairs.setdefault("Standard models beside CT, by PLS", []).append((standard, trained, metric))
    lines = ""
    for name, cells in pairs.items():
        clear = [clear_win(a, b, metric) for a, b, metric in cells]
        better = sum(SIGN[metric] * difference(a, b).mean > 0 for a, b, metric in cells)
        lines += f"- {name}: better in {better} of {len(cells)}, clearly in {clear.count(1)}; clearly "
        lines += f"worse in {clear.count(-1)}.\n"
    return lines


def main_table(parts: Parts) -> str:
    """Return the page of Table 1."""
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
    sets = [name for name in SETS if name in parts]
    for name in sets:
        page += title(parts[name], name)
        rows = metric_rows(parts[name].values, PUBLISHED["table1"].get(name, {}), ORDER)
        page += table(["method", *columns("paper"), *columns("ours")], rows)
        page += "\n" + findings(parts[name].values)
    names = ", ".join(SETS[name].name for name in sets)
    return page + f"\n## In how many columns\n\n{names}; clearly: p < .05.\n\n{tallies(parts, sets)}"


def accuracies_by_training(results: Path, dataset: str) -> list[Floats] | None:
    """Return standard and CT accuracies in % (seeds, points), NaN where a seed has none."""
    by_seed = []
    for start in (f"{dataset}-{training}-" for training in TRAININGS):
        files = results.glob(f"{start}*.train.json")
        by_seed.append({path.name.removeprefix(start): read_record(path)["right"] for path in files})
    if not all(by_seed):
        return None
    blank = [np.nan] * len(next(iter(by_seed[0].values())))
    seeds = sorted(by_seed[0].keys() | by_seed[1].keys())
    return [100 * np.array([own.get(seed, blank) for seed in seeds], dtype=float) for own in by_seed]


def accuracy_table(results: Path) -> str:
    """Return the page of Table 3."""
    rows = []
    for name, spec in SETS.items():
        accuracies = accuracies_by_training(results, name)
        if accuracies is None:
            continue
        gap = difference(accuracies[1], accuracies[0])
        ours = [
            *(show(interval(own)) + few_seeds(own) for own in accuracies),
            f"{gap.mean:+.2f} ({gap.p_text})",
        ]
        rows.append([spec.name, *printed(PUBLISHED["table3"], name), *ours, str(len(accuracies[0]))])
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


def short_table(part: Part) -> str:
    """Return the page of Table 4."""
    page = "# Table 4: short sentences of SST-2, beside exhaustive search\n\n"
    page += "Sentences of 5 to 10 tokens, so that all sets can be judged. Otherwise as in Table 1.\n\n"
    rows = metric_rows(part.values, PUBLISHED["table4"], ORDER)
    return page + table(["method", *columns("paper"), *columns("ours")], rows)


def clear_win(a: Floats, b: Floats, metric: str) -> int:
    """Return 1 if the first is better at p < .05, -1 if the second is, else 0."""
    gap = difference(a, b)
    return 0 if gap.p_value >= 0.05 else (1 if SIGN[metric] * gap.mean > 0 else -1)


def count_wins(signs: Sequence[int], one: str, other: str) -> str:
    """Return how often each of two is clearly better, in words."""
    n = len(signs)
    return f"{one} is preferable in {signs.count(1)} of {n} comparisons, {other} in {signs.count(-1)}"


def preferences(parts: Iterable[Part]) -> str:
    """Return how often searches are preferable to LIME, and PLS to random search (App. C), at p < .05."""
    signs: dict[tuple[str, str], list[int]] = {}
    for part, (metric, training) in itertools.product(parts, COLUMNS):
        values = measured_rows(part.reduced, metric, training)
        searches = [row for row in COMPARED if row in values]
        if "lime" not in values or not searches:
            continue
        best = ranked({row: values[row] for row in searches}, metric)[0]
        pairs = {
            ("the best search", "LIME"): (best, "lime"),
            ("PLS", "LIME"): ("parallel-local-search", "lime"),
            ("PLS", "random search"): ("parallel-local-search", "random-search"),
            ("thompson-search", "LIME"): (AT_250, "lime"),
        }
        for names, (a, b) in pairs.items():
            if {a, b} <= set(values):
                signs.setdefault(names, []).append(clear_win(values[a], values[b], metric))
    return "".join(f"- {count_wins(own, *names)}.\n" for names, own in signs.items())


def reduced_table(parts: Parts, counted: Parts) -> str:
    """Return the page of Table 5; data sets that only `counted` has are counted, and have no rows."""
    page = f"# Table 5: a reduced budget, {BUDGET} passes over all four sparsities\n\n"
    page += (
        f"Searches have {REDUCED} passes for each sparsity, salience methods {BUDGET} in all. Searches are "
        f"read off their course after {REDUCED} evaluations: for random search and PLS a run of {BUDGET}, of "
        f"which the first {REDUCED} are the same as a run of {REDUCED}, for the others a run of {REDUCED}. "
        "Marks as in Table 1.\n"
    )
    sets = [name for name in SETS if name in parts]
    for name in sets:
        page += f"\n## {SETS[name].name}\n\n"
        rows = [row for row in ORDER if row != "thompson-search"]
        lines = metric_rows(parts[name].reduced, PUBLISHED["table5"].get(name, {}), rows)
        page += table(["method", *columns("paper"), *columns("ours")], lines)
    page += f"\n## Which is preferable, at p < .05\n\n{', '.join(SETS[name].name for name in sets)}"
    later = [name for name in SETS if name in counted and name not in sets]
    for name in later:
        page += f"; {size(counted[name])} in a later run of {SETS[name].name}"
    page += "; two metrics and two trainings each, where both methods were measured.\n\n"
    page += preferences([*(parts[name] for name in sets), *(counted[name] for name in later)])
    page += (
        "\nThe best search is the one of ordered search, random search and PLS with the best mean. Paper: "
        "searches are preferable to LIME in 15 of 24, LIME in 8; PLS to random search in 7, random search "
        "in 1.\n"
    )
    return page


def second_table(parts: Parts) -> str:
    """Return the page of Table 6."""
    page = "# Table 6: another encoder, counterfactual-trained models\n\n"
    page += (
        f"Paper: RoBERTa-base. Ours: the first {LAYERS} of the encoder's six layers, fine-tuned as the whole "
        "is. Otherwise as in Table 1; bold is the best of the paper's three methods at p < .05.\n"
    )
    rows = [row for row in ORDER if run_of(row)[0] in SECOND]
    ct_columns = [(metric, "attention-mask") for metric in OBJECTIVES]
    for name in SETS:
        part = parts.get(f"{name}-{LAYERS}layers")
        if part is None:
            continue
        page += title(part, name)
        lines = metric_rows(part.values, PUBLISHED["table6"].get(name, {}), rows, ct_columns, METHODS)
        page += table(["method", *ct_head()], lines) + "\n"
        for metric, training in ct_columns:
            values = measured_rows(part.values, metric, training)
            sentences = [
                ahead(values, metric, row, [other])
                for row, other in (
                    ("parallel-local-search", "lime"),
                    ("parallel-local-search", "random-search"),
                    ("lime", "random-search"),
                    (AT_250, "parallel-local-search"),
                    ("thompson-search", "parallel-local-search"),
                )
                if {row, other} <= set(values)
            ]
            page += f"- {metric.capitalize()}: {'; '.join(sentences)}.\n"
    return page


def evidence_table(parts: Parts) -> str:
    """Return the page of Table 7."""
    page = "# Table 7: weight of evidence, counterfactual-trained models\n\n"
    page += (
        "The same explanations as in Table 1, measured by the change in log-odds (Eqn. 2); marks as there.\n"
    )
    for name in SETS:
        if name not in parts:
            continue
        rows = []
        for row in ORDER:
            cells = [
                parts[name].values(row, metric, "attention-mask", "weight-of-evidence")
                for metric in OBJECTIVES
            ]
            known = [values for values in cells if values is not None]
            if len(known) == len(cells):
                ours = [show(interval(values)) + few_seeds(values) for values in known]
                rows.append([row, *printed(PUBLISHED["table7"].get(name, {}), row, 2), *ours])
        page += f"\n## {SETS[name].name}\n\n" + table(["method", *ct_head()], rows)
    return page


def ct_head() -> list[str]:
    """Return the heads of the columns of a table of counterfactual models."""
    return [f"{source}: {ARROWS[metric]}" for source in ("paper", "ours") for metric in OBJECTIVES]
