"""What the tables of evaluations, attacks and diagnostics say, for the terminal, HTML and figures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import isfinite

import numpy as np

from pertinent.diagnostics.base import Diagnostic
from pertinent.inputs.base import ArrayInput
from pertinent.intervals import FEWEST, Interval
from pertinent.report.by_input import failure_notes
from pertinent.results.attack_results import Attacked, Attacks, not_attacked
from pertinent.results.evaluation import Evaluation

SIGNIFICANT = 0.05

_NAMED = 6
"""How many features of a set, and how many that changed, are named."""

_CHANGED = "features that changed"


@dataclass(frozen=True)
class Cell:
    """The mean of a metric for a method over all inputs, and whether no other method is better."""

    interval: Interval
    best: bool = False

    @property
    def ends(self) -> tuple[float, float]:
        """The bounds of the interval; the mean for both if there are none."""
        i = self.interval
        return (i.low, i.high) if i.bounds else (i.mean, i.mean)

    @property
    def text(self) -> str:
        """The mean."""
        return f"{self.interval.mean:.3f}"


@dataclass(frozen=True)
class Summary:
    """Cells by method and metric; `notes` say whether the best method differs from the next."""

    cells: dict[tuple[str, str], Cell]
    caption: str
    notes: tuple[str, ...] = ()


def summary(evaluation: Evaluation) -> Summary:
    """Summarise an evaluation; the best mean of each metric is marked if there are several methods."""
    cells = {(method, metric): Cell(i) for method, metric, _, i in evaluation.summary()}
    notes = []
    for metric, better in evaluation.better.items():
        means = {method: cell.interval.mean for (method, own), cell in cells.items() if own == metric}
        ranked = sorted(means, key=lambda method: means[method], reverse=better == "higher")
        if len(ranked) > 1:
            best, following = ranked[:2]
            winners = [key for key in cells if key[1] == metric and means[key[0]] == means[best]]
            cells |= {key: replace(cells[key], best=True) for key in winners}
            notes.append(_told_apart(evaluation, best, following, metric))
    counts = sorted({cell.interval.n for cell in cells.values()})
    inputs = "–".join(f"{n:,}" for n in dict.fromkeys((counts[0], counts[-1]))) if counts else "no"
    caption = f"Mean over {inputs} input{'' if counts[-1:] == [1] else 's'}"
    if any(cell.interval.bounds for cell in cells.values()):
        caption += ", 95% bootstrap confidence intervals"
    return Summary(cells, caption, tuple(dict.fromkeys(filter(None, notes))))


def _told_apart(evaluation: Evaluation, best: str, following: str, metric: str) -> str:
    """Whether the best method differs from the next, over the inputs that both explained."""
    found = evaluation.difference(best, following, metric)
    if found.n < FEWEST:
        return f"{FEWEST} inputs are needed to say whether methods differ" if found.n > 1 else ""
    if found.p_value < SIGNIFICANT:
        return f"{metric}: {best} differs from {following}, the next best ({found.p_text})"
    return f"{metric}: {best} may not differ from {following}, the next best ({found.p_text})"


def attack_head(attacks: Attacks) -> list[str]:
    """The headings of the columns; where features have values, what they changed to is one."""
    head = ["input", "decided", "features that may change", "radius", "passes"]
    return [*head, _CHANGED] if any(one.input.shown() is not None for one in attacks) else head


def attack_lines(attacks: Attacks) -> Iterator[list[str]]:
    """The cells of each set of each input."""
    changed = _CHANGED in attack_head(attacks)
    for one in attacks:
        for place, radius in enumerate(one.radii.tolist()):
            shown = f"{radius:.4g}" if isfinite(radius) else "none found"
            cells = [str(one.index + 1), one.decided, _members(one, place), shown, f"{one.passes[place]:,}"]
            yield [*cells, _changes(one, place)] if changed else cells


def attack_notes(attacks: Attacks) -> list[str]:
    """What the radii are, and which inputs failed."""
    aims = {one.toward for one in attacks} - {None}
    aim = f"to {', '.join(map(repr, sorted(map(str, aims))))}" if aims else "to any other class"
    norms = ", ".join(sorted({one.norm for one in attacks}))
    lines = [f"The {norms} norm of the smallest perturbation found that changes the prediction {aim}."]
    missing = dict.fromkeys(name for one in attacks for name in one.left_out)
    lines += [not_attacked(list(missing))] if missing else []
    return [*lines, *failure_notes(attacks.failures)]


def _members(one: Attacked, place: int) -> str:
    members = np.flatnonzero(one.sets[place]).tolist()
    if len(members) == one.sets.shape[1]:
        return f"all {len(members)}"
    names = [one.input.features[i] for i in members[:_NAMED]]
    return ", ".join(names) + (f" … {len(members)} in all" if len(members) > _NAMED else "") or "none"


def _changes(one: Attacked, place: int) -> str:
    """The features whose values changed most, relative to what they were."""
    before = one.input.shown()
    if before is None or not one.found[place] or not isinstance(one.input, ArrayInput):
        return ""
    old, change = np.abs(one.input.array.astype(np.float64)), np.abs(one.changes[place])
    share = np.zeros(one.input.n_features)
    np.maximum.at(share, one.input.owners, change / np.maximum(old, np.finfo(np.float64).tiny))
    after = one.input.moved(one.changes[place]).shown() or ()
    order = [i for i in np.argsort(-share, kind="stable").tolist() if share[i] > 0]
    shown = [f"{one.input.features[i]} {before[i]} → {after[i]}" for i in order[:_NAMED]]
    return ", ".join(shown) + (" …" if len(order) > _NAMED else "")


def diagnostic_warnings(diagnostic: Diagnostic) -> list[str]:
    """Reasons not to trust a diagnostic."""
    return [f"Warning: {warning}" for warning in diagnostic.warnings]


def diagnostic_notes(diagnostic: Diagnostic) -> list[str]:
    """How to read the table of a diagnostic, and what was left out."""
    return [*diagnostic.table().notes, *failure_notes(diagnostic.failures)]
