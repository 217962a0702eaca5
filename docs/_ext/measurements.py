"""Copies the reports of `experiments/` and `benchmarks/` into the site, and links pages to the copies."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

FOLDERS = ("benchmarks", "experiments")
COPIED = (".md", ".png", ".jpg")
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s#]*)(#[^)\s]*)?\)")


def copy_reports(app: Sphinx) -> None:
    """Copy Markdown pages and pictures to ``docs/measurements``."""
    docs = Path(app.srcdir)
    for folder in FOLDERS:
        for source in sorted((docs.parent / folder).rglob("*")):
            if source.suffix not in COPIED:
                continue
            target = docs / "measurements" / source.relative_to(docs.parent)
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.suffix != ".md":
                shutil.copyfile(source, target)
                continue
            text = relink(source.read_text(encoding="utf-8"), source, target, docs)
            target.write_text(text + toctree(source), encoding="utf-8")


def toctree(page: Path) -> str:
    """Return the table of contents of a README: the other pages of its folder, and the folders in it."""
    if page.name != "README.md":
        return ""
    pages = [each for each in [*page.parent.glob("*/README.md"), *page.parent.glob("*.md")] if each != page]
    entries = "\n".join(sorted(str(each.relative_to(page.parent).with_suffix("")) for each in pages))
    return f"\n```{{toctree}}\n:hidden:\n\n{entries}\n```\n" if pages else ""


def relink(text: str, source: Path, target: Path, docs: Path) -> str:
    """Return a page with links to pages of the site; links to other files become plain text."""

    def replace(match: re.Match[str]) -> str:
        image, label, path, anchor = match[1], match[2], match[3], match[4] or ""
        if not path or ":" in path:
            return match[0]
        page = page_of((source.parent / path).resolve(), docs)
        if page is None:
            return label
        return f"{image}[{label}]({os.path.relpath(page, target.parent)}{anchor})"

    return LINK.sub(replace, text)


def page_of(path: Path, docs: Path) -> Path | None:
    """Return the file of the site for a file of the repository, or ``None``."""
    if path == docs.parent / "README.md":
        return docs / "index.md"
    if path == docs.parent / "CHANGELOG.md":
        return docs / "changelog.md"
    if path.is_relative_to(docs):
        return path
    is_copied = path.suffix in COPIED and any(path.is_relative_to(docs.parent / each) for each in FOLDERS)
    return docs / "measurements" / path.relative_to(docs.parent) if is_copied else None


def link_pages(app: Sphinx, docname: str, content: list[str]) -> None:
    """Link a page of the documentation to the copies."""
    docs, page = Path(app.srcdir), Path(app.env.doc2path(docname))
    if page.suffix == ".md" and not docname.startswith("measurements/"):
        content[0] = relink(content[0], page, page, docs)


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect the copies and the links."""
    app.connect("builder-inited", copy_reports)
    app.connect("source-read", link_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
