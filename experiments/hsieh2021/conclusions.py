"""Which of the paper's findings hold here, from differences over the same images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import paper
from criteria import CLASS_LOGIT, MAXIMUM_LOGIT, REFERENCES, area
from records import Records, difference
from rows import MAGNITUDE, ROWS, authors_lines, lines

from pertinent.array_types import Floats
from pertinent.stats import Difference

IRRELEVANT, RELEVANT = "robustness of irrelevant", "robustness of relevant"
OWN = {"greedy-as": IRRELEVANT, "greedy-as, relevant": RELEVANT}
"""The criterion that each kind of Greedy-AS makes large or small."""

OTHERS = [name for name, row in ROWS.items() if row.paper in paper.NAMES and row.method != "greedy-as"]
"""The paper's other methods."""

ZERO_BASED = ("integrated-gradients", "shapley-sampling", "leave-one-out")
ALIKE = (
    "shapley",
    "shapley" + MAGNITUDE,
    "thompson-search",
    "parallel-local-search",
    "lime",
    "lime" + MAGNITUDE,
)


def measured(records: Records, which: str, method: str, metric: str, **settings: object) -> Floats | None:
    """One number for each input: the area where a curve was measured."""
    found = records.values(which, method, metric, **settings)
    return area(found) if found is not None and found.ndim == 2 else found


def goodness(records: Records, which: str, method: str, metric: str, **settings: object) -> Floats | None:
    """The same, larger being better."""
    found = measured(records, which, method, metric, **settings)
    lower = metric == RELEVANT or metric.startswith("deletion")
    return -found if found is not None and lower else found


def ahead(
    records: Records, which: str, one: str, other: str, metric: str, **settings: object
) -> Difference | None:
    """By how much the first is better than the second."""
    rows = (goodness(records, which, method, metric, **settings) for method in (one, other))
    return difference(*rows)


def verdict(found: Difference | None) -> str:
    """At 95%, as in Table 4: win, draw or loss of the first; "–" if one was not measured."""
    if found is None:
        return "–"
    return "win" if found.low > 0 else "loss" if found.high < 0 else "draw"


def best(records: Records, which: str, methods: Sequence[str], metric: str, **settings: object) -> str | None:
    """The method with the best mean."""
    means = {}
    for method in methods:
        found = goodness(records, which, method, metric, **settings)
        if found is not None and np.isfinite(found).any():
            means[method] = float(np.nanmean(found))
    return max(means, key=lambda method: means[method]) if means else None


def against(records: Records, which: str, one: str, metric: str, **settings: object) -> dict[str, str]:
    """The verdicts of a row over the paper's other methods, signed scores in both orders."""
    found = {line: verdict(ahead(records, which, one, line, metric, **settings)) for line in lines(OTHERS)}
    return {line: word for line, word in found.items() if word != "–"}


def counted(found: dict[str, str]) -> str:
    """As ``12 wins, 1 draw, 0 losses``."""
    words = list(found.values())
    if not words:
        return "–"
    plural = {"win": "wins", "draw": "draws", "loss": "losses"}
    counts = {word: words.count(word) for word in plural}
    return ", ".join(f"{n} {word if n == 1 else plural[word]}" for word, n in counts.items())


def place(
    records: Records, which: str, one: str, metric: str, *, as_authors: bool = False, **settings: object
) -> tuple[int, int] | None:
    """The place of a row's mean among the paper's other methods.

    Each is taken in the better of its orders, or in the one in which the authors take it.
    """
    own = goodness(records, which, one, metric, **settings)
    if own is None:
        return None
    ranked = []
    for name in OTHERS:
        orders = authors_lines(name) if as_authors else lines([name])
        areas = [goodness(records, which, line, metric, **settings) for line in orders]
        means = [float(np.nanmean(values[: len(own)])) for values in areas if values is not None]
        if means and name != one.removesuffix(MAGNITUDE):
            ranked.append(means[0] if as_authors else max(means))
    return 1 + sum(mean > float(np.nanmean(own)) for mean in ranked), len(ranked) + 1


def paper_place(table: dict[str, float], kind: str) -> int:
    """The place of Greedy-AS among the paper's nine methods."""
    own = table["Greedy-AS"]
    return 1 + sum(value > own if kind == "insertion" else value < own for value in table.values())


def own_criteria(records: Records, which: str) -> list[list[str]]:
    """Each kind of Greedy-AS by both criteria: against all others, and against the best of them."""
    rows = []
    for method, own in OWN.items():
        for metric in (IRRELEVANT, RELEVANT):
            found = against(records, which, method, metric)
            rival = best(records, which, lines(OTHERS), metric)
            gap = None if rival is None else ahead(records, which, method, rival, metric)
            lost = ", ".join(f"`{name}`" for name, word in found.items() if word == "loss") or "none"
            what = metric.rpartition(" ")[2] + (", its own" if own == metric else "")
            rows.append([f"`{method}`", what, counted(found), lost, f"`{rival}`", signed(gap), holds(gap)])
    return rows


def main_logit(records: Records, which: str) -> str:
    """Return the maximum logit where it was recorded, else the logit of the predicted class."""
    recorded = records.values(which, "random", "insertion" + MAXIMUM_LOGIT, reference="uniform")
    return CLASS_LOGIT if recorded is None else MAXIMUM_LOGIT


