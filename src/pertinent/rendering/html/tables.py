"""Tables of results as HTML."""

from __future__ import annotations

from typing import Any

from pertinent.rendering.html import Axis, Markup, fragment, from_template
from pertinent.rendering.html.svg import curves_card
from pertinent.rendering.plot_data import curves_by_sparsity
from pertinent.rendering.tables import Table, tables_of
from pertinent.results.evaluation import Evaluation


def show(result: Any) -> str:
    """Return the tables of a result, for notebooks and other pages."""
    return fragment(evaluation_card(result) if isinstance(result, Evaluation) else draw(tables_of(result)[0]))


def draw(table: Table) -> Markup:
    """Return a table without style; the intervals of a column share one axis."""
    axes = []
    for i in range(len(table.columns)):
        ends = [row[i].ends for row in table.rows if row[i].interval is not None]
        axes.append(Axis.from_ranges(ends) if ends else None)
    return from_template("table.html", table=table, axes=axes)


def evaluation_card(evaluation: Evaluation) -> Markup:
    """Return the table of an evaluation and its curves by sparsity, without style."""
    (table,), curves = tables_of(evaluation), curves_card(curves_by_sparsity(evaluation), evaluation.better)
    if not curves:
        return draw(table)
    return draw(table) + Markup('<div class="pertinent"><h4>By share of features</h4>{}</div>').format(curves)
