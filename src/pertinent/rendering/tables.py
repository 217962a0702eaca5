"""What the tables of evaluations, attacks and diagnostics say, for the terminal, HTML and figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite

import numpy as np

from pertinent.diagnostics.base import Diagnostic
from pertinent.inputs.base import ArrayInput
from pertinent.number_format import measure_text, number_text
from pertinent.printable import visible
from pertinent.rendering.by_input import failure_notes
from pertinent.results.attack_results import Attacked, Attacks, unattacked_note
from pertinent.results.evaluation import Evaluation
from pertinent.results.importance import Importance
from pertinent.stats import FEWEST, Interval, holm

SIGNIFICANT = 0.05

READING = "↓ lower is better, ↑ higher is better; the best mean is bold"
"""How to read the table of an evaluation."""

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
        return measure_text(self.interval.mean)


@dataclass(frozen=True)
class Summary:
    """Cells by method and metric; `notes` say whether the best method differs from the next."""

    cells: dict[tuple[str, str], Cell]
    caption: str
    notes: tuple[str, ...] = ()


def summary(evaluation: Evaluation) -> Summary:
    """Summarise an evaluation; the best mean of each metric is marked if there are several methods."""
    cells = {(method, metric): Cell(i) for method, metric, _, i in evaluation.summary()}
    ranked: dict[str, list[str]] = {}
    for metric, better in evaluation.better.items():
        means = {method: cell.interval.mean for (method, own), cell in cells.items() if own == metric}
        order = sorted(means, key=lambda method: means[method], reverse=better == "higher")
        if len(order) > 1:
            winners = [key for key in cells if key[1] == metric and means[key[0]] == means[order[0]]]
            cells |= {key: replace(cells[key], best=True) for key in winners}
            ranked[metric] = order
    counts = sorted({cell.interval.n for cell in cells.values()})
    inputs = "–".join(f"{n:,}" for n in dict.fromkeys((counts[0], counts[-1]))) if counts else "no"
    caption = f"Mean over {inputs} input{'' if counts[-1:] == [1] else 's'}"
    seeds = len({e.seed for e in evaluation.explanations})
    caption += f" and {seeds} seeds" if seeds > 1 else ""
    if any(cell.interval.bounds for cell in cells.values()):
        caption += ", 95% bootstrap confidence intervals"
    return Summary(cells, caption, tuple(dict.fromkeys(_told_apart(evaluation, ranked))))


def _told_apart(evaluation: Evaluation, ranked: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """For each metric, whether its best method differs from the next, over the inputs that both explained.

    Any method could have been the next: p-values are corrected for the best of each metric beside all others.
    """
    names = [(best, other, metric) for metric, (best, *others) in ranked.items() for other in others]
    found = dict(zip(names, (evaluation.difference(*each) for each in names), strict=True))
    tested = {each: own for each, own in found.items() if own.n >= FEWEST}
    corrected = dict(zip(tested, holm(list(tested.values())), strict=True))
    for metric, (best, following, *_) in ranked.items():
        own = corrected.get((best, following, metric))
        if own is not None:
            verb = "differs" if own.p_value < SIGNIFICANT else "may not differ"
            yield f"{metric}: {best} {verb} from {following}, the next best ({own.p_text})"
        elif found[best, following, metric].n > 1:
            yield f"{FEWEST} inputs are needed to say whether methods differ"


def attack_head(attacks: Attacks) -> list[str]:
    """The headings of the columns; where features have values, what they changed to is one."""
    head = ["input", "predicted", "features that may change", "radius", "passes"]
    return [*head, _CHANGED] if any(one.input.shown() is not None for one in attacks) else head


def attack_lines(attacks: Attacks) -> Iterator[list[str]]:
    """The cells of each set of each input."""
    changed = _CHANGED in attack_head(attacks)
    for one in attacks:
        for place, radius in enumerate(one.radii.tolist()):
            shown = number_text(radius) if isfinite(radius) else "none found"
            cells = [str(one.index), one.predicted, _members(one, place), shown, f"{one.passes[place]:,}"]
            yield [*cells, _changes(one, place)] if changed else cells


def attack_notes(attacks: Attacks) -> list[str]:
    """What the radii are, and which inputs failed."""
    aims = {one.toward for one in attacks} - {None}
    aim = f"to {', '.join(map(repr, sorted(map(str, aims))))}" if aims else "to any other class"
    norms = ", ".join(sorted({one.norm for one in attacks}))
    lines = [f"The {norms} norm of the smallest perturbation found that changes the prediction {aim}."]
    missing = dict.fromkeys(name for one in attacks for name in one.unattacked)
    lines += [unattacked_note(list(missing))] if missing else []
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
    if before is None or not one.succeeded[place] or not isinstance(one.input, ArrayInput):
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


def importance_caption(importance: Importance, *, of_points: bool = False) -> str:
    """What the numbers or the points are of, and how many features are not shown."""
    n, left = sum(importance.sizes.values()), importance.n_features - len(importance.features)
    rest = f" {left:,} less important feature{'s are' if left > 1 else ' is'} not shown." if left > 0 else ""
    targets = set(importance.targets.values())
    target = targets.pop() if len(targets) == 1 else None
    if not importance.is_signed:
        rest = f" The scores are for several classes, so only their sizes are averaged.{rest}"
    scores_for = f" for {visible(target)}" if target else ""
    if of_points:
        return f"The score of each feature{scores_for} in each of {n:,} explanations.{rest}"
    several = len(importance.groups) > 1
    sizes = ", ".join(f"{name}: {size:,}" for name, size in importance.sizes.items()) if several else f"{n:,}"
    return (
        f"Mean size of the scores{scores_for} over all explanations ({sizes}), 95% bootstrap intervals.{rest}"
    )
