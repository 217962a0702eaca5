"""What run.py found: reading it, means with intervals, and tables in Markdown."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pertinent.statistics import Interval, bootstrap

ROWS = (
    "aim",
    "l2x",
    "vibi",
    "lime",
    "functional-information",
    "kernel-shap",
    "parallel-local-search",
    "thompson-search",
    "random",
)


def read_results(folder: Path) -> dict[str, Any]:
    """The stages that did not fail, by name."""
    found = {path.stem: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}
    return {name: own for name, own in found.items() if "error" not in own}


def of(found: dict[str, Any], which: str, row: str) -> list[Any]:
    """What was found of a row, with every seed."""
    name = f"{which} {row} ".replace(",", "").replace(" ", "_")
    return [own for key, own in found.items() if re.fullmatch(re.escape(name) + r"\d", key)]


def over(
    runs: Sequence[Any], metric: str, first: int | None = None, more_words_than: int = 0
) -> Interval | None:
    """The mean over seeds and inputs of what was measured, if it was.

    Of the `first` inputs alone, or of those that have more words (up to 20).
    """
    values = []
    for run in runs:
        if metric in run["values"]:
            own = run["values"][metric][:first]
            if more_words_than:
                own = [v for v, words in zip(own, run["words"], strict=False) if len(words) > more_words_than]
            values.append(own)
    return bootstrap(np.array(values, dtype=float)) if values else None


def shown(own: Interval | None, factor: float = 1.0) -> str:
    """A mean with its interval, in percent if `factor` is 100."""
    if own is None:
        return "–"
    digits = 1 if factor > 1 else 2
    mean, low, high = (f"{factor * each:.{digits}f}" for each in (own.mean, own.low, own.high))
    return f"{mean} [{low}, {high}]"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def fill_in(page: Path, tables: dict[str, str]) -> None:
    """Write texts into a page, each between its markers."""
    text = page.read_text(encoding="utf-8")
    for name, own in tables.items():
        pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        if not pattern.search(text):
            raise ValueError(f"{page.name} has no place for {name}.")
        text = pattern.sub(lambda match, own=own: f"{match[1]}\n{own}\n\n{match[2]}", text)  # type: ignore[misc]
    page.write_text(text, encoding="utf-8")
