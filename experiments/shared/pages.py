"""Pages in Markdown: tables, parts between markers, and pages and pictures rebuilt from records."""

from __future__ import annotations

import re
import tarfile
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from experiments.shared.stages import Run

MISSING = "–"
"""Cell of a value that was not measured."""

Parts = Mapping[str, Callable[[], str]]
Content = str | Parts | Any | None
"""A whole page, its parts by marker, a figure of matplotlib, or ``None`` if the records are missing."""


@dataclass(frozen=True)
class Page:
    """A file that is rebuilt from records.

    Attributes
    ----------
    build
        Function from the run to the content; it returns ``None`` if the records are missing.
    kept
        Whether the records are in the archive; if not, only a run with other records rebuilds the page.
    not_kept
        Parts whose records are not in the archive.
    dpi
        Resolution of a figure.
    """

    build: Callable[[Run], Content]
    kept: bool = True
    not_kept: Collection[str] = ()
    dpi: int = 100


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table of the rows that have a value after their first cell; empty without rows."""
    rows = [row for row in rows if set(row[1:]) - {MISSING, ""}]
    lines = [head, ["---"] * len(head), *rows] if rows else []
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def escape(text: str) -> str:
    """Return a text with Markdown's special characters escaped."""
    for sign in "\\*_|`<[]#":
        text = text.replace(sign, f"\\{sign}")
    return text


def fill_in(page: Path, parts: Mapping[str, str]) -> None:
    """Replace parts of a page, each between ``<!-- NAME -->`` and ``<!-- end -->``.

    A part ends with a line break, as a table does.
    """
    content = page.read_text(encoding="utf-8")
    for name, text in parts.items():
        match = re.search(rf"<!-- {re.escape(name)} -->\n(.*?)<!-- end -->", content, re.DOTALL)
        if match is None:
            raise ValueError(f"{page} needs the markers <!-- {name} --> and <!-- end -->.")
        content = f"{content[: match.start(1)]}\n{text}\n{content[match.end(1) :]}"
    page.write_text(content, encoding="utf-8")


def rebuild(pages: Mapping[str, Page], run: Run, folder: Path, *, from_archive: bool) -> None:
    """Write pages and figures to a folder; those without records stay as they are."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, page in pages.items():
        path = folder / name
        content = page.build(run) if page.kept or not from_archive else None
        if isinstance(content, Mapping):
            skipped = page.not_kept if from_archive else ()
            parts = {part: make() for part, make in content.items() if part not in skipped}
            fill_in(path, {part: text for part, text in parts.items() if text})
            unchanged = [part for part in content if not parts.get(part)]
            note = f", unchanged without records: {', '.join(unchanged)}" if unchanged else ""
        elif isinstance(content, str):
            path.write_text(content, encoding="utf-8")
            note = ""
        elif content is not None:
            quality = {"pil_kwargs": {"quality": 85}} if path.suffix == ".jpg" else {}
            content.savefig(path, dpi=page.dpi, **quality)
            note = ""
        else:
            note = ", unchanged without records"
        print(f"{name}{note}", flush=True)


@contextmanager
def unpacked_records(paper: Path, run: Run) -> Any:
    """Yield the run with the records of a paper's archives, unpacked to a temporary folder."""
    with TemporaryDirectory() as folder:
        for path in sorted(paper.glob("*records.tar.xz")):
            with tarfile.open(path) as archive:
                archive.extractall(folder, filter="data")
        inner = Path(folder, "records")
        yield replace(run, results=inner if inner.is_dir() else Path(folder))


def pack_records(results: Path, archive: Path) -> None:
    """Pack the records of a run, without logs."""
    with tarfile.open(archive, "w:xz") as file:
        for path in sorted(results.rglob("*")):
            name = path.relative_to(results)
            if path.is_file() and path.suffix in (".json", ".jsonl", ".npz") and name.parts[0] != "logs":
                file.add(path, str(name))
