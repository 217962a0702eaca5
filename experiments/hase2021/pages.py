"""Pages of the experiments of Hase et al. 2021: the paper's tables and figures with ours."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path

from experiments.hase2021 import own_search, sizes, speed
from experiments.hase2021.data import SETS
from experiments.hase2021.figures import (
    PICTURED,
    accuracies,
    course_page,
    draw_courses,
    draw_removals,
    masked_page,
    removal_page,
)
from experiments.hase2021.methods import COUNTED, FILLER
from experiments.hase2021.results import Part, read_parts
from experiments.hase2021.tables import (
    accuracy_table,
    evidence_table,
    main_table,
    reduced_table,
    second_table,
    short_table,
)
from experiments.shared.pages import Content, Page
from experiments.shared.stages import Run, read_record

FOLDER = Path(__file__).parent
parts_of = lru_cache(maxsize=2)(read_parts)


def merge_sections(new: str, old: str) -> str:
    """Return the new page with those sections of the old one that it lacks, data sets first."""
    head, *new_sections = re.split(r"\n(?=## )", new)
    _, *old_sections = re.split(r"\n(?=## )", old)
    names = [spec.name for spec in SETS.values()]

    def subject(section: str) -> str:
        heading = section.splitlines()[0].removeprefix("## ")
        return next((name for name in names if heading.split(":")[0] == name), heading)

    sections = {subject(section): section.rstrip("\n") + "\n" for section in (*old_sections, *new_sections)}
    order = [name for name in names if name in sections] + [name for name in sections if name not in names]
    return "\n".join([head, *(sections[name] for name in order)])


def merge_rows(new: str, old: str) -> str:
    """Return the new table with the rows of the old one whose data sets it lacks, in order."""
    rows = {
        line.split(" | ")[0]: line for page in (old, new) for line in page.splitlines() if line[:2] == "| "
    }
    head = [line for line in new.splitlines() if line[:2] != "| "]
    ordered = ["| set", "| ---", *(f"| {spec.name}" for spec in SETS.values())]
    return "\n".join([*head, *(rows[name] for name in ordered if name in rows)]) + "\n"


def merged(name: str, make: Callable[[Run], str | None], merge: Callable[[str, str], str]) -> Page:
    """Return a page that keeps what was not measured again."""

    def build(run: Run) -> Content:
        page = make(run)
        return page and merge(page, (FOLDER / name).read_text(encoding="utf-8"))

    return Page(build)


def of_parts(make: Callable[[dict[str, Part]], str]) -> Callable[[Run], str | None]:
    """Return the function that makes a page of the models of the first encoder, if there are records."""

    def build(run: Run) -> str | None:
        parts = parts_of(run.results)
        return make(parts) if any(name in SETS for name in parts) else None

    return build


def table_3(run: Run) -> str | None:
    """Return the page of Table 3, if models were trained."""
    return accuracy_table(run.results) if any(run.results.glob("*-*.train.json")) else None


def table_4(run: Run) -> str | None:
    """Return the page of Table 4, if short sentences were explained."""
    parts = parts_of(run.results)
    return short_table(parts["sst2-short"]) if "sst2-short" in parts else None


def table_5(run: Run) -> str | None:
    """Return the page of Table 5."""
    counted = parts_of(run.results / COUNTED)
    return of_parts(lambda parts: reduced_table(parts, counted))(run)


def figure_3(run: Run) -> str:
    """Return the page of Figure 3: all data sets with a picture, or with records for one."""
    pictured = [path.stem.removeprefix("figure3-") for path in FOLDER.glob("figure3-*.png")]
    return course_page([name for name in SETS if name in {*pictured, *parts_of(run.results)}])


def course_picture(name: str, run: Run) -> Content:
    """Return the picture of a data set of Figure 3, if there are records."""
    parts = parts_of(run.results)
    return draw_courses(parts[name], name) if name in parts else None


def removal_picture(name: str, start: str, run: Run) -> Content:
    """Return a picture of Figure 2, if there are records."""
    return draw_removals(accuracies(run.results, name, start), name)


def of_records(pattern: str, make: Callable[[list[dict[str, object]]], str], run: Run) -> str | None:
    """Return a page of all records with such a name, if there are any."""
    records = [read_record(path) for path in sorted(run.results.glob(pattern))]
    return make(records) if records else None


PAGES = {
    "table1.md": merged("table1.md", of_parts(main_table), merge_sections),
    "table2.md": Page(partial(of_records, "sizes.json", lambda records: sizes.page(records[0])), kept=False),
    "table3.md": merged("table3.md", table_3, merge_rows),
    "table4.md": Page(table_4, kept=False),
    "table5.md": merged("table5.md", table_5, merge_sections),
    "table6.md": merged("table6.md", lambda run: second_table(parts_of(run.results)), merge_sections),
    "table7.md": merged("table7.md", of_parts(evidence_table), merge_sections),
    "figure2.md": Page(lambda run: removal_page(run.results), kept=False),
    "figure2-masked.md": Page(lambda run: masked_page(run.results), kept=False),
    "figure3.md": Page(figure_3),
    "speed.md": Page(partial(of_records, "speed*.json", speed.page), kept=False),
    "own-search.md": Page(partial(of_records, "own-search-*.json", own_search.page), kept=False),
    **{f"figure3-{name}.png": Page(partial(course_picture, name), dpi=130) for name in SETS},
    **{
        f"figure2-{infix}{name}.png": Page(partial(removal_picture, name, start), kept=False, dpi=130)
        for infix, start in (("", ""), ("masked-", FILLER))
        for name in PICTURED
    },
}
