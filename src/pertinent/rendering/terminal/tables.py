"""Tables of results in the terminal."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from pertinent.printable import visible
from pertinent.rendering.tables import Cell, Table, tables_of

_LONGEST_NAME = 24
"""Longer row names are folded if the terminal is narrow."""

_STYLES = {"": "", "quiet": "dim", "caution": "yellow", "alarm": "bold red"}


def show(result: Any) -> RenderableType:
    """Return the tables of a result."""
    return Padding(Group(*map(draw, tables_of(result))), (0, 0, 0, 1))


def draw(table: Table) -> RenderableType:
    """Return a table with its title and notes."""
    grid = Grid(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    for i, column in enumerate(table.columns):
        cells = [row[i] for row in table.rows]
        texts = [text.strip() for cell in cells for text in (cell.text, cell.quiet)]
        widest = max(map(len, [*texts, column.heading]), default=0)
        grid.add_column(
            Text(visible(column.heading)),
            justify="right" if column.is_number else "left",
            min_width=widest if column.is_number else min(widest, _LONGEST_NAME) if i == 0 else None,
            overflow="fold",
        )
    for row in table.rows:
        grid.add_row(*map(_text, row))
    parts: list[RenderableType] = [Text(visible(table.title), style="bold"), Text()] if table.title else []
    parts += [grid, Text()]
    parts += [Text(visible(line), style="yellow") for line in table.warnings]
    parts += [Text(visible(line), style="dim") for line in table.notes]
    parts += [Text(), Text(visible(table.answer), style="bold")] if table.answer else []
    return Group(*parts)


def _text(cell: Cell) -> Text:
    text = Text(visible(cell.text), style="bold" if cell.is_best else _STYLES[cell.tone])
    return text.append(f" {visible(cell.quiet.strip())}" if cell.quiet else "", "not bold dim")
