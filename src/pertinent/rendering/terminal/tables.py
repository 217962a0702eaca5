"""Evaluations, attacks, diagnostics and catalogues in the terminal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from pertinent.printable import visible
from pertinent.rendering import tables as contents
from pertinent.rendering.wording import arrow
from pertinent.results.attack_results import Attacks
from pertinent.results.evaluation import Evaluation

if TYPE_CHECKING:
    from pertinent.api.catalogue import Entry
    from pertinent.diagnostics.base import Diagnostic

_LONGEST_NAME = 24
"""Longer names are folded where the terminal is narrow."""

_STYLES = {"": "", "quiet": "dim", "caution": "yellow", "alarm": "bold red"}


def _new_table(padding: tuple[int, int, int, int] = (0, 2, 0, 0)) -> Table:
    """An empty table without lines."""
    return Table(box=None, pad_edge=False, padding=padding, header_style="bold")


def show_evaluation(evaluation: Evaluation) -> Table:
    """Mean and interval by method and metric, the best of each metric in bold; whether the next differs."""
    found = contents.summary(evaluation)
    table = _new_table(padding=(0, 3, 0, 0))
    table.add_column("method")
    for metric, better in evaluation.better.items():
        table.add_column(Text(f"{visible(metric)} {arrow(better)}"), justify="right")
    for method in evaluation.methods:
        cells = []
        for metric in evaluation.better:
            cell = found.cells.get((method, metric))
            text = Text(cell.text if cell else "–", style="bold" if cell and cell.best else "")
            cells.append(text.append(f" {cell.interval.bounds}" if cell else "", style="not bold dim"))
        table.add_row(Text(visible(method)), *cells)
    failed = f"; {len(evaluation.failures)} failed" if evaluation.failures else ""
    lines = [f"{found.caption}{failed}", *map(visible, found.notes)]
    table.caption = Text("\n".join(lines), style="dim")
    table.caption_justify = "left"
    return table


def show_attacks(attacks: Attacks) -> RenderableType:
    """A line for each set of each input."""
    table = _new_table()
    for heading in contents.attack_head(attacks):
        number = heading in ("radius", "passes")
        table.add_column(heading, justify="right" if number else "left", no_wrap=number, overflow="fold")
    for cells in contents.attack_lines(attacks):
        table.add_row(*(Text(visible(cell)) for cell in cells))
    notes = [Text(visible(line), style="dim") for line in contents.attack_notes(attacks)]
    return Padding(Group(table, Text(), *notes), (0, 0, 0, 1))


def show_diagnostic(diagnostic: Diagnostic) -> RenderableType:
    """The question, the table, how to read it, and the answer."""
    content = diagnostic.table()
    has_verdicts = any(row.verdict for row in content.rows)
    table = _new_table()
    longest = max(len(row.name) for row in content.rows)
    table.add_column(content.columns[0], min_width=min(longest, _LONGEST_NAME), overflow="fold")
    for place, heading in enumerate(content.columns[1:]):
        parts = [part.strip() for row in content.rows for part in row.cells[place]]
        table.add_column(heading, justify="right", min_width=max(map(len, [heading, *parts])))
    if has_verdicts:
        table.add_column("verdict")
    for row in content.rows:
        cells = [Text(text).append(bounds, style="dim") for text, bounds in row.cells]
        verdict = [Text(row.verdict, style=_STYLES[row.tone])] if has_verdicts else []
        table.add_row(Text(visible(row.name), style="bold" if row.is_best else ""), *cells, *verdict)
    shown: list[RenderableType] = [Text(visible(content.question), style="bold"), Text(), table, Text()]
    shown += [Text(visible(line), style="yellow") for line in contents.diagnostic_warnings(diagnostic)]
    shown += [Text(visible(line), style="dim") for line in contents.diagnostic_notes(diagnostic)]
    shown += [Text(), Text(visible(content.answer), style="bold")] if content.answer else []
    return Padding(Group(*shown), (0, 0, 0, 1))


def show_catalogue(catalogue: Iterable[Entry]) -> RenderableType:
    """Name, summary, source and settings of each entry; methods that are fitted first stand apart."""
    entries = list(catalogue)
    to_fit = [entry for entry in entries if entry.fitted_first]
    ready = _catalogue_table([entry for entry in entries if not entry.fitted_first])
    if not to_fit:
        return ready
    head = "Fitted first, by pertinent.fit or pertinent fit --method NAME --out FOLDER:"
    return Group(ready, Text(head), _catalogue_table(to_fit))


def _catalogue_table(entries: Iterable[Entry]) -> Table:
    table = _new_table(padding=(0, 2, 1, 0))
    table.add_column("name", no_wrap=True, style="bold")
    for column in ("what it does", "source", "settings"):
        table.add_column(column, style="" if column == "what it does" else "dim", overflow="fold")
    for entry in entries:
        settings = ", ".join(f"{name}={value}" for name, value in entry.settings.items())
        table.add_row(*map(Text, (entry.name, entry.summary, entry.paper, settings or "–")))
    return table
