"""Tables on images and on the forest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from experiments.hsieh2021 import paper
from experiments.hsieh2021.checks import CHECKED
from experiments.hsieh2021.comparisons import (
    IRRELEVANT,
    OPTIMIZED,
    RELEVANT,
    Experiment,
    paper_place,
    reference_name,
)
from experiments.hsieh2021.comparisons import OTHERS as PAPERS_OTHERS
from experiments.hsieh2021.criteria import CLASS_LOGIT, MAXIMUM_LOGIT, REFERENCES
from experiments.hsieh2021.forest import ROWS as FOREST_ROWS
from experiments.hsieh2021.records import Records
from experiments.hsieh2021.rows import FEWER, MAGNITUDE, ROWS, lines
from experiments.hsieh2021.scales import scales_table
from experiments.shared.intervals import (
    count_verdicts,
    difference,
    holds,
    interval,
    number,
    show,
    show_mean,
    verdict,
)
from experiments.shared.pages import MISSING, table
from pertinent.array_types import Floats
from pertinent.stats import Difference

KINDS = ("irrelevant", "relevant")
FEW = ("random", "gradient", "expected-gradients", "counterfactual", "greedy-as", "greedy-as, logit attack")
"""Rows compared with Greedy-AS with 500 subsets."""
ZERO_BASED = ("integrated-gradients", "shapley-sampling", "leave-one-out")
"""Methods with a baseline of 0."""
NOT_IN_PAPER = (
    "shapley",
    "shapley" + MAGNITUDE,
    "thompson-search",
    "parallel-local-search",
    "lime",
    "lime" + MAGNITUDE,
)


def kind_of(metric: str) -> str:
    """Return the pixels that a criterion attacks."""
    return metric.rpartition(" ")[2]


def own_criteria(name: str, records: Records) -> str:
    """Return each kind of Greedy-AS by both criteria: against all others, and against the best of them."""
    own, rows = Experiment(records, name), []
    for method, optimized in OPTIMIZED.items():
        for metric in (IRRELEVANT, RELEVANT):
            verdicts = own.against(method, metric)
            rival = own.best(lines(PAPERS_OTHERS), metric)
            if rival is None or not verdicts:
                continue
            gap = own.ahead(method, rival, metric)
            losses = ", ".join(f"`{other}`" for other, word in verdicts.items() if word == "loss") or "none"
            criterion = kind_of(metric) + (", its own" if optimized == metric else "")
            counts = count_verdicts(list(verdicts.values()))
            rows.append(
                [f"`{method}`", criterion, counts, losses, f"`{rival}`", show(gap, "+.1f"), holds(gap)]
            )
    head = ["method", "criterion", "against the paper's other methods", "loses to", "best of the others"]
    return table([*head, "ahead of it by", "wins"], rows)


def variants(name: str, records: Records) -> str:
    """Return Greedy-AS against its variants, by the criterion that both optimize (Table 3)."""
    own, rows = Experiment(records, name), []
    for suffix, metric in (("", IRRELEVANT), (", relevant", RELEVANT)):
        for other in ("one-step-banzhaf", "greedy"):
            gap = own.ahead("greedy-as" + suffix, other + suffix, metric)
            claim = f"`greedy-as{suffix}` is better than `{other + suffix}`"
            if gap is not None:
                rows.append([claim, kind_of(metric), show(gap, "+.1f"), holds(gap)])
    return table(["finding", "criterion", "ahead by", "holds"], rows)


def scattered(records: Records) -> str:
    """Return whether Greedy-AS selects fewer components of pixels than its variants (Figure 9)."""
    rows = []
    for name, title in (("mnist", "MNIST"), ("fashion-mnist", "Fashion-MNIST")):
        own = Experiment(records, name)
        for suffix in ("", ", relevant"):
            for variant in ("greedy", "one-step-banzhaf"):
                ours, other = (own.values(row + suffix, "pieces") for row in ("greedy-as", variant))
                gap = difference(other, ours)
                if gap is not None and ours is not None and other is not None:
                    counts = [str(min(len(ours), len(other))), f"{ours.mean():.1f}", f"{other.mean():.1f}"]
                    methods = [f"`greedy-as{suffix}`", f"`{variant}{suffix}`"]
                    rows.append([title, *methods, *counts, show(gap, "+.1f"), holds(gap)])
    head = ["images", "method", "against", "n", "pieces", "pieces of the other", "fewer by", "holds"]
    return table(head, rows)


def by_reference(name: str, suffix: str, records: Records) -> str:
    """Return Greedy-AS by insertion and deletion, for each reference value."""
    own, published, rows = Experiment(records, name), paper.BY_DATA.get(name), []
    for kind in ("insertion", "deletion"):
        for reference in REFERENCES:
            metric = kind + suffix
            winner = own.best(lines(list(ROWS)), metric, reference=reference)
            if winner is None:
                continue
            cells = [kind, reference_name(reference)]
            if published is not None:
                cells.append(f"{paper_place(published[kind][paper.reference_key(reference)], kind)} of 9")
            for method in OPTIMIZED:
                verdicts = own.against(method, metric, reference=reference)
                places = [
                    own.place(method, metric, as_authors=as_authors, reference=reference)
                    for as_authors in (False, True)
                ]
                cells += [count_verdicts(list(verdicts.values())), *places]
            rows.append([*cells, f"`{winner}`"])
    head = ["criterion", "reference", *(["paper: place"] if published is not None else [])]
    for method in OPTIMIZED:
        head += [f"`{method}`", "place", "in the authors' orders"]
    return table([*head, "best of all rows"], rows)


def farther(records: Records) -> str:
    """Return the places of methods by distance of the reference value from 0."""
    own, rows = Experiment(records, "mnist"), []
    pairs = [(kind, reference) for kind in ("insertion", "deletion") for reference in (0.0, 0.5, 1.0)]
    for method in (*ZERO_BASED, "expected-gradients", "gradient" + MAGNITUDE, "counterfactual", "greedy-as"):
        cells = [own.place(method, kind + own.main_logit, reference=reference) for kind, reference in pairs]
        rows.append([f"`{method}`", *cells])
    return table(["method", *(f"{kind}, {reference:g}" for kind, reference in pairs)], rows)


def standing(records: Records) -> str:
    """Return Shapley values and searches: win or loss against Greedy-AS, and the place among the paper's."""
    own, rows = Experiment(records, "mnist"), []
    columns: list[tuple[str, str, dict[str, Any]]] = [
        (metric, method, {}) for method, metric in OPTIMIZED.items()
    ]
    for kind in ("insertion", "deletion"):
        settings = ({"reference": reference} for reference in ("uniform", 0.0, 1.0))
        columns += [(kind + own.main_logit, "greedy-as", each) for each in settings]
    for method in NOT_IN_PAPER:
        cells = []
        for metric, rival, settings in columns:
            place = own.place(method, metric, **settings)
            won = verdict(own.ahead(method, rival, metric, **settings))
            cells.append(place if place == MISSING else f"{won}, {place}")
        rows.append([f"`{method}`", *cells])
    kinds = [f"{kind}, {value}" for kind in ("insertion", "deletion") for value in ("noise", "0", "1")]
    return table(["method", "irrelevant", "relevant", *kinds], rows)


