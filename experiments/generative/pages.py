"""Page of the experiment with a language model that answers from a context."""

from __future__ import annotations

import json
from functools import partial

from experiments.generative.tables import Results, overview, read, small_table
from experiments.shared.pages import Content, Page
from experiments.shared.stages import Run


def readme(run: Run) -> Content:
    """Return the parts of README.md."""
    path, results = run.results / "small.jsonl", Results(read(run.results))
    parts = {}
    if path.is_file():
        records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        parts["small"] = partial(small_table, records)
    if results.examples:
        parts |= {
            "overview": partial(overview, run.results, results),
            "precision": partial(results.table, "precision", ".2f", (0.0, 1.0)),
            "lds": partial(results.table, "lds", ".2f"),
            "drop": partial(results.table, "drop", ".1f"),
            "ahead": results.differences,
        }
    return parts


PAGES = {"README.md": Page(readme, kept=False)}
