"""Pages of the experiments of Vo et al. 2023."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from experiments.shared.pages import Content, Page
from experiments.shared.stages import Run, read_record
from experiments.vo2023 import form_tables, text_tables
from experiments.vo2023.images import draw_pictures
from experiments.vo2023.known_features import task_table
from experiments.vo2023.pictures import draw_by_size, draw_cost, examples
from experiments.vo2023.refinement import CASES, case_table
from experiments.vo2023.results import read_records
from experiments.vo2023.tabular import SETS, tabular_table


def readme(run: Run) -> Content:
    """Return the parts of README.md."""
    return text_tables.parts(run) | form_tables.parts(run)


def of_texts(draw: Callable[[Any], Any], run: Run) -> Content:
    """Return a figure of the stages on texts."""
    return draw(read_records(run.results, "texts"))


def known_features(run: Run) -> Content:
    """Return the table of tasks with known features."""
    records = map(read_record, (run.results / "known").glob("*.json"))
    by_task = {(record["task"], record["method"]): record for record in records}
    return {"tasks": partial(task_table, by_task)}


def refinement(run: Run) -> Content:
    """Return the tables of searches with a start."""
    paths = {name: run.results / "refinement" / f"{name}.json" for name in CASES}
    return {
        name: partial(case_table, read_record(path)) if path.is_file() else str
        for name, path in paths.items()
    }


def figure_3(run: Run) -> Content:
    """Return images and their top patches, if there are records."""
    records = read_records(run.results, "figure3")
    return draw_pictures(records) if records else None


PAGES = {
    "README.md": Page(readme),
    "paper_form.md": Page(form_tables.paper_form, kept=False),
    "tabular.md": Page(
        lambda run: {name: partial(tabular_table, name, run.results / "tabular") for name in SETS}, kept=False
    ),
    "known_features.md": Page(known_features, kept=False),
    "refinement.md": Page(refinement, kept=False),
    "examples.md": Page(
        lambda run: {"examples": partial(examples, read_records(run.results, "texts"))}, kept=False
    ),
    "figure2.png": Page(partial(of_texts, draw_by_size), kept=False, dpi=110),
    "cost.png": Page(partial(of_texts, draw_cost), kept=False, dpi=110),
    "figure3.png": Page(figure_3, kept=False, dpi=110),
}
