"""The index of a report: a line for each input, to search, filter and sort by."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pertinent.inputs.base import Input
from pertinent.inputs.image import ImageInput
from pertinent.inputs.table import TableInput
from pertinent.inputs.text import TextInput
from pertinent.report import facts as say
from pertinent.report.markup import Markup
from pertinent.report.numbering import Explained
from pertinent.report.pictures import data_uri, original, resized

_LONGEST_START = 120
_THUMBNAIL = 32

_INDEX = Markup(
    '<div class="pertinent index" id="index"><div class="controls" hidden>'
    '<input type="search" placeholder="Search" aria-label="Search">'
    '<select aria-label="Prediction"><option>all predictions</option>{}</select><output></output></div>'
    '<div class="scroll"><table class="rows"><thead><tr>{}</tr></thead><tbody>{}</tbody></table></div></div>'
)
_OPTION = Markup('<option value="{0}">{0}</option>')
_COLUMN = Markup('<th scope="col" class="{}">{}</th>')
_ROW = Markup('<tr data-predicted="{}">{}</tr>')
_CELL = Markup('<td class="{}" data-value="{}">{}</td>')


@dataclass(frozen=True)
class _Cell:
    """What a cell shows, by what it is sorted, and its class."""

    shown: str = ""
    value: object = ""
    kind: str = ""


def index(inputs: Sequence[Explained]) -> Markup:
    """The table of inputs, each linked to its section; columns that are empty throughout are left out."""
    methods = {e.method for found in inputs for e in found.explanations}
    rows = [dict(_cells(found, place, len(methods) > 1)) for place, found in enumerate(inputs)]
    columns = {column: cell.kind for row in rows for column, cell in row.items() if cell.shown}
    lines = []
    for found, row in zip(inputs, rows, strict=True):
        cells = [row.get(column, _Cell()) for column in columns]
        drawn = Markup().join(_CELL.format(cell.kind, cell.value, cell.shown) for cell in cells)
        lines.append(_ROW.format(_predicted(found), drawn))
    return _INDEX.format(
        Markup().join(_OPTION.format(name) for name in sorted({_predicted(found) for found in inputs})),
        Markup().join(_COLUMN.format(kind, column) for column, kind in columns.items()),
        Markup().join(lines),
    )


def anchor(place: int) -> str:
    """The id of the section that stands in this place of the report."""
    return f"input-{place}"


def _cells(found: Explained, place: int, several_methods: bool) -> Iterator[tuple[str, _Cell]]:
    first = found.explanations[0]
    predicted = say.predicted(first)
    number = Markup('<a href="#{}">{}</a>').format(anchor(place), first.index)
    yield "input", _Cell(number, first.index)
    yield "id", _Cell(first.id or "", first.id or "")
    start = _start(first.input)
    yield "begins", _Cell(start, "" if isinstance(start, Markup) else start, "start")
    yield "prediction", _Cell(_predicted(found), _predicted(found))
    amount = "value" if first.output.kind == "value" else "probability"
    yield amount, _Cell(say.amount(first, predicted), float(first.prediction[predicted]), "number")
    targets = ", ".join(
        dict.fromkeys(e.target_name for e in found.explanations if e.target != say.predicted(e))
    )
    yield "explained instead", _Cell(targets, targets)
    methods = ", ".join(dict.fromkeys(e.method for e in found.explanations))
    yield "method", _Cell(methods, methods)
    measured: dict[str, list[float]] = {}
    for e in found.explanations:
        for m in say.measures(e):
            column = f"{m.name} {m.arrow} {e.method if several_methods else ''}"
            measured.setdefault(" ".join(column.split()), []).append(m.mean)
    for column, values in measured.items():
        yield column, _Cell(f"{np.mean(values):.3f}", float(np.mean(values)), "number")


def _predicted(found: Explained) -> str:
    first = found.explanations[0]
    return first.classes[say.predicted(first)]


def _start(input: Input) -> str:
    """The first words of a text, the first values of a row, or a small image."""
    if isinstance(input, ImageInput):
        return Markup('<img src="{}" alt="">').format(data_uri(resized(original(input), _THUMBNAIL)))
    parts = input.features
    if isinstance(input, TextInput):
        parts = input.text.segments
    elif isinstance(input, TableInput):
        parts = tuple(f"{name}={value}" for name, value in zip(input.features, input.shown(), strict=True))
    start = say.on_one_line(" · ".join(parts))
    return start if len(start) <= _LONGEST_START else start[: _LONGEST_START - 1] + "…"
