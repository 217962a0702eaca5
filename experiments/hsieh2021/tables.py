"""Write the tables into README.md, between their markers, from what was measured.

python experiments/hsieh2021/tables.py --results RESULTS
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import conclusions
import numpy as np
import paper
from checks import CHECKED
from conclusions import measured, reference_name
from criteria import CLASS_LOGIT, MAXIMUM_LOGIT, REFERENCES
from forest import ROWS as FOREST_ROWS
from records import Records, fill_in, interval, shown, table
from rows import FEWER, MAGNITUDE, ROWS, lines

from pertinent.array_types import Floats

KINDS = ("irrelevant", "relevant")
FEW = ("random", "gradient", "expected-gradients", "counterfactual", "greedy-as", "greedy-as, logit attack")
"""The rows beside Greedy-AS with 500 subsets."""


def robustness(which: str, names: Sequence[str], records: Records) -> str:
    """Table 1 with the variants of Table 3: areas under radii, and what an image takes."""
    published = paper.BY_DATA.get(which)
    rows = []
    for line in lines(names):
        name = line.removesuffix(MAGNITUDE)
        row = ROWS[name]
        values = [measured(records, which, line, f"robustness of {kind}") for kind in KINDS]
        cells = [f"`{line}`", _n(values[0])]
        for kind, own in zip(KINDS, values, strict=True):
            known = getattr(published, kind).get(row.paper or "") if published else None
            cells += [_number(known), shown(own, 1)]
        cells += [
            _mean(records, which, name, "passes", ",.0f"),
            _mean(records, which, name, "seconds", ".3f"),
        ]
        if values[0] is not None:
            rows.append(cells)
    head = [
        "method",
        "images",
        "irrelevant: paper",
        "ours ↑",
        "relevant: paper",
        "ours ↓",
        "passes",
        "seconds",
    ]
    if published is None:
        rows = [[cell for i, cell in enumerate(row) if i not in (2, 4)] for row in rows]
        head = [cell for i, cell in enumerate(head) if i not in (2, 4)]
    return filled(head, rows)


def references(kind: str, logit: str, names: Sequence[str], which: str, records: Records) -> str:
    """Insertion or deletion by reference value, the paper's numbers in parentheses."""
    published = paper.BY_DATA.get(which)
    rows = []
    for line in lines(names):
        row = ROWS[line.removesuffix(MAGNITUDE)]
        areas = {
            reference: measured(records, which, line, kind + logit, reference=reference)
            for reference in REFERENCES
        }
        measured_areas = [own for own in areas.values() if own is not None]
        if not measured_areas:
            continue
        cells = [f"`{line}`", str(len(measured_areas[0]))]
        for reference, own in areas.items():
            known = getattr(published, kind)[reference].get(row.paper or "") if published else None
            beside = "" if known is None or own is None else f" ({known:.0f})"
            cells.append(_mean_and_half(own) + beside)
        rows.append(cells)
    return filled(["method", "images", *map(reference_name, REFERENCES)], rows)


def insertion_and_deletion(which: str, logit: str, names: Sequence[str], records: Records) -> str:
    """All of Table 5, in the paper's units."""
    both = {
        f"**{kind.capitalize()} {arrow}**\n\n": references(kind, logit, names, which, records)
        for kind, arrow in (("insertion", "↑"), ("deletion", "↓"))
    }
    return "\n".join(title + rows for title, rows in both.items()) if any(both.values()) else ""


def own_criteria(which: str, records: Records) -> str:
    """Whether Greedy-AS wins by its own criteria."""
    head = [
        "method",
        "criterion",
        "against the paper's other methods",
        "loses to",
        "best of the others",
    ]
    rows = [row for row in conclusions.own_criteria(records, which) if row[2] != "–"]
    return filled([*head, "ahead of it by", "wins"], rows)


def variants(which: str, records: Records) -> str:
    """Whether each part of Greedy-AS is needed."""
    rows = [row for row in conclusions.variants(records, which) if row[-1] != "–"]
    return filled(["finding", "criterion", "ahead by", "holds"], rows)


