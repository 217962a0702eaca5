"""Evaluations, attacks and diagnostics as HTML tables."""

from __future__ import annotations

from pertinent.diagnostics.base import Diagnostic
from pertinent.rendering import tables as contents
from pertinent.rendering.html import Axis, Markup, fragment, from_template
from pertinent.rendering.html.svg import curves_card
from pertinent.rendering.plot_data import curves_by_sparsity
from pertinent.results.attack_results import Attacks
from pertinent.results.evaluation import Evaluation


def show_evaluation(evaluation: Evaluation) -> str:
    """Mean and confidence interval by method and metric, with its own style."""
    return fragment(evaluation_card(evaluation))


def evaluation_card(evaluation: Evaluation) -> Markup:
    """Mean and confidence interval by method and metric, and curves by sparsity; without style."""
    found = contents.summary(evaluation)
    axes = {
        metric: Axis.from_ranges(cell.ends for (_, own), cell in found.cells.items() if own == metric)
        for metric in evaluation.better
    }
    table = from_template(
        "evaluation.html", evaluation=evaluation, summary=found, axes=axes, reading=contents.READING
    )
    curves = curves_card(curves_by_sparsity(evaluation), evaluation.better)
    return (
        table + Markup('<div class="pertinent"><h4>By share of features</h4>{}</div>').format(curves)
        if curves
        else table
    )


def show_attacks(attacks: Attacks) -> str:
    """A line for each set of each input."""
    return fragment(
        from_template(
            "attacks.html",
            head=contents.attack_head(attacks),
            lines=contents.attack_lines(attacks),
            notes=contents.attack_notes(attacks),
        )
    )


def show_diagnostic(diagnostic: Diagnostic) -> str:
    """The question, the answer, the table, and how to read it."""
    notes = [*contents.diagnostic_warnings(diagnostic), *contents.diagnostic_notes(diagnostic)]
    return fragment(from_template("diagnostic.html", content=diagnostic.table(), notes=notes))
