"""The result of `stability` in the terminal and as HTML."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from pertinent.control_characters import visible
from pertinent.diagnostics.stability_result import Stability
from pertinent.intervals import FEWEST, Interval
from pertinent.report.failures import failure_notes
from pertinent.report.markup import Markup
from pertinent.report.style import FRAGMENT

_HEAD = ("features", "inputs", "Spearman", "top 5", "top 10", "MSE", "evaluations", "seconds")
_FORMATS = {"top_5": ".2f", "top_10": ".2f", "mse": ".2g", "evaluations": ",.0f", "seconds": ".2g"}

_TABLE = Markup(
    '<article class="pertinent"><header><h3>How stable is {name}?</h3></header>'
    '<div class="scroll"><table class="rows"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'
    "</div>{notes}</article>"
)
_COLUMN = Markup('<th scope="col" class="number">{}</th>')
_ROW = Markup('<tr><th scope="row" class="name">{}</th>{}</tr>')
_CELL = Markup('<td class="number">{}<span class="quiet">{}</span></td>')
_NOTE = Markup('<p class="legend">{}</p>')


def rendered(stability: Stability) -> RenderableType:
    """A line for all inputs, one for each group of lengths, and how to read them."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for place, heading in enumerate(_HEAD):
        table.add_column(heading, justify="right" if place else "left", no_wrap=True)
    for name, cells in _lines(stability):
        table.add_row(name, *(Text(text).append(bounds, style="dim") for text, bounds in cells))
    notes = [Text(visible(line), style="dim") for line in _notes(stability)]
    title = Text(visible(stability.name), style="bold")
    return Padding(Group(title, Text(), table, Text(), *notes), (0, 0, 0, 1))


def html(stability: Stability) -> str:
    """The same with its own style."""
    rows = [
        _ROW.format(name, Markup().join(_CELL.format(*cell) for cell in cells))
        for name, cells in _lines(stability)
    ]
    table = _TABLE.format(
        name=stability.name,
        head=Markup().join(map(_COLUMN.format, _HEAD)),
        rows=Markup().join(rows),
        notes=Markup().join(map(_NOTE.format, _notes(stability))),
    )
    return str(FRAGMENT + table)


def _lines(stability: Stability) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """The name of each line, and its cells with their bounds."""
    lengths = stability.by_length
    if len(lengths) > 1:
        yield "all", _cells(stability.inputs, stability.summary)
    for length in lengths:
        yield str(length), _cells(length.inputs, length.measures)


def _cells(inputs: int, measures: Mapping[str, Interval]) -> list[tuple[str, str]]:
    """Spearman's correlation, the main measure of the paper, has its bounds; the others are means."""
    main = measures["spearman"]
    bounds = f" [{main.low:.2f}–{main.high:.2f}]" if main.bounds else ""
    means = [(_number(measures[name].mean, form), "") for name, form in _FORMATS.items()]
    return [(f"{inputs:,}", ""), (_number(main.mean, ".2f"), bounds), *means]


def _number(value: float, form: str) -> str:
    return format(value, form) if np.isfinite(value) else "–"


def _notes(stability: Stability) -> Iterator[str]:
    """How to read the table, what to be careful about, and what was left out."""
    n = stability.inputs
    yield (
        f"{len(stability.seeds)} seeds, all pairs; removal {stability.removal}; {stability.features}. "
        "Top 5 and 10: the share in common. Evaluations and model seconds: for one explanation. "
        "95% bootstrap intervals over inputs."
    )
    if n < FEWEST:
        yield f"Only {n} input{'' if n == 1 else 's'}: with fewer than {FEWEST}, intervals are too narrow."
    yield from (f"Warning: {warning}" for warning in stability.warnings)
    reasons = {
        "spearman": ("Spearman", "a seed gave all their features the same score"),
        "top_5": ("top 5", "they have no more than 5 features"),
        "top_10": ("top 10", "they have no more than 10 features"),
    }
    for measure, (title, reason) in reasons.items():
        missing = n - stability.summary[measure].n
        if missing:
            yield f"Left out of {title}: {missing:,} of {n:,} inputs, because {reason}."
    yield from failure_notes(stability.failures)