def robustness(name: str, names: Sequence[str], records: Records) -> str:
    """Return Table 1 with the variants of Table 3: areas under radii, and the cost of an image."""
    own, published, rows = Experiment(records, name), paper.BY_DATA.get(name), []
    for line in lines(names):
        areas = [own.areas(line, f"robustness of {kind}") for kind in KINDS]
        if areas[0] is None:
            continue
        row = line.removesuffix(MAGNITUDE)
        cells = [f"`{line}`", str(len(areas[0]))]
        for kind, values in zip(KINDS, areas, strict=True):
            if published is not None:
                cells.append(number(published[kind].get(ROWS[row].paper)))
            cells.append(show_mean(values, ".1f"))
        passes, seconds = (own.values(row, metric) for metric in ("passes", "seconds"))
        rows.append([*cells, mean(passes, ",.0f"), mean(seconds, ".3f")])
    heads = [(f"{kind}: paper", f"ours {arrow}") for kind, arrow in zip(KINDS, "↑↓", strict=True)]
    columns = [head for pair in heads for head in (pair if published is not None else pair[1:])]
    return table(["method", "images", *columns, "passes", "seconds"], rows)


def references(name: str, logit: str, names: Sequence[str], records: Records) -> str:
    """Return insertion and deletion by reference value, the paper's numbers in parentheses (Table 5)."""
    own, published, parts = Experiment(records, name), paper.BY_DATA.get(name), []
    for kind, arrow in (("insertion", "↑"), ("deletion", "↓")):
        rows = []
        for line in lines(names):
            areas = {r: own.areas(line, kind + logit, reference=r) for r in REFERENCES}
            measured = [values for values in areas.values() if values is not None]
            if not measured:
                continue
            cells = []
            for reference, values in areas.items():
                of_row = ROWS[line.removesuffix(MAGNITUDE)].paper or ""
                known = published and published[kind][paper.reference_key(reference)].get(of_row)
                note = "" if known is None or values is None else f" ({known:.0f})"
                cells.append(mean_and_half(values) + note)
            rows.append([f"`{line}`", str(len(measured[0])), *cells])
        if rows:
            head = ["method", "images", *map(reference_name, REFERENCES)]
            parts.append(f"**{kind.capitalize()} {arrow}**\n\n{table(head, rows)}")
    return "\n".join(parts)


