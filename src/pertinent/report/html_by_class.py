"""Several classes side by side as HTML: a fragment of its own, or beneath the card of an explanation."""

from __future__ import annotations

from collections.abc import Iterator

from pertinent.inputs.image import ImageInput
from pertinent.inputs.text import TextInput
from pertinent.report import facts as say
from pertinent.report.by_class import Panel, directions, is_clipped, largest, panels, set_text, title
from pertinent.report.html_bars import Axis, ends, feature_bars
from pertinent.report.html_input import figure, image, segments
from pertinent.report.markup import Markup
from pertinent.report.numbering import name_of
from pertinent.report.pictures import kept, painted, resized
from pertinent.report.style import FRAGMENT
from pertinent.results.explanation import ByClass, Explanation

_LARGEST_PICTURE = 192

_ARTICLE = Markup(
    '<article class="pertinent"><header><h3>{} <span>{}</span></h3><p>{}{}, according to {}</p></header>'
    "{}{}</article>"
)
_DETAILS = Markup("<details><summary>{}</summary>{}</details>")
_NOTE = Markup('<p class="note" role="note">⚠ {}</p>')
_GRID = Markup('<div class="classes">{}</div>{}')
_PANEL = Markup('<div><h4 class="named">{} <span class="quiet">{}</span></h4>{}</div>')
_LEGEND = Markup(
    '<p class="legend"><span>{}</span> <span class="scale"></span> <span>{}</span> '
    "<span><u>underlined</u>: {}</span>{}</p>"
)


def fragment(found: ByClass) -> str:
    """The classes side by side with their own style, for notebooks."""
    e = found[0]
    predicted = say.predicted(e)
    name = "" if e.id is None else f"{name_of(e)} · "
    notes = Markup().join(map(_NOTE.format, (*e.warnings, *e.notes)))
    if isinstance(e.input, ImageInput):
        notes += Markup('<div class="pictures">{}</div>').format(image(e.input))
    article = _ARTICLE.format(
        e.classes[predicted],
        say.amount(e, predicted),
        name,
        _title(found),
        e.method,
        notes,
        _grid(found),
    )
    return str(FRAGMENT + article)


def disclosure(e: Explanation) -> Markup:
    """The classes side by side, hidden until they are asked for."""
    found = e.by_class()
    return _DETAILS.format(_title(found), _grid(found))


def _title(found: ByClass) -> str:
    return title(found).capitalize()


def _grid(found: ByClass) -> Markup:
    every = panels(found)
    axis = Axis.of(ends(p.explanation, i) for p in every for i in p.shown.tolist())
    drawn = [_PANEL.format(p.name, p.amount, Markup().join(_inside(p, axis))) for p in every]
    support, against = directions(found)
    clipped = Markup(" <span>clipped at ±{:.3g}</span>").format(largest(found)) if is_clipped(found) else ""
    return _GRID.format(Markup().join(drawn), _LEGEND.format(against, support, set_text(found), clipped))


def _inside(panel: Panel, axis: Axis) -> Iterator[Markup]:
    e = panel.explanation
    nothing = say.says_nothing(e)
    if nothing is not None:
        yield Markup("<p><strong>{}</strong></p>").format(nothing)
    if isinstance(e.input, TextInput):
        yield from segments(e, e.input, panel.share, panel.chosen)
    elif isinstance(e.input, ImageInput):
        heat = resized(painted(e.input, panel.share[e.input.labels]), _LARGEST_PICTURE)
        best = ", ".join(f"{e.features[i]} {say.score_text(e, i)}" for i in e.ranking[:3].tolist())
        top = resized(kept(e.input, panel.chosen), _LARGEST_PICTURE)
        figures = (
            figure(heat, f"Heat map for {panel.name}; the most important: {best}", "heat map"),
            figure(top, f"The top features for {panel.name}", f"the top {panel.chosen.sum():,}"),
        )
        yield Markup('<div class="pictures small">{}</div>').format(Markup().join(figures))
    yield feature_bars(e, panel.shown, axis=axis, marked=panel.chosen)