def scattered(records: Records) -> str:
    """Whether the pixels of Greedy-AS are less scattered than those of its variants."""
    rows = []
    for which, name in (("mnist", "MNIST"), ("fashion-mnist", "Fashion-MNIST")):
        found = conclusions.scattered(records, which)
        rows += [[name, *row] for row in found if row[-1] != "–"]
    head = ["images", "method", "against", "n", "pieces", "pieces of the other", "fewer by", "holds"]
    return filled(head, rows)


def by_reference(which: str, suffix: str, records: Records) -> str:
    """Whether Greedy-AS holds on insertion and deletion."""
    head = [
        "criterion",
        "reference",
        *(["paper: place"] if which in paper.BY_DATA else []),
        "`greedy-as`",
        "place",
        "in the authors' orders",
        "`greedy-as, relevant`",
        "place",
        "in the authors' orders",
    ]
    rows = [row for row in conclusions.by_reference(records, which, suffix) if row[-1] != "–"]
    return filled([*head, "best of all rows"], rows)


def farther(records: Records) -> str:
    """What happens away from the reference value 0."""
    head = [
        "method",
        *(f"{kind}, {value}" for kind in ("insertion", "deletion") for value in ("0", "0.5", "1")),
    ]
    return filled(head, [row for row in conclusions.farther(records, "mnist") if set(row[1:]) != {"–"}])


def standing(records: Records) -> str:
    """Where our own methods stand."""
    kinds = [f"{kind}, {value}" for kind in ("insertion", "deletion") for value in ("noise", "0", "1")]
    head = ["method", "irrelevant", "relevant", *kinds]
    return filled(head, [row for row in conclusions.standing(records, "mnist") if set(row[1:]) != {"–"}])


def checked(records: Records) -> str:
    """Tables 7 and 8."""
    rows = []
    for name in CHECKED:
        known = ROWS[name].paper or ""
        values = [records.values("mnist", name, m) for m in ("sanity", "sanity of magnitudes", "sensitivity")]
        cells = [f"`{name}`", _number(paper.SANITY.get(known)), shown(values[0]), shown(values[1])]
        if values[0] is not None:
            rows.append([*cells, _number(paper.SENSITIVITY.get(known)), shown(values[2])])
    head = ["method", "correlation: paper", "ours, scores", "ours, magnitudes", "sensitivity: paper", "ours"]
    return filled(head, rows)


def check_verdicts(records: Records) -> str:
    """Greedy-AS beside the paper's other methods in Tables 7 and 8."""
    others = [name for name in CHECKED if ROWS[name].paper and not name.startswith("greedy-as")]
    head = ["Greedy-AS minus", "correlation: paper", "ours", "agrees", "sensitivity: paper", "ours", "agrees"]
    return filled(head, [row for row in conclusions.checks(records, "mnist", others) if row[2] != "–"])


def forest(records: Records) -> str:
    """The forest: all criteria."""
    rows = []
    for name in FOREST_ROWS:
        values = [
            records.values("forest", name, f"robustness of {kind}") for kind in ("irrelevant", "relevant")
        ]
        if values[0] is None:
            continue
        without = [
            records.values("forest", name, f"{kind} without attack") for kind in ("irrelevant", "relevant")
        ]
        others = [
            records.values("forest", name, metric, removal=removal)
            for metric in ("insertion", "deletion")
            for removal in ("mean", "uniform-noise")
        ]
        shares = [f"{100 * float(np.nanmean(own)):.0f}%" for own in without if own is not None]
        cells = [f"`{name}`", shown(values[0], 1), shares[0], shown(values[1], 1), shares[1]]
        rows.append(
            [*cells, *(shown(own, 3) for own in others), _mean(records, "forest", name, "seconds", ".2f")]
        )
    head = ["method", "irrelevant ↑", "no attack", "relevant ↓", "no attack", "insertion, mean ↑", "noise ↑"]
    return filled([*head, "deletion, mean ↓", "noise ↓", "seconds"], rows)


