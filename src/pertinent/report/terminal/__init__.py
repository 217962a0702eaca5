"""Results in the terminal; text of users goes only into rich's `Text`, so that it is no markup."""

from __future__ import annotations

from typing import Any

from rich.table import Table

from pertinent.control_characters import visible


def clipped(name: str, most: int = 40) -> str:
    """A name short enough for a line, its control characters visible."""
    name = visible(name)
    return name if len(name) <= most else name[: most - 1] + "…"


def new_table(padding: tuple[int, int, int, int] = (0, 2, 0, 0), **options: Any) -> Table:
    """An empty table without lines."""
    return Table(box=None, pad_edge=False, padding=padding, header_style="bold", **options)
