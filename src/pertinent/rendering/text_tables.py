"""Tables for papers and notes: Markdown and LaTeX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pertinent.printable import visible
from pertinent.rendering.tables import Cell, Table, tables_of
from pertinent.rendering.wording import on_one_line

_LATEX = {each: f"\\{each}" for each in "&%$#_{}"} | {
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "\\": r"\textbackslash{}",
    "↓": r"$\downarrow$",
    "↑": r"$\uparrow$",
    "−": "$-$",
}


def markdown(result: Any) -> str:
    """Return a table of means with intervals, followed by its notes."""
    (table,) = tables_of(result)
    return "\n\n".join([markdown_table(table), *map(escape_markdown, table.notes)])


def markdown_table(table: Table) -> str:
    """Return a table without its title and notes."""
    head, *rows = _cells(table, escape_markdown, "**{}**")
    lines = [head, ["---:" if column.is_number else "---" for column in table.columns], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def latex(result: Any) -> str:
    """Return a ``tabular`` with ``booktabs`` rules; the notes are comments."""
    (table,) = tables_of(result)
    head, *rows = (" & ".join(line) + r" \\" for line in _cells(table, _escape_latex, r"\textbf{{{}}}"))
    columns = "".join("r" if column.is_number else "l" for column in table.columns)
    lines = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", head, r"\midrule", *rows]
    notes = [f"% {visible(on_one_line(note))}" for note in table.notes]
    return "\n".join([*notes, *lines, r"\bottomrule", r"\end{tabular}"])


def _cells(table: Table, escape: Callable[[str], str], bold: str) -> list[list[str]]:
    """Return the heading and the rows of a table."""

    def text(cell: Cell) -> str:
        shown = escape(cell.text)
        return f"{bold.format(shown) if cell.is_best else shown} {cell.quiet}".rstrip()

    head = [escape(column.heading) for column in table.columns]
    return [head, *(list(map(text, row)) for row in table.rows)]


def escape_markdown(text: str) -> str:
    """Return a text on one line with Markdown escaped."""
    return "".join(f"\\{each}" if each in r"\|*_`<[]" else each for each in visible(on_one_line(text)))


def _escape_latex(text: str) -> str:
    return "".join(_LATEX.get(each, each) for each in visible(on_one_line(text)))
