"""Page of the experiment with real language models."""

from __future__ import annotations

from functools import partial

from experiments.language_models.tables import Results
from experiments.shared.pages import Content, Page
from experiments.shared.stages import Run, read_record


def readme(run: Run) -> Content:
    """Return the parts of README.md."""
    path = run.results / "smollm2.json"
    if not path.is_file():
        return None
    results = Results(read_record(path))
    right, followed = (results.of_task(task, expected=True) for task in ("squad", "injection"))
    return {
        "overview": results.overview,
        "lds": partial(results.table, "lds", ".2f", results.examples),
        "ahead": results.differences,
        "half": results.half_the_passes,
        "precision": partial(results.table, "precision", ".2f", right),
        "injection": partial(results.table, "precision", ".2f", followed),
        "drop": partial(results.table, "drop", ".1f", results.examples),
        "coverage": partial(results.table, "coverage", ".2f", results.examples),
        "seconds": partial(results.table, "seconds", ".3f", results.examples),
    }


PAGES = {"README.md": Page(readme)}
