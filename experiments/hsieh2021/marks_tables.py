"""Tables of the words that people marked (Table 10)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from experiments.hsieh2021 import paper
from experiments.hsieh2021.marked_sets import CLAIMS, FILMS, HATE
from experiments.hsieh2021.records import Records
from experiments.hsieh2021.texts import METHODS
from experiments.shared.intervals import difference, holds, interval, show, show_mean, verdict
from experiments.shared.pages import MISSING, table
from pertinent.array_types import Floats
from pertinent.stats import Difference

SETS = (HATE, FILMS, CLAIMS)
NAMES = paper.OF_TEXTS | {"anchors": "Anchor"}
PAPERS_MEAN, AVERAGE = "mean of p@1 to p@5", "average precision"
"""What the paper calls mAP (its last column is the mean of the others), and the usual meaning."""
GREEDY = ("greedy-as", "greedy-as, relevant")
MORE, MANY = f"{HATE}, more subsets", "greedy-as, 1,000 subsets"
"""The run with more subsets, which has different posts and a different model, and its row."""


def values(records: Records, name: str, row: str, metric: str) -> Floats | None:
    """Return a value for each text."""
    if metric == AVERAGE:
        return records.values(name, row, AVERAGE)
    precision = records.values(name, row, "precision")
    return None if precision is None else np.asarray(precision.mean(axis=1))


def ahead(records: Records, name: str, one: str, other: str, metric: str) -> Difference | None:
    """Return by how much a row finds more of the marked words than another."""
    return difference(*(values(records, name, row, metric) for row in (one, other)))


def gaps(records: Records, name: str, one: str, other: str) -> list[str]:
    """Return by how much a row is ahead of another, and the verdict, by both measures."""
    both = [ahead(records, name, one, other, metric) for metric in (PAPERS_MEAN, AVERAGE)]
    return [text for gap in both for text in (show(gap, "+.2f"), verdict(gap))]


def precisions(name: str, records: Records) -> str:
    """Return Table 10 with the paper's numbers."""
    rows = []
    for row in METHODS:
        precision = records.values(name, row, "precision")
        if precision is not None:
            known = paper.MARKS.get(NAMES.get(row, ""), ())
            means = [f"{value:.2f}" for value in np.nanmean(precision, axis=0)]
            both = [show_mean(values(records, name, row, metric)) for metric in (PAPERS_MEAN, AVERAGE)]
            rows.append([f"`{row}`", " / ".join(f"{value:.2f}" for value in known), *means, *both])
    head = ["method", "paper: p@1 … p@5 / mAP", *(f"p@{k}" for k in range(1, 6)), PAPERS_MEAN, AVERAGE]
    return table(head, rows)


def verdicts(records: Records) -> str:
    """Return Greedy-AS against the other methods: the paper's order, and ours at 95%."""
    rows = []
    for name in SETS:
        for one in GREEDY:
            for other in [row for row in METHODS if row not in (*GREEDY, MANY)]:
                known = paper.MARKS.get(NAMES.get(other, ""), ())
                papers = f"{paper.MARKS['Greedy-AS'][5] - known[5]:+.2f}" if len(known) > 5 else ""
                cells = gaps(records, name, one, other)
                if cells[0] != MISSING:
                    rows.append([name, f"`{one}`", f"`{other}`", papers, *cells])
    head = ["texts", "method", "against", "paper: ahead by", PAPERS_MEAN, "", AVERAGE, ""]
    return table(head, rows)


def findings(records: Records) -> str:
    """Return the paper's conclusions from Table 10, as differences over the same texts."""
    rows = []
    for name in SETS:
        best = best_other(records, name)
        for one in GREEDY if best else ():
            for other in (best, "random"):
                gap = ahead(records, name, one, other, PAPERS_MEAN)
                claim = f"`{one}` is ahead of `{other}`"
                claim += ", the best of the paper's others" if other == best else ""
                if gap is not None:
                    rows.append([name, claim, show(gap, "+.2f"), holds(gap)])
    return table(["texts", "finding", "difference", "holds"], rows)


def best_other(records: Records, name: str) -> str:
    """Return the paper's other method that finds the most marked words; empty if none was measured."""
    others = [row for row in METHODS if row in NAMES and row not in (*GREEDY, "anchors")]
    means = {
        row: own.mean
        for row in others
        if (own := interval(values(records, name, row, PAPERS_MEAN))) is not None
    }
    return max(means, key=lambda row: means[row], default="")


def more_subsets(records: Records) -> str:
    """Return whether Greedy-AS with 1,000 subsets in each step finds more of the marked words."""
    others = ("greedy-as", best_other(records, MORE))
    rows = [[f"`{MANY}`", f"`{other}`", *gaps(records, MORE, MANY, other)] for other in others]
    return table(
        ["method", "against", PAPERS_MEAN, "", AVERAGE, ""], [row for row in rows if row[2] != MISSING]
    )


def sets(records: Records) -> str:
    """Return the texts, and the accuracy of the classifiers."""
    rows = []
    for name in (*SETS, MORE):
        metrics = ("training texts", "accuracy", "words", "marked words")
        numbers = {metric: records.values(name, MISSING, metric) for metric in metrics}
        if numbers["words"] is None:
            continue
        means = {metric: float(np.mean(own)) for metric, own in numbers.items() if own is not None}
        share = means["marked words"] / means["words"]
        cells = [f"{means['training texts']:,.0f}", f"{means['accuracy']:.1%}", str(len(numbers["words"]))]
        rows.append([name, *cells, f"{means['words']:.1f}", f"{means['marked words']:.1f} ({share:.0%})"])
    return table(["texts", "learnt from", "accuracy", "explained", "words", "marked"], rows)


PARTS: dict[str, Callable[[Records], str]] = {
    **{name: partial(precisions, name) for name in (*SETS, MORE)},
    "sets": sets,
    "findings": findings,
    "verdicts": verdicts,
    "1,000 subsets": more_subsets,
}
