"""HTML for one or several explanations, and for several classes side by side."""

from __future__ import annotations

from collections.abc import Sequence

from pertinent.array_types import Floats
from pertinent.rendering import pairs, panels
from pertinent.rendering import wording as say
from pertinent.rendering.by_input import by_input, failure_lines, name_of, named
from pertinent.rendering.colours import Look
from pertinent.rendering.drawings import drawing_of
from pertinent.rendering.html import Axis, Markup, ends, fragment, from_template
from pertinent.rendering.html.svg import curves_card, waterfall
from pertinent.rendering.panels import Panel
from pertinent.rendering.plot_data import curves_of
from pertinent.results.explanation import ByClass, Explanation, Explanations
from pertinent.results.failures import Failure

_FIRST = 10
"""Number of inputs shown in a notebook; a report shows all."""

_TOP, _TOP_LISTED = 8, 20
_MOST_LISTED = 500


def show(explanation: Explanation) -> str:
    """Return one explanation, for notebooks and other pages."""
    return fragment(card(explanation, "" if explanation.id is None else name_of(explanation)))


def show_all(explanations: Explanations) -> str:
    """Return the explanations of the first inputs, and the failures."""
    inputs = by_input(explanations)
    cards = [card(e, explained.title) for explained in inputs[:_FIRST] for e in explained.explanations]
    left = from_template("more.html", left=len(inputs) - _FIRST)
    return fragment(*cards, left, failure_list(explanations.failures, _FIRST))


def show_by_class(classes: ByClass) -> str:
    """Return the explanations of several classes side by side."""
    e = classes[0]
    return fragment(
        from_template(
            "by_class.html",
            e=e,
            name="" if e.id is None else name_of(e),
            original=drawing_of(e.input).html_input(e.input),
            classes=_classes(classes),
        )
    )


def card(
    e: Explanation,
    name: str = "",
    *,
    look: Look | None = None,
    with_input: bool = True,
    by_class: bool = False,
    share: Floats | None = None,
    is_begun: bool = True,
) -> Markup:
    """Return one explanation without style, titled with the `name` of its input.

    `with_input` includes the original image. `by_class` adds the scores for the other classes, if the method
    has them. `share` replaces the feature colours, from −1 to 1. Before an explanation has scores, only the
    input and its prediction are shown.
    """
    drawing, n = drawing_of(e.input), len(e.features)
    top = _TOP_LISTED if drawing.lists_features else _TOP
    panel = panels.panel(e, top if n > top else None, look, share)
    several = by_class and e.class_scores is not None and len(e.classes) > 1
    return from_template(
        "explanation.html",
        e=e,
        name=name,
        panel=panel,
        drawing=drawing,
        drawn=drawing.html(panel),
        original=drawing.html_input(e.input) if with_input else "",
        sets=[(s, drawing.html_set(e.input, s.mask, s.sparsities)) for s in say.chosen_sets(e)],
        pairs=_pairs(panel),
        waterfall=waterfall(e),
        clipping=panels.clipping(e),
        lists_all=len(panel.shown) < n <= _MOST_LISTED and not panel.look.compact,
        prediction_axis=prediction_axis(e),
        choices=columns_to_choose(e) if panel.look.interactive else (),
        interactive=panel.look.interactive,
        curves=curves_card(curves_of(e), e.better) if panel.look.interactive else "",
        is_begun=is_begun,
        classes=_classes(e.by_class(), look) if several else None,
    )


def prediction_axis(e: Explanation, *more: Floats) -> Axis:
    """Return the axis of the predictions: [0, 1], or a range that covers the values and `more`."""
    if e.output.kind != "value":
        return Axis()
    rows = (e.prediction.values, *more)
    return Axis.from_ranges((float(row[i]),) * 2 for row in rows for i in say.listed_classes(e))


def columns_to_choose(e: Explanation) -> list[int]:
    """Return the columns with scores; empty if there is only one."""
    if e.class_scores is None or len(e.classes) == 1:
        return []
    return list(drawing_of(e.input).column_shares(e)) or say.listed_classes(e)


def _pairs(panel: Panel) -> Markup:
    """Return the strongest pairs of features; empty if the method does not score pairs."""
    e = panel.explanation
    if e.interactions is None:
        return Markup()
    strongest = pairs.shown_pairs(e).tolist()
    values = [(float(e.interactions[i, j]), pairs.error_of(e, i, j) or 0.0) for i, j in strongest]
    return from_template(
        "pairs.html",
        e=e,
        strongest=strongest,
        drawn=drawing_of(e.input).html_pairs(panel) if strongest else Markup(),
        axis=Axis.from_ranges((value - error, value + error) for value, error in values),
        pairs=pairs,
        triples=pairs.shown_triples(e),
    )


def failure_list(failures: Sequence[Failure], most: int | None = None) -> Markup:
    """Return the number of failures and up to `most` reasons; empty if there are no failures."""
    lines = failure_lines(named(failures), most)
    return from_template("failures.html", n=len(failures), lines=lines) if failures else Markup()


def _classes(classes: ByClass, look: Look | None = None) -> dict[str, object]:
    """Return the context of the template for several classes."""
    class_panels = panels.class_panels(classes, look=look)
    return {
        "title": panels.title(classes).capitalize(),
        "drawn": [(p, drawing_of(p.explanation.input).html(p, small=True)) for p in class_panels],
        "axis": Axis.from_ranges(end for p in class_panels for end in ends(p.explanation, p.shown.tolist())),
        "directions": panels.directions(classes),
        "set_text": panels.set_text(classes),
        "clipped_at": panels.largest(classes) if panels.is_clipped(classes) else None,
    }
