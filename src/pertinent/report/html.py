"""Explanations, failures and evaluations as fragments of HTML, for notebooks and pages."""

from __future__ import annotations

from collections.abc import Sequence

from pertinent.report import facts as say
from pertinent.report.card import card
from pertinent.report.failures import failure_lines, named
from pertinent.report.html_bars import Axis
from pertinent.report.markup import Markup
from pertinent.report.numbering import by_input, name_of
from pertinent.report.style import FRAGMENT
from pertinent.report.summary import Cell, summary
from pertinent.results.evaluation import Evaluation
from pertinent.results.explanation import Explanation, Explanations
from pertinent.results.failures import Failure

_FIRST = 10
"""How many inputs a notebook shows; a report shows all."""

_EVALUATION = Markup(
    '<div class="pertinent"><div class="scroll"><table class="rows"><thead><tr>'
    '<th scope="col">method</th>{}</tr></thead><tbody>{}</tbody></table></div>'
    '<p class="legend">{}. ↓ lower is better, ↑ higher is better; the best mean is bold.</p>{}</div>'
)
_METRIC = Markup('<th scope="col">{} <span title="{} is better">{}</span></th>')
_METHOD = Markup('<tr><th scope="row" class="name">{}</th>{}</tr>')
_MEASURED = Markup('<td>{} <span class="quiet">{}</span><span class="track">{}</span></td>')


def fragment(explanation: Explanation) -> str:
    """One explanation with its own style, for notebooks and other pages."""
    name = "" if explanation.id is None else name_of(explanation)
    return str(FRAGMENT + card(explanation, name))


def fragments(explanations: Explanations) -> str:
    """The first explanations with their style, and the failures."""
    inputs = by_input(explanations)
    cards = [card(e, found.title) for found in inputs[:_FIRST] for e in found.explanations]
    more = Markup()
    if len(inputs) > _FIRST:
        left = len(inputs) - _FIRST
        more = Markup("<p>And {} more inputs: <code>pertinent.save_report</code> shows all.</p>").format(left)
    return str(FRAGMENT + Markup().join(cards) + more + failure_list(explanations.failures, _FIRST))


def failure_list(failures: Sequence[Failure], most: int | None = None) -> Markup:
    """The failures and at `most` so many of their reasons; empty if there are none."""
    if not failures:
        return Markup()
    lines = Markup().join(map(Markup("<li>{}</li>").format, failure_lines(named(failures), most)))
    return Markup('<div class="pertinent"><h3>{} failed</h3><ul class="failures">{}</ul></div>').format(
        len(failures), lines
    )


def evaluation_table(evaluation: Evaluation) -> str:
    """Mean and confidence interval by method and metric, with its own style."""
    return str(FRAGMENT + evaluation_card(evaluation))


def evaluation_card(evaluation: Evaluation) -> Markup:
    """Mean and confidence interval by method and metric, without style."""
    found = summary(evaluation)
    axes = {
        metric: Axis.of([_bounds(cell) for (_, own), cell in found.cells.items() if own == metric])
        for metric in evaluation.better
    }
    head = [_METRIC.format(metric, better, say.arrow(better)) for metric, better in evaluation.better.items()]
    rows = [
        _METHOD.format(
            method,
            Markup().join(_measured(found.cells.get((method, m)), axes[m]) for m in evaluation.better),
        )
        for method in evaluation.methods
    ]
    notes = [Markup('<p class="legend">{}.</p>').format(note) for note in found.notes]
    return _EVALUATION.format(Markup().join(head), Markup().join(rows), found.caption, Markup().join(notes))


def _measured(cell: Cell | None, axis: Axis) -> Markup:
    if cell is None:
        return Markup("<td>–</td>")
    mean = Markup("<strong>{}</strong>").format(cell.text) if cell.best else cell.text
    return _MEASURED.format(mean, cell.interval_text, axis.dot(cell.interval.mean, *_bounds(cell)))


def _bounds(cell: Cell) -> tuple[float, float]:
    i = cell.interval
    return (i.low, i.high) if cell.has_bounds else (i.mean, i.mean)
