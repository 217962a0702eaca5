"""Pages in Markdown: tables, and places that are filled in."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown; rows with nothing behind their first cell are left out."""
    kept = [row for row in rows if set(row[1:]) - {"–", ""}]
    return "".join(f"| {' | '.join(line)} |\n" for line in [head, ["---"] * len(head), *kept])


def fill_in(page: Path, texts: Mapping[str, str]) -> None:
    """Write texts into a page, each between ``<!-- its name -->`` and ``<!-- end -->``.

    A text ends with a line break, as a table does.
    """
    content = page.read_text(encoding="utf-8")
    for name, text in texts.items():
        place = re.search(rf"<!-- {re.escape(name)} -->\n(.*?)<!-- end -->", content, re.DOTALL)
        if place is None:
            raise ValueError(f"{page} has no place for {name}: <!-- {name} --> and <!-- end -->.")
        content = f"{content[: place.start(1)]}\n{text}\n{content[place.end(1) :]}"
    page.write_text(content, encoding="utf-8")