def checks(records: Records) -> str:
    """Return Tables 7 and 8."""
    own, rows = Experiment(records, "mnist"), []
    for name in CHECKED:
        known = ROWS[name].paper or ""
        values = [own.values(name, metric) for metric in ("sanity", "sanity of magnitudes", "sensitivity")]
        cells = [f"`{name}`", number(paper.SANITY.get(known)), show_mean(values[0]), show_mean(values[1])]
        if values[0] is not None:
            rows.append([*cells, number(paper.SENSITIVITY.get(known)), show_mean(values[2])])
    head = ["method", "correlation: paper", "ours, scores", "ours, magnitudes", "sensitivity: paper", "ours"]
    return table(head, rows)


def check_verdicts(records: Records) -> str:
    """Return the correlation and the sensitivity of Greedy-AS minus those of each other method.

    "agrees" says whether ours has the sign of the paper's.
    """
    own, rows = Experiment(records, "mnist"), []
    for name in [name for name in CHECKED if ROWS[name].paper and not name.startswith("greedy-as")]:
        cells = []
        for metric, published in (
            ("sanity of magnitudes", paper.SANITY),
            ("sensitivity", paper.SENSITIVITY),
        ):
            known = published.get(ROWS[name].paper or "")
            gap = difference(*(own.values(row, metric) for row in ("greedy-as", name)))
            papers = None if known is None else published["Greedy-AS"] - known
            cells += [number(papers, "+.2f"), show(gap, "+.2f"), agrees(papers, gap)]
        if cells[1] != MISSING:
            rows.append([f"`{name}`", *cells])
    head = ["Greedy-AS minus", "correlation: paper", "ours", "agrees", "sensitivity: paper", "ours", "agrees"]
    return table(head, rows)


def agrees(papers: float | None, gap: Difference | None) -> str:
    """Return whether a difference has the sign of the paper's, at 95%."""
    if papers is None or gap is None:
        return ""
    if gap.low <= 0 <= gap.high:
        return "undecided"
    return "yes" if (gap.mean > 0) == (papers > 0) else "no, the reverse"


