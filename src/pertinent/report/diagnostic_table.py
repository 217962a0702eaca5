"""The table of any diagnostic, in the terminal and as HTML."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from pertinent.control_characters import visible
from pertinent.diagnostics.base import Diagnostic, DiagnosticTable
from pertinent.report.failures import failure_notes
from pertinent.report.markup import Markup
from pertinent.report.style import FRAGMENT

_LONGEST_NAME = 24
"""Longer names are folded where the terminal is narrow."""

_STYLES = {"": "", "quiet": "dim", "caution": "yellow", "alarm": "bold red"}

_TABLE = Markup(
    '<article class="pertinent"><header><h3>{question}</h3></header>{answer}'
    '<div class="scroll"><table class="rows"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'
    "</div>{notes}</article>"
)
_HEAD = Markup('<th scope="col"{}>{}</th>')
_NUMERIC = Markup(' class="number"')
_ROW = Markup('<tr><th scope="row" class="name">{}</th>{}{}</tr>')
_CELL = Markup('<td class="number">{}<span class="quiet">{}</span></td>')


def rendered(diagnostic: Diagnostic) -> RenderableType:
    """The question, the table, how to read it, and the answer."""
    content = diagnostic.table()
    has_verdicts = _has_verdicts(content)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
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
    shown += [Text(visible(line), style="yellow") for line in _warnings(diagnostic)]
    shown += [Text(visible(line), style="dim") for line in _notes(diagnostic, content)]
    shown += [Text(), Text(visible(content.answer), style="bold")] if content.answer else []
    return Padding(Group(*shown), (0, 0, 0, 1))


def html(diagnostic: Diagnostic) -> str:
    """The same with its own style."""
    content = diagnostic.table()
    head = [_HEAD.format(_NUMERIC if place else "", name) for place, name in enumerate(content.columns)]
    has_verdicts = _has_verdicts(content)
    rows = [
        _ROW.format(
            Markup("<strong>{}</strong>").format(row.name) if row.is_best else row.name,
            Markup().join(_CELL.format(*cell) for cell in row.cells),
            Markup("<td>{}</td>").format(row.verdict) if has_verdicts else "",
        )
        for row in content.rows
    ]
    notes = [*_warnings(diagnostic), *_notes(diagnostic, content)]
    table = _TABLE.format(
        question=content.question,
        answer=Markup("<p>{}</p>").format(content.answer) if content.answer else "",
        head=Markup().join([*head, *([_HEAD.format("", "verdict")] if has_verdicts else [])]),
        rows=Markup().join(rows),
        notes=Markup().join(map(Markup('<p class="legend">{}</p>').format, notes)),
    )
    return str(FRAGMENT + table)


def _has_verdicts(content: DiagnosticTable) -> bool:
    return any(row.verdict for row in content.rows)


def _warnings(diagnostic: Diagnostic) -> Iterator[str]:
    return (f"Warning: {warning}" for warning in diagnostic.warnings)


def _notes(diagnostic: Diagnostic, content: DiagnosticTable) -> Iterator[str]:
    """How to read the table, and what was left out."""
    yield from content.notes
    yield from failure_notes(diagnostic.failures)
