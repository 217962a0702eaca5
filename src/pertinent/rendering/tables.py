"""Tables of results: one model drawn in the terminal, in HTML, and as Markdown and LaTeX."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import singledispatch
from math import isfinite
from typing import Any, Literal, TypeAlias

import numpy as np

from pertinent.api.catalogue import Catalogue, Entry
from pertinent.diagnostics.base import Diagnostic
from pertinent.inputs.base import ArrayInput
from pertinent.number_format import measure_text, number_text
from pertinent.printable import visible
from pertinent.rendering.by_input import failure_notes
from pertinent.rendering.wording import arrow, clipped
from pertinent.results.attack_results import Attacked, Attacks, unattacked_note
from pertinent.results.evaluation import Evaluation
from pertinent.results.importance import Importance
from pertinent.stats import FEWEST, Interval, holm

Tone: TypeAlias = Literal["", "quiet", "caution", "alarm"]

SIGNIFICANT = 0.05

_NAMED = 6
"""Number of features to name in a set, and among those that changed."""


@dataclass(frozen=True)
class Cell:
    """A text, a pale text after it, and for a mean its interval, which HTML draws."""

    text: str = ""
    quiet: str = ""
    is_best: bool = False
    tone: Tone = ""
    interval: Interval | None = None

    @property
    def ends(self) -> tuple[float, float]:
        """Return the bounds of the interval; the mean twice if there is no interval."""
        assert self.interval is not None
        i = self.interval
        return (i.low, i.high) if i.bounds else (i.mean, i.mean)


@dataclass(frozen=True)
class Column:
    """A column heading; an arrow shows whether ``"lower"`` or ``"higher"`` values are `better`."""

    title: str
    is_number: bool = False
    better: str = ""

    @property
    def heading(self) -> str:
        """Return the title and the arrow."""
        return f"{self.title} {arrow(self.better)}".rstrip()


@dataclass(frozen=True)
class Table:
    """A table with its title, warnings, notes on how to read it, and a conclusion in words."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    title: str = ""
    notes: Sequence[str] = ()
    warnings: Sequence[str] = ()
    answer: str = ""


@singledispatch
def tables_of(result: Any) -> list[Table]:
    """Return the tables for a result."""
    raise NotImplementedError(type(result))


@tables_of.register
def _(evaluation: Evaluation) -> list[Table]:
    columns = [Column("method"), *(Column(name, True, better) for name, better in evaluation.better.items())]
    cells, rankings = summarize(evaluation)
    rows = [
        [Cell(method), *(cells.get((method, metric), Cell("–")) for metric in evaluation.better)]
        for method in evaluation.methods
    ]
    reading = "↓ lower is better, ↑ higher is better; the best mean is bold"
    notes = [f"{evaluation_caption(evaluation)}. {reading}."]
    notes += dict.fromkeys(f"{note}." for note in _comparisons(evaluation, rankings))
    notes += [f"{len(evaluation.failures)} failed."] if evaluation.failures else []
    return [Table(columns, rows, notes=notes)]


def summarize(evaluation: Evaluation) -> tuple[dict[tuple[str, str], Cell], dict[str, list[str]]]:
    """Return a cell for each method and metric, and the methods by metric, best first."""
    cells = {
        (method, metric): Cell(measure_text(i.mean), i.bounds, interval=i)
        for method, metric, _, i in evaluation.summary()
    }
    rankings: dict[str, list[str]] = {}
    for metric, better in evaluation.better.items():
        means = {method: evaluation.mean(method, metric) for method, name in cells if name == metric}
        order = sorted(means, key=lambda method: means[method], reverse=better == "higher")
        if len(order) > 1:
            best = [method for method in means if means[method] == means[order[0]]]
            cells |= {(method, metric): replace(cells[method, metric], is_best=True) for method in best}
            rankings[metric] = order
    return cells, rankings