def forest(records: Records) -> str:
    """Return all criteria of the forest."""
    own, rows = Experiment(records, "forest"), []
    for name in FOREST_ROWS:
        cells = [f"`{name}`"]
        for kind in KINDS:
            without = own.values(name, f"{kind} without attack")
            share = MISSING if without is None else f"{100 * float(np.nanmean(without)):.0f}%"
            cells += [show_mean(own.values(name, f"robustness of {kind}"), ".1f"), share]
        for metric in ("insertion", "deletion"):
            for removal in ("mean", "uniform-noise"):
                cells.append(show_mean(own.values(name, metric, removal=removal), ".3f"))
        rows.append([*cells, mean(own.values(name, "seconds"), ".2f")])
    head = ["method", "irrelevant ↑", "no attack", "relevant ↓", "no attack", "insertion, mean ↑", "noise ↑"]
    return table([*head, "deletion, mean ↓", "noise ↓", "seconds"], rows)


def forest_verdicts(records: Records) -> str:
    """Return Greedy-AS on the forest against the best other row, by the criterion that it optimizes."""
    own, rows = Experiment(records, "forest"), []
    others = [name for name in FOREST_ROWS if "greedy" not in name]
    for method, metric in OPTIMIZED.items():
        rival = own.best(others, metric)
        gap = None if rival is None else own.ahead(method, rival, metric)
        if gap is not None:
            rows.append([f"`{method}`", kind_of(metric), f"`{rival}`", show(gap, "+.1f"), holds(gap)])
    return table(["method", "criterion", "best of the others", "ahead of it by", "wins"], rows)


def mean(values: Floats | None, form: str) -> str:
    """Return the mean of values."""
    return number(None if values is None else float(np.nanmean(values)), form, MISSING)


def mean_and_half(values: Floats | None) -> str:
    """Return a mean and half of its interval's width, which fits into wide tables."""
    own = interval(values)
    return MISSING if own is None else f"{own.mean:.0f} ± {(own.high - own.low) / 2:.0f}"


PARTS: dict[str, Callable[[Records], str]] = {
    "own criteria": partial(own_criteria, "mnist"),
    "variants": partial(variants, "mnist"),
    "scattered": scattered,
    "by reference": partial(by_reference, "mnist", MAXIMUM_LOGIT),
    "by reference, class": partial(by_reference, "mnist", CLASS_LOGIT),
    "by reference, probability": partial(by_reference, "mnist", ""),
    "farther": farther,
    "standing": standing,
    "robustness": partial(robustness, "mnist", list(ROWS)),
    "references": partial(references, "mnist", MAXIMUM_LOGIT, list(ROWS)),
    "references, class": partial(references, "mnist", CLASS_LOGIT, list(ROWS)),
    "few subsets": partial(robustness, "mnist-500", FEW),
    "few subsets, by reference": partial(references, "mnist-500", CLASS_LOGIT, FEW),
    "checks": checks,
    "check verdicts": check_verdicts,
    "fashion own criteria": partial(own_criteria, "fashion-mnist"),
    "fashion variants": partial(variants, "fashion-mnist"),
    "fashion": partial(robustness, "fashion-mnist", FEWER),
    "fashion references": partial(references, "fashion-mnist", CLASS_LOGIT, FEWER),
    "fashion by reference": partial(by_reference, "fashion-mnist", CLASS_LOGIT),
    "forest": forest,
    "forest verdicts": forest_verdicts,
    "scales": scales_table,
}
PHOTO_PARTS: dict[str, Callable[[Records], str]] = {
    "own criteria": partial(own_criteria, "photographs"),
    "variants": partial(variants, "photographs"),
    "by reference": partial(by_reference, "photographs", CLASS_LOGIT),
    "robustness": partial(robustness, "photographs", FEWER),
    "references": partial(references, "photographs", CLASS_LOGIT, FEWER),
    "all rows, own criteria": partial(own_criteria, "photographs-20"),
    "all rows, variants": partial(variants, "photographs-20"),
    "all rows, by reference": partial(by_reference, "photographs-20", MAXIMUM_LOGIT),
    "all rows, by reference, class": partial(by_reference, "photographs-20", CLASS_LOGIT),
    "all rows, robustness": partial(robustness, "photographs-20", FEWER),
    "all rows, references": partial(references, "photographs-20", MAXIMUM_LOGIT, FEWER),
    "all rows, references, class": partial(references, "photographs-20", CLASS_LOGIT, FEWER),
}
