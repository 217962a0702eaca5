"""The result of `sanity` in the terminal and as HTML."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from pertinent.control_characters import visible
from pertinent.diagnostics.sanity_result import HARDLY, Sanity
from pertinent.intervals import FEWEST, Interval
from pertinent.report.failures import failure_notes
from pertinent.report.markup import Markup
from pertinent.report.style import FRAGMENT

_HEAD = ("randomised to", "inputs", "Spearman", "absolute scores", "")

_TABLE = Markup(
    '<article class="pertinent"><header><h3>Does {name} depend on what the model learned?</h3></header>'
    '<div class="scroll"><table class="rows"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'
    "</div>{notes}</article>"
)
_COLUMN = Markup('<th scope="col" class="number">{}</th>')
_ROW = Markup('<tr><th scope="row" class="name">{}</th>{}</tr>')
_CELL = Markup('<td class="number">{}<span class="quiet">{}</span></td>')
_NOTE = Markup('<p class="legend">{}</p>')


def rendered(sanity: Sanity) -> RenderableType:
    """A line for each stage, and how to read them."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for place, heading in enumerate(_HEAD):
        justify: Literal["right", "left"] = "right" if 0 < place < len(_HEAD) - 1 else "left"
        table.add_column(heading, justify=justify, no_wrap=place > 0, overflow="fold")
    for layer, cells in _lines(sanity):
        table.add_row(
            Text(visible(layer)), *(Text(text).append(bounds, style="dim") for text, bounds in cells)
        )
    warnings = [Text(visible(line), style="yellow") for line in _warnings(sanity)]
    notes = [Text(visible(line), style="dim") for line in _notes(sanity)]
    title = Text(visible(sanity.name), style="bold")
    return Padding(Group(title, Text(), table, Text(), *warnings, *notes), (0, 0, 0, 1))


def html(sanity: Sanity) -> str:
    """The same with its own style."""
    rows = [
        _ROW.format(layer, Markup().join(_CELL.format(*cell) for cell in cells))
        for layer, cells in _lines(sanity)
    ]
    table = _TABLE.format(
        name=sanity.name,
        head=Markup().join(map(_COLUMN.format, _HEAD)),
        rows=Markup().join(rows),
        notes=Markup().join(map(_NOTE.format, (*_warnings(sanity), *_notes(sanity)))),
    )
    return str(FRAGMENT + table)


def _lines(sanity: Sanity) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """The layer of each stage, and its cells with their bounds."""
    for number, stage in enumerate(sanity.stages, start=1):
        verdict = "fails" if number == len(sanity.stages) and not sanity.passed else ""
        n = max(stage.spearman.n, stage.absolute.n)
        yield stage.layer, [(f"{n:,}", ""), _cell(stage.spearman), _cell(stage.absolute), (verdict, "")]


def _cell(found: Interval) -> tuple[str, str]:
    bounds = f" [{found.low:.2f}, {found.high:.2f}]" if found.bounds else ""
    return (f"{found.mean:.2f}" if np.isfinite(found.mean) else "–"), bounds


def _warnings(sanity: Sanity) -> Iterator[str]:
    return (f"Warning: {warning}." for warning in sanity.warnings)


def _notes(sanity: Sanity) -> Iterator[str]:
    """How to read the table, and what was left out."""
    n, stages = sanity.inputs, len(sanity.layers)
    yield (
        f"Rank correlation with explanations of the model as it is; {HARDLY:g} or more in the last row "
        f"fails: they hardly changed. {stages} of {sanity.n_layers} layers randomised, from the output "
        f"down in the order of registration, each with those above it. Removal {sanity.removal}; "
        f"{sanity.features}. 95% bootstrap intervals over inputs."
    )
    if n < FEWEST:
        yield f"Only {n} input{'' if n == 1 else 's'}: with fewer than {FEWEST}, intervals are too narrow."
    missing = sum(bool(np.isnan(row.spearman)) for row in sanity.rows)
    if missing:
        yield (
            f"Left out of Spearman: {missing:,} of {len(sanity.rows):,} explanations, because all features "
            "have the same score."
        )
    yield from failure_notes(sanity.failures)