def forest_verdicts(records: Records) -> str:
    """Greedy-AS on the forest against all other rows."""
    head = ["method", "criterion", "best of the others", "ahead of it by", "wins"]
    others = [name for name in FOREST_ROWS if "greedy" not in name]
    return filled(head, [row for row in conclusions.on_forest(records, others) if row[-1] != "–"])


def filled(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table, or nothing where no row was measured."""
    return table(head, rows) if rows else ""


def _n(values: Floats | None) -> str:
    return "–" if values is None else str(len(values))


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _mean(records: Records, which: str, method: str, metric: str, form: str) -> str:
    found = records.values(which, method, metric)
    return "–" if found is None else format(float(np.nanmean(found)), form)


def _mean_and_half(values: Floats | None) -> str:
    """A mean and half of its interval's width, which fits into wide tables."""
    if values is None:
        return "–"
    found = interval(values)
    return f"{found.mean:.0f} ± {(found.high - found.low) / 2:.0f}"


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
    "references": partial(insertion_and_deletion, "mnist", MAXIMUM_LOGIT, list(ROWS)),
    "references, class": partial(insertion_and_deletion, "mnist", CLASS_LOGIT, list(ROWS)),
    "few subsets": partial(robustness, "mnist-500", FEW),
    "few subsets, by reference": partial(insertion_and_deletion, "mnist-500", CLASS_LOGIT, FEW),
    "checks": checked,
    "check verdicts": check_verdicts,
    "fashion own criteria": partial(own_criteria, "fashion-mnist"),
    "fashion variants": partial(variants, "fashion-mnist"),
    "fashion": partial(robustness, "fashion-mnist", FEWER),
    "fashion references": partial(insertion_and_deletion, "fashion-mnist", CLASS_LOGIT, FEWER),
    "fashion by reference": partial(by_reference, "fashion-mnist", CLASS_LOGIT),
    "forest": forest,
    "forest verdicts": forest_verdicts,
}


PHOTO_PARTS: dict[str, Callable[[Records], str]] = {
    "own criteria": partial(own_criteria, "photographs"),
    "variants": partial(variants, "photographs"),
    "by reference": partial(by_reference, "photographs", CLASS_LOGIT),
    "robustness": partial(robustness, "photographs", FEWER),
    "references": partial(insertion_and_deletion, "photographs", CLASS_LOGIT, FEWER),
    "all rows, own criteria": partial(own_criteria, "photographs-20"),
    "all rows, variants": partial(variants, "photographs-20"),
    "all rows, by reference": partial(by_reference, "photographs-20", MAXIMUM_LOGIT),
    "all rows, by reference, class": partial(by_reference, "photographs-20", CLASS_LOGIT),
    "all rows, robustness": partial(robustness, "photographs-20", FEWER),
    "all rows, references": partial(insertion_and_deletion, "photographs-20", MAXIMUM_LOGIT, FEWER),
    "all rows, references, class": partial(insertion_and_deletion, "photographs-20", CLASS_LOGIT, FEWER),
}


def main() -> None:
    """Put each table between its markers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--pages", type=Path, default=Path(__file__).parent, help="their folder")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART")
    parser.add_argument("--photographs", action="store_true", help="write their page, and no other")
    arguments = parser.parse_args()
    records = Records(arguments.results, "**/*.jsonl")
    page = arguments.pages / ("photographs.md" if arguments.photographs else "README.md")
    parts = PHOTO_PARTS if arguments.photographs else {name: PARTS[name] for name in arguments.parts}
    made = {name: make(records) for name, make in parts.items()}
    fill_in(page, {name: text for name, text in made.items() if text})
    for name in (name for name, text in made.items() if not text):
        print(f"{page.name}, {name}: no records, left as it is", flush=True)


if __name__ == "__main__":
    main()
