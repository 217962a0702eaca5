"""Explanations, evaluations and catalogues in the terminal.

User text goes only into `Text` objects, so that it is never parsed as markup.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from pertinent.control_characters import visible
from pertinent.inputs.table import TableInput
from pertinent.report import facts as say
from pertinent.report.colours import LIGHT, NEUTRAL
from pertinent.report.failures import by_reason, named, places_text
from pertinent.report.numbering import by_input, name_of
from pertinent.report.summary import summary
from pertinent.report.terminal_input import ColouredInput
from pertinent.results.evaluation import Evaluation
from pertinent.results.explanation import Explanation, Explanations
from pertinent.results.failures import Failure

if TYPE_CHECKING:
    from pertinent.api.catalogue import Entry

_COLOURS = {"support": LIGHT.support, "against": LIGHT.against, "plain": NEUTRAL}
_BAR = 24
_TOP = 8
_MOST_NAMED = 12
_LONGEST_NAME = 40


def rendered(explanation: Explanation) -> RenderableType:
    """One explanation: what was predicted, the input shaded by score, and how that was found."""
    return _rendered(explanation, "" if explanation.id is None else name_of(explanation))


def _rendered(explanation: Explanation, name: str = "") -> RenderableType:
    parts: list[RenderableType] = [_heading(explanation, name)]
    nothing = say.says_nothing(explanation)
    if nothing is not None:
        parts.append(Text(nothing, style="bold"))
    parts += [Text(), ColouredInput(explanation), _bars(explanation)]
    for extra in (_sets(explanation), _measures(explanation)):
        if extra is not None:
            parts += [Text(), extra]
    parts += [Text(), _facts(explanation)]
    said = (*explanation.warnings, *explanation.notes)
    parts += [Text(f"⚠ {visible(line)}", style="bold yellow") for line in said]
    return Padding(Group(*parts), (0, 1))


def rendered_all(explanations: Explanations, *, by_class: bool = False) -> RenderableType:
    """Every explanation, if asked for also by class, then the inputs that failed and why."""
    parts: list[RenderableType] = []
    for found in by_input(explanations):
        parts.append(Rule(Text(visible(found.title)), style="dim"))
        for e in found.explanations:
            parts += [_rendered(e), Text(), e.by_class().__rich__()] if by_class else [_rendered(e)]
    return Group(*parts, *_failures(explanations.failures))


def evaluation_table(evaluation: Evaluation) -> Table:
    """Mean and interval by method and metric, the best of each metric in bold; whether the next differs."""
    found = summary(evaluation)
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    table.add_column("method")
    for metric, better in evaluation.better.items():
        table.add_column(Text(f"{visible(metric)} {say.arrow(better)}"), justify="right")
    for method in evaluation.methods:
        cells = []
        for metric in evaluation.better:
            cell = found.cells.get((method, metric))
            text = Text(cell.text if cell else "–", style="bold" if cell and cell.best else "")
            cells.append(text.append(f" {cell.interval_text}" if cell else "", style="not bold dim"))
        table.add_row(Text(visible(method)), *cells)
    failed = f"; {len(evaluation.failures)} failed" if evaluation.failures else ""
    lines = [f"{found.caption}{failed}", *map(visible, found.notes)]
    table.caption = Text("\n".join(lines), style="dim")
    table.caption_justify = "left"
    return table


def catalogue_table(catalogue: Iterable[Entry], title: str = "") -> Table:
    """Name, summary, source and settings of each entry, and whether it is fitted first if only some are."""
    table = Table(
        title=Text(title) if title else None,
        box=None,
        pad_edge=False,
        padding=(0, 2, 1, 0),
        header_style="bold",
    )
    table.title_justify = "left"
    table.add_column("name", no_wrap=True, style="bold")
    for column in ("what it does", "source", "settings"):
        table.add_column(column, style="" if column == "what it does" else "dim", overflow="fold")
    entries = list(catalogue)
    mixed = len({entry.fitted_first for entry in entries}) > 1
    if mixed:
        table.add_column("fitted first")
    for entry in entries:
        settings = ", ".join(f"{name}={value}" for name, value in entry.settings.items())
        fitted_first = ["yes" if entry.fitted_first else ""] if mixed else []
        table.add_row(*map(Text, (entry.name, entry.summary, entry.paper, settings or "–", *fitted_first)))
    return table


def _heading(e: Explanation, name: str) -> Text:
    predicted = say.predicted(e)
    line = Text().append(visible(e.classes[predicted]), style="bold")
    line.append(f" {visible(say.amount(e, predicted))}")
    if e.target != predicted:
        line.append("   explained: ", style="dim").append(visible(e.target_name), style="bold")
        line.append(f" {visible(say.amount(e, e.target))}")
    return line.append(f"   {visible(name)}" if name else "", style="dim")


def _bars(e: Explanation) -> RenderableType:
    """A bar for each column of a row; for the strongest features of other inputs."""
    is_table = isinstance(e.input, TableInput)
    shown = say.strongest(e, None if is_table else _TOP)
    values = e.input.shown() if isinstance(e.input, TableInput) else ()
    share = say.relative_scores(e)
    grid = Table.grid(padding=(0, 2, 0, 0))
    for i in shown.tolist():
        name = Text(clipped(say.on_one_line(e.features[i])), no_wrap=True)
        value = [Text(clipped(values[i]), style="dim", no_wrap=True)] if is_table else []
        score = Text(say.score_text(e, i), justify="right", no_wrap=True)
        error = Text(say.error_text(e, i), style="dim", no_wrap=True)
        grid.add_row(
            name,
            *value,
            score,
            error,
            bar(e, i, share[i], _BAR),
            Text(say.pertinence_text(e, i), style="dim"),
        )
    left = len(e.features) - len(shown)
    return Group(grid, Text(f"and {left:,} weaker", style="dim")) if left else grid


def bar(e: Explanation, feature: int, share: float, longest: int) -> Text:
    """The bar of a feature that has this share of the longest bar, in eighths of a character."""
    full, eighths = divmod(round(abs(share) * longest * 8), 8)
    line = "█" * full + ("▏▎▍▌▋▊▉"[eighths - 1] if eighths else "")
    return Text(line, style=_COLOURS[say.side(e, feature)], no_wrap=True)


def _sets(e: Explanation) -> RenderableType | None:
    """Which features a search chose at each sparsity."""
    if not e.chosen:
        return None
    grid = Table.grid(padding=(0, 2, 0, 0))
    for row, found in enumerate(say.chosen_sets(e)):
        members = [clipped(say.on_one_line(e.features[i])) for i in np.flatnonzero(found.mask)]
        names = Text().append(" · ".join(members[:_MOST_NAMED]), style="" if row else "bold underline")
        if len(members) > _MOST_NAMED:
            names.append(f" and {len(members) - _MOST_NAMED} more", style="dim")
        grid.add_row(Text(f"best at {found.sparsities}", style="dim"), Text(f"{len(members)}"), names)
    return grid


def _measures(e: Explanation) -> Text | None:
    found = say.measures(e)
    line = Text("   ").join(
        Text(f"{visible(m.name)} {m.arrow} ", style="dim").append(f"{m.mean:.3f}", style="not dim bold")
        for m in found
    )
    sparsities = dict.fromkeys(s for m in found for s in m.values if s is not None)
    if sparsities:
        line.append(f"   mean over {', '.join(f'{100 * s:g}%' for s in sparsities)}", style="dim")
    return line if found else None


def _facts(e: Explanation) -> Text:
    found = say.facts(e)
    method = Text(visible(found.pop("method")), style="bold")
    rest = "".join(f" · {visible(label)} {visible(value)}" for label, value in found.items())
    return method.append(rest, style="not bold dim")


def _failures(failures: Sequence[Failure]) -> Iterator[RenderableType]:
    if failures:
        yield Rule(Text(f"{len(failures)} failed"), style="red")
    for reason, places in by_reason(named(failures)).items():
        name = Text(f" {visible(places_text(places))}: ", style="red")
        yield name.append(visible(reason), style="default")


def clipped(name: str, most: int = _LONGEST_NAME) -> str:
    """A name short enough for a line, its control characters visible."""
    name = visible(name)
    return name if len(name) <= most else name[: most - 1] + "…"
