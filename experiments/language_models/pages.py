"""Page of the experiment with real language models."""

from __future__ import annotations

from functools import partial

from experiments.language_models.tables import Results
from experiments.shared.pages import Content, Page
from experiments.shared.stages import Run, read_record

RECORD = "smollm2.json"


def readme(run: Run) -> Content:
    """Return the parts of README.md."""
    path = run.results / RECORD
    if not path.is_file():
        return None
    results = Results(read_record(path))
    return {
        "overview": results.overview,
        "lds": partial(results.table, "lds", ".2f", results.examples),
        "ahead": results.differences,
        "half": results.half_the_passes,
        "precision": partial(results.table, "precision", ".2f", results.of_task("squad")),
        "drop": partial(results.table, "drop", ".1f", results.examples),
        "coverage": partial(results.table, "coverage", ".2f", results.examples, bold=False),
    }


def picture(run: Run) -> Content:
    """Return the picture of datamodeling scores."""
    path = run.results / RECORD
    return Results(read_record(path)).picture() if path.is_file() else None


PAGES = {"README.md": Page(readme), "lds.png": Page(picture)}
