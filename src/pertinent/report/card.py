"""One explanation as HTML. Text becomes part of a page only through `Markup.format`, which escapes it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pertinent.inputs.image import ImageInput
from pertinent.inputs.table import TableInput
from pertinent.report import facts as say
from pertinent.report.html_bars import Axis, feature_bars
from pertinent.report.html_by_class import disclosure
from pertinent.report.html_input import coloured_input, figure
from pertinent.report.markup import Markup
from pertinent.report.pictures import kept
from pertinent.results.explanation import Explanation

_TOP = 8
_TOP_COLUMNS = 20
_MOST_LISTED = 500

_CARD = Markup(
    '<article class="pertinent">{}<div class="columns"><div>{}</div><aside>{}{}</aside></div>{}</article>'
)
_HEADER = Markup("<header><h3>{} <span>{}</span></h3><p>{}{}{}</p></header>{}")
_NOTE = Markup('<p class="note" role="note">⚠ {}</p>')
_MEASURES = Markup(
    '<h4>Measured</h4><div class="scroll"><table class="rows"><thead><tr><th scope="col"></th>{}'
    '<th scope="col" class="number">mean</th></tr></thead><tbody>{}</tbody></table></div>'
    '<p class="legend">By share of features that count as chosen. '
    "↓ lower is better, ↑ higher is better.</p>"
)
_MEASURE = Markup(
    '<tr><th scope="row">{} <span title="{} is better">{}</span></th>{}'
    '<td class="number"><strong>{:.3f}</strong></td></tr>'
)
_CLASS = Markup(
    '<tr><th scope="row" class="name tight" title="{}">{}</th><td><span class="track">{}</span></td>'
    '<td class="number tight">{}</td></tr>'
)
_LESS_LIKELY = {"class": "less likely classes", "label": "less likely labels", "value": "other values"}


def card(
    explanation: Explanation, name: str = "", *, with_image: bool = True, by_class: bool = False
) -> Markup:
    """One explanation without style, for a page that has its own; `name` says of which input it is.

    `by_class` adds the scores for other classes, where the method gives them.
    """
    e = explanation
    main = Markup().join(_main(e, with_image=with_image))
    several = e.class_scores is not None and len(e.classes) > 1
    others = disclosure(e) if by_class and several else ""
    return _CARD.format(_heading(e, name), main, _prediction(e), _facts(e), others)


def _heading(e: Explanation, name: str) -> Markup:
    predicted = say.predicted(e)
    return _HEADER.format(
        e.classes[predicted],
        say.amount(e, predicted),
        name,
        " · " if name else "",
        _subject(e),
        Markup().join(map(_NOTE.format, (*e.warnings, *e.notes))),
    )


def _subject(e: Explanation) -> Markup:
    """What the card shows, or that there is nothing to be shown."""
    nothing = say.says_nothing(e)
    if nothing is not None:
        return Markup("<strong>{}</strong> Explained: {}, by {}").format(nothing, e.target_name, e.method)
    if e.pertinence is not None:
        return Markup("What would have to change for <strong>{}</strong>, according to {}").format(
            say.aim(e), e.method
        )
    if e.meaning == "attack":
        return Markup("What an attack needs, according to {}").format(e.method)
    verb = "moves" if e.output.kind == "value" else "matters for" if e.meaning == "magnitude" else "supports"
    if e.target == say.predicted(e):
        return Markup("What {} it, according to {}").format(verb, e.method)
    return Markup("What {} <strong>{}</strong> ({}) instead, according to {}").format(
        verb, e.target_name, say.amount(e, e.target), e.method
    )


def _main(e: Explanation, *, with_image: bool) -> Iterator[Markup]:
    yield from coloured_input(e, with_image=with_image)
    top = _TOP_COLUMNS if isinstance(e.input, TableInput) else _TOP
    shown = say.strongest(e, top if len(e.features) > top else None)
    yield Markup("<h4>{}</h4>").format("Features" if len(shown) == len(e.features) else "Strongest features")
    yield feature_bars(e, shown)
    if len(shown) < len(e.features) <= _MOST_LISTED:
        yield Markup("<details><summary>All {} features</summary>{}</details>").format(
            len(e.features), feature_bars(e, e.ranking)
        )
    if e.chosen:
        yield _sets(e)
    if e.measures:
        yield _measures(e)


def _sets(e: Explanation) -> Markup:
    """Which features a search chose at each sparsity."""
    heading = Markup("<h4>Best set at each sparsity</h4>")
    found = say.chosen_sets(e)
    if isinstance(e.input, ImageInput):
        figures = [
            figure(kept(e.input, s.mask), f"The {s.mask.sum()} features kept", s.sparsities) for s in found
        ]
        return heading + Markup('<div class="pictures small">{}</div>').format(Markup().join(figures))
    row = Markup('<tr><th scope="row" class="tight">{}</th><td lang="">{}</td></tr>')
    rows = [
        row.format(s.sparsities, " · ".join(say.on_one_line(e.features[i]) for i in np.flatnonzero(s.mask)))
        for s in found
    ]
    return heading + Markup('<table class="rows"><tbody>{}</tbody></table>').format(Markup().join(rows))


def _measures(e: Explanation) -> Markup:
    """The measures, at each sparsity and on average."""
    found = say.measures(e)
    sparsities = sorted({s for m in found for s in m.values if s is not None})
    head = Markup('<th scope="col" class="number">{:g}%</th>')
    cell = Markup('<td class="number">{}</td>')
    rows = [
        _MEASURE.format(
            m.name,
            m.better,
            m.arrow,
            Markup().join(cell.format(f"{m.values[s]:.3f}" if s in m.values else "") for s in sparsities),
            m.mean,
        )
        for m in found
    ]
    return _MEASURES.format(Markup().join(head.format(100 * s) for s in sparsities), Markup().join(rows))


def _prediction(e: Explanation) -> Markup:
    listed = say.listed_classes(e)
    axis = Axis(0.0, 1.0)
    if e.output.kind == "value":
        axis = Axis.of((float(e.prediction[i]), float(e.prediction[i])) for i in listed)
    rows = [
        _CLASS.format(
            e.classes[i],
            Markup("<strong>{}</strong>").format(e.classes[i]) if i == e.target else e.classes[i],
            axis.bar(float(e.prediction[i]), "plain"),
            say.amount(e, i),
        )
        for i in listed
    ]
    left = len(e.classes) - len(listed)
    more = Markup('<p class="legend">and {:,} {}</p>').format(left, _LESS_LIKELY[e.output.kind])
    table = Markup("<h4>Prediction</h4><table><tbody>{}</tbody></table>").format(Markup().join(rows))
    return table + more if left else table


def _facts(e: Explanation) -> Markup:
    row = Markup("<dt>{}</dt><dd>{}</dd>")
    rows = Markup().join(row.format(label, value) for label, value in say.facts(e).items())
    return Markup("<h4>How it was found</h4><dl>{}</dl>").format(rows)
