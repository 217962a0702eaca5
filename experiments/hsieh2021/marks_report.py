"""Write the tables of marks.md from the records of `marks.py`.

python experiments/hsieh2021/marks_report.py --results RESULTS
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import text_paper as paper
from conclusions import holds, verdict
from marked_sets import CLAIMS, FILMS, HATE
from records import Records, difference, fill_in, interval, shown, table
from text import METHODS

from pertinent.array_types import Floats
from pertinent.stats import Difference

SETS = (HATE, FILMS, CLAIMS)
PAPERS_MEAN, AVERAGE = "mean of p@1 to p@5", "average precision"
"""What the paper calls mAP (its last column is the mean of the others), and what it means elsewhere."""
GREEDY = ("greedy-as", "greedy-as, relevant")
MORE, MANY = f"{HATE}, more subsets", "greedy-as, 1,000 subsets"
"""The run with more subsets, whose posts and model are its own, and its row."""
PAGE = Path(__file__).parent / "marks.md"


def values(records: Records, name: str, row: str, what: str) -> Floats | None:
    """One value for each text."""
    if what == AVERAGE:
        return records.values(name, row, AVERAGE)
    found = records.values(name, row, "precision")
    return None if found is None else np.asarray(found.mean(axis=1))


def ahead(records: Records, name: str, one: str, other: str, what: str) -> Difference | None:
    """By how much the first finds more of the marked words."""
    return difference(*(values(records, name, row, what) for row in (one, other)))


def precisions(name: str, records: Records) -> str:
    """Table 10 beside ours."""
    rows = []
    for row in METHODS:
        known = paper.TABLE_10.get(paper.MARKED_NAMES.get(row, ""), ())
        at = records.values(name, row, "precision")
        means = ["–"] * 5 if at is None else [f"{own:.2f}" for own in np.nanmean(at, axis=0)]
        both = [shown(values(records, name, row, what)) for what in (PAPERS_MEAN, AVERAGE)]
        cells = [" / ".join(f"{own:.2f}" for own in known), *means, *both]
        rows.append([f"`{row}`", *cells] if at is not None else [f"`{row}`"])
    head = ["method", "paper: p@1 … p@5 / mAP", *(f"p@{k}" for k in range(1, 6)), PAPERS_MEAN, AVERAGE]
    return table(head, rows)


def verdicts(records: Records) -> str:
    """Greedy-AS against the other methods: the paper's order, and ours at 95%."""
    rows = []
    for name in SETS:
        for one in GREEDY:
            for other in METHODS:
                if other in (*GREEDY, MANY):
                    continue
                gaps = [ahead(records, name, one, other, what) for what in (PAPERS_MEAN, AVERAGE)]
                known = paper.TABLE_10.get(paper.MARKED_NAMES.get(other, ""), ())
                papers = f"{paper.TABLE_10['Greedy-AS'][5] - known[5]:+.2f}" if len(known) > 5 else ""
                cells = [text for gap in gaps for text in (signed(gap), verdict(gap))]
                rows.append([name, f"`{one}`", f"`{other}`", papers, *cells])
    kept = [row for row in rows if row[4] != "–"]
    head = ["texts", "method", "against", "paper: ahead by", PAPERS_MEAN, "", AVERAGE, ""]
    return table(head, kept)


def findings(records: Records) -> str:
    """What the paper concludes from Table 10, as differences over the same texts."""
    rows = []
    for name in SETS:
        best = best_of_the_others(records, name)
        for one in GREEDY if best else ():
            for other in (best, "random"):
                gap = ahead(records, name, one, other, PAPERS_MEAN)
                what = f"`{one}` is ahead of `{other}`"
                what += ", the best of the paper's others" if other == best else ""
                if gap is not None:
                    rows.append([name, what, signed(gap), holds(gap)])
    return table(["texts", "finding", "difference", "holds"], rows)


def best_of_the_others(records: Records, name: str) -> str | None:
    """The paper's other method that finds the most marked words; ``None`` if none was measured."""
    others = [row for row in METHODS if row in paper.MARKED_NAMES and row not in (*GREEDY, "anchors")]
    means = {
        row: interval(own).mean
        for row in others
        if (own := values(records, name, row, PAPERS_MEAN)) is not None
    }
    return max(means, key=lambda row: means[row]) if means else None


def more_subsets(records: Records) -> str:
    """Whether Greedy-AS with 1,000 subsets in each step finds more of the marked words."""
    rows = []
    for other in ("greedy-as", best_of_the_others(records, MORE)):
        gaps = [ahead(records, MORE, MANY, other or "", what) for what in (PAPERS_MEAN, AVERAGE)]
        cells = [text for gap in gaps for text in (signed(gap), verdict(gap))]
        rows.append([f"`{MANY}`", f"`{other}`", *cells])
    return table(["method", "against", PAPERS_MEAN, "", AVERAGE, ""], rows)


def sets(records: Records) -> str:
    """The texts, and how well they are classified."""
    rows = []
    for name in (*SETS, MORE):
        numbers = {
            what: records.values(name, "–", what)
            for what in ("training texts", "accuracy", "words", "marked words")
        }
        if any(own is None for own in numbers.values()):
            continue
        means = {what: float(np.mean(own)) for what, own in numbers.items() if own is not None}
        n = 0 if numbers["words"] is None else len(numbers["words"])
        share = means["marked words"] / means["words"]
        cells = [f"{means['training texts']:,.0f}", f"{means['accuracy']:.1%}", str(n)]
        rows.append([name, *cells, f"{means['words']:.1f}", f"{means['marked words']:.1f} ({share:.0%})"])
    head = ["texts", "learnt from", "accuracy", "explained", "words", "marked"]
    return table(head, rows)


def signed(gap: Difference | None) -> str:
    """As ``+0.12 [+0.08, +0.16]``."""
    return "–" if gap is None else f"{gap.mean:+.2f} [{gap.low:+.2f}, {gap.high:+.2f}]"


def main() -> None:
    """Put each table between its markers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--page", type=Path, default=PAGE)
    arguments = parser.parse_args()
    records = Records(arguments.results, "**/marks.jsonl")
    parts = {name: precisions(name, records) for name in (*SETS, MORE)}
    parts |= {"sets": sets(records), "findings": findings(records), "verdicts": verdicts(records)}
    parts |= {"1,000 subsets": more_subsets(records)}
    fill_in(arguments.page, parts)


if __name__ == "__main__":
    main()