def evaluation_caption(evaluation: Evaluation) -> str:
    """Return the numbers of inputs and seeds that an evaluation averages over."""
    intervals = [i for _, _, _, i in evaluation.summary()]
    counts = sorted({i.n for i in intervals})
    inputs = "–".join(f"{n:,}" for n in dict.fromkeys((counts[0], counts[-1]))) if counts else "no"
    caption = f"Mean over {inputs} input{'' if counts[-1:] == [1] else 's'}"
    seeds = len({e.seed for e in evaluation.explanations})
    caption += f" and {seeds} seeds" if seeds > 1 else ""
    return caption + (", 95% bootstrap confidence intervals" if any(i.bounds for i in intervals) else "")


def _comparisons(evaluation: Evaluation, rankings: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield whether the best method of each metric differs from the next best, on their common inputs.

    Any method could have been next, so p-values are corrected for the comparisons with all other methods.
    """
    names = [(best, other, metric) for metric, (best, *others) in rankings.items() for other in others]
    differences = {name: evaluation.difference(*name) for name in names}
    tested = {name: difference for name, difference in differences.items() if difference.n >= FEWEST}
    corrected = dict(zip(tested, holm(list(tested.values())), strict=True))
    for metric, (best, following, *_) in rankings.items():
        difference = corrected.get((best, following, metric))
        if difference is not None:
            verb = "differs" if difference.p_value < SIGNIFICANT else "may not differ"
            yield f"{metric}: {best} {verb} from {following}, the next best ({difference.p_text})"
        elif differences[best, following, metric].n > 1:
            yield f"at least {FEWEST} inputs are needed to compare methods"


@tables_of.register
def _(attacks: Attacks) -> list[Table]:
    numbers = ("radius", "passes")
    titles = ["input", "predicted", "features that may change", *numbers]
    has_values = any(attacked.input.value_texts() is not None for attacked in attacks)
    titles += ["features that changed"] if has_values else []
    rows = [
        [*cells, Cell(_changes(attacked, i))] if has_values else cells
        for attacked in attacks
        for i, cells in enumerate(attack_cells(attacked))
    ]
    columns = [Column(title, title in numbers) for title in titles]
    return [Table(columns, rows, "Attack radii", attack_notes(attacks))]


def attack_cells(attacked: Attacked) -> Iterator[list[Cell]]:
    """Yield the cells of each set of one input, except the features that changed."""
    for i, radius in enumerate(attacked.radii.tolist()):
        shown = number_text(radius) if isfinite(radius) else "none found"
        members, passes = _members(attacked, i), f"{attacked.passes[i]:,}"
        yield list(map(Cell, (str(attacked.index), attacked.predicted, members, shown, passes)))


def attack_notes(attacks: Attacks) -> list[str]:
    """Return the meaning of the radii, and the failed inputs."""
    targets = {attacked.toward for attacked in attacks} - {None}
    aim = f"to {', '.join(map(repr, sorted(map(str, targets))))}" if targets else "to any other class"
    norms = ", ".join(sorted({attacked.norm for attacked in attacks}))
    notes = [f"The {norms} norm of the smallest perturbation found that changes the prediction {aim}."]
    missing = dict.fromkeys(name for attacked in attacks for name in attacked.unattacked)
    notes += [unattacked_note(list(missing))] if missing else []
    return [*notes, *failure_notes(attacks.failures)]


def _members(attacked: Attacked, i: int) -> str:
    members = np.flatnonzero(attacked.sets[i]).tolist()
    if len(members) == attacked.sets.shape[1]:
        return f"all {len(members)}"
    names = ", ".join(attacked.input.features[j] for j in members[:_NAMED])
    return (names + (f" … {len(members)} in all" if len(members) > _NAMED else "")) or "none"


def _changes(attacked: Attacked, i: int) -> str:
    """Return the features whose values changed most, relative to their original values."""
    input, before = attacked.input, attacked.input.value_texts()
    if before is None or not attacked.succeeded[i] or not isinstance(input, ArrayInput):
        return ""
    size, change = np.abs(input.array.astype(np.float64)), np.abs(attacked.changes[i])
    share = np.zeros(input.n_features)
    np.maximum.at(share, input.owners, change / np.maximum(size, np.finfo(np.float64).tiny))
    after = input.shift(attacked.changes[i]).value_texts() or ()
    order = [j for j in np.argsort(-share, kind="stable").tolist() if share[j] > 0]
    shown = [f"{input.features[j]} {before[j]} → {after[j]}" for j in order[:_NAMED]]
    return ", ".join(shown) + (" …" if len(order) > _NAMED else "")


@tables_of.register
def _(diagnostic: Diagnostic) -> list[Table]:
    content = diagnostic.table()
    has_verdicts = any(row.verdict for row in content.rows)
    columns = [Column(title, bool(i)) for i, title in enumerate(content.columns)]
    rows = [
        [Cell(row.name, is_best=row.is_best), *(Cell(text, bounds) for text, bounds in row.cells)]
        + ([Cell(row.verdict, tone=row.tone)] if has_verdicts else [])
        for row in content.rows
    ]
    return [
        Table(
            [*columns, Column("verdict")] if has_verdicts else columns,
            rows,
            content.question,
            [*content.notes, *failure_notes(diagnostic.failures)],
            [f"Warning: {warning}" for warning in diagnostic.warnings],
            content.answer,
        )
    ]


@tables_of.register
def _(importance: Importance) -> list[Table]:
    several = len(importance.groups) > 1
    columns = [Column("feature"), *([Column("group")] if several else [])]
    columns += [Column(title, True) for title in ("mean |score|", "mean score", "inputs")]
    rows = []
    for row in importance.rows:
        bounds = f" [{measure_text(row.low)}, {measure_text(row.high)}]" if isfinite(row.low) else ""
        effect = f"{row.effect:+.3f}" if isfinite(row.effect) else "–"
        cells = [Cell(clipped(row.feature)), *([Cell(row.group)] if several else [])]
        rows.append([*cells, Cell(measure_text(row.mean), bounds), Cell(effect), Cell(f"{row.n:,}")])
    return [Table(columns, rows, notes=[importance_caption(importance)])]


def importance_caption(importance: Importance, *, of_points: bool = False) -> str:
    """Return the meaning of the numbers or points, and the number of omitted features."""
    n, left = sum(importance.sizes.values()), importance.n_features - len(importance.features)
    rest = f" {left:,} less important feature{'s are' if left > 1 else ' is'} not shown." if left > 0 else ""
    targets = set(importance.targets.values())
    target = targets.pop() if len(targets) == 1 else None
    if not importance.is_signed:
        rest = f" The scores are for several classes, so only their magnitudes are averaged.{rest}"
    scores_for = f" for {visible(target)}" if target else ""
    if of_points:
        return f"The score of each feature{scores_for} in each of {n:,} explanations.{rest}"
    several = len(importance.groups) > 1
    sizes = ", ".join(f"{name}: {size:,}" for name, size in importance.sizes.items()) if several else f"{n:,}"
    return (
        f"Mean magnitude of the scores{scores_for} over all explanations ({sizes}), "
        f"95% bootstrap intervals.{rest}"
    )


@tables_of.register
def _(catalogue: Catalogue) -> list[Table]:
    def table(entries: Sequence[Entry], title: str = "") -> Table:
        rows = []
        for entry in entries:
            settings = ", ".join(f"{name}={value}" for name, value in entry.settings.items()) or "–"
            rows.append([Cell(entry.name, is_best=True), *map(Cell, (entry.summary, entry.paper, settings))])
        return Table(list(map(Column, ("name", "summary", "source", "settings"))), rows, title)

    to_fit = [entry for entry in catalogue if entry.fitted_first]
    title = "Trained first, by pertinent.fit or pertinent fit --method NAME --out FOLDER:"
    ready = table([entry for entry in catalogue if not entry.fitted_first])
    return [ready, table(to_fit, title)] if to_fit else [ready]