def by_reference(records: Records, which: str, suffix: str) -> list[list[str]]:
    """Greedy-AS by insertion and deletion, for each reference value."""
    rows = []
    for kind in ("insertion", "deletion"):
        published = paper.BY_DATA.get(which)
        for reference in REFERENCES:
            cells = [kind, reference_name(reference)]
            if published is not None:
                cells.append(f"{paper_place(getattr(published, kind)[reference], kind)} of 9")
            for method in OWN:
                found = against(records, which, method, kind + suffix, reference=reference)
                places = [
                    place(records, which, method, kind + suffix, as_authors=own, reference=reference)
                    for own in (False, True)
                ]
                cells += [counted(found), *("–" if at is None else f"{at[0]} of {at[1]}" for at in places)]
            winner = best(records, which, lines(list(ROWS)), kind + suffix, reference=reference)
            rows.append([*cells, "–" if winner is None else f"`{winner}`"])
    return rows


def standing(records: Records, which: str) -> list[list[str]]:
    """Shapley values and searches: win or loss against Greedy-AS, and the place among the paper's methods."""
    columns: list[tuple[str, str, dict[str, Any]]] = [
        (IRRELEVANT, "greedy-as", {}),
        (RELEVANT, "greedy-as, relevant", {}),
    ]
    logit = main_logit(records, which)
    for kind in ("insertion", "deletion"):
        columns += [(kind + logit, "greedy-as", {"reference": own}) for own in ("uniform", 0.0, 1.0)]
    rows = []
    for method in ALIKE:
        cells = [f"`{method}`"]
        for metric, rival, settings in columns:
            at = place(records, which, method, metric, **settings)
            won = verdict(ahead(records, which, method, rival, metric, **settings))
            cells.append("–" if at is None else f"{won}, {at[0]} of {at[1]}")
        rows.append(cells)
    return rows


def variants(records: Records, which: str) -> list[list[str]]:
    """Table 3: Greedy-AS against its variants, by the criterion that both optimise."""
    rows = []
    for suffix, metric in (("", IRRELEVANT), (", relevant", RELEVANT)):
        for one, other in (
            ("greedy-as", "one-step-banzhaf"),
            ("greedy-as", "greedy"),
        ):
            found = ahead(records, which, one + suffix, other + suffix, metric)
            what = metric.rpartition(" ")[2]
            rows.append(
                [f"`{one + suffix}` is better than `{other + suffix}`", what, signed(found), holds(found)]
            )
    return rows


def scattered(records: Records, which: str) -> list[list[str]]:
    """Figure 9: are the pixels of Greedy-AS in fewer pieces than those of its variants?"""
    rows = []
    for suffix in ("", ", relevant"):
        for name in ("greedy", "one-step-banzhaf"):
            own, other = (records.values(which, row + suffix, "pieces") for row in ("greedy-as", name))
            gap = difference(other, own)
            cells = ["–" if found is None else f"{found.mean():.1f}" for found in (own, other)]
            n = "–" if gap is None or own is None or other is None else str(min(len(own), len(other)))
            rows.append([f"`greedy-as{suffix}`", f"`{name}{suffix}`", n, *cells, signed(gap), holds(gap)])
    return rows


def farther(records: Records, which: str) -> list[list[str]]:
    """The places of methods with a baseline of 0, and of others, as the reference value moves away from 0."""
    rows = []
    logit = main_logit(records, which)
    for method in (*ZERO_BASED, "expected-gradients", "gradient" + MAGNITUDE, "counterfactual", "greedy-as"):
        cells = [f"`{method}`"]
        for kind in ("insertion", "deletion"):
            for reference in (0.0, 0.5, 1.0):
                at = place(records, which, method, kind + logit, reference=reference)
                cells.append("–" if at is None else f"{at[0]} of {at[1]}")
        rows.append(cells)
    return rows


def on_forest(records: Records, others: Sequence[str]) -> list[list[str]]:
    """Greedy-AS against the best of the others, by the criterion that it optimises."""
    rows = []
    for method, metric in OWN.items():
        rival = best(records, "forest", others, metric)
        gap = None if rival is None else ahead(records, "forest", method, rival, metric)
        rows.append([f"`{method}`", metric.rpartition(" ")[2], f"`{rival}`", signed(gap), holds(gap)])
    return rows


def checks(records: Records, which: str, others: Sequence[str]) -> list[list[str]]:
    """Tables 7 and 8: the correlation and the sensitivity of Greedy-AS beside those of each other method.

    Differences are of Greedy-AS minus the other; "agrees" says whether ours has the sign of the paper's.
    """
    rows = []
    for name in others:
        cells = [f"`{name}`"]
        for metric, published in (
            ("sanity of magnitudes", paper.SANITY),
            ("sensitivity", paper.SENSITIVITY),
        ):
            known = published.get(ROWS[name].paper or "")
            gap = difference(*(records.values(which, row, metric) for row in ("greedy-as", name)))
            papers = None if known is None else published["Greedy-AS"] - known
            cells += ["" if papers is None else f"{papers:+.2f}"]
            cells += ["–" if gap is None else f"{gap.mean:+.2f} [{gap.low:+.2f}, {gap.high:+.2f}]"]
            cells += [agrees(papers, gap)]
        rows.append(cells)
    return rows


def agrees(papers: float | None, found: Difference | None) -> str:
    """Whether a difference has the sign of the paper's, at 95%."""
    if papers is None or found is None:
        return ""
    if found.low <= 0 <= found.high:
        return "undecided"
    return "yes" if (found.mean > 0) == (papers > 0) else "no, the reverse"


def signed(found: Difference | None) -> str:
    """As ``+1.2 [+0.8, +1.6]``."""
    return "–" if found is None else f"{found.mean:+.1f} [{found.low:+.1f}, {found.high:+.1f}]"


def holds(found: Difference | None) -> str:
    """In a word."""
    return {"win": "yes", "draw": "undecided", "loss": "no, the reverse", "–": "–"}[verdict(found)]


def reference_name(reference: float | str) -> str:
    """As in the tables."""
    return "uniform noise" if reference == "uniform" else f"{reference:g}"
