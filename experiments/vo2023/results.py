"""What run.py found: reading it, means with intervals, and tables in Markdown."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pertinent.stats import Interval, bootstrap

sys.path.append(str(Path(__file__).parents[1]))

from shared.legacy import fill_in, table

__all__ = ["ROWS", "fill_in", "of", "over", "read_results", "shown", "table"]

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

SHARES = ("faithfulness", "class-faithfulness")
"""Shares of decisions."""


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
    within = (0.0, 1.0) if metric.startswith(SHARES) else None
    return bootstrap(np.array(values, dtype=float), within=within) if values else None


def shown(own: Interval | None, factor: float = 1.0) -> str:
    """A mean with its interval, in percent if `factor` is 100."""
    if own is None:
        return "–"
    digits = 1 if factor > 1 else 2
    mean, low, high = (f"{factor * each:.{digits}f}" for each in (own.mean, own.low, own.high))
    return f"{mean} [{low}, {high}]"
