"""Explanations and evaluations as HTML; all user text is escaped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from pertinent.inputs.image import ImageInput
from pertinent.inputs.table import TableInput
from pertinent.inputs.text import TextInput
from pertinent.report import facts as say
from pertinent.report.colours import DARK, LIGHT, shade, shares
from pertinent.report.html_bars import Axis, escaped, feature_bars
from pertinent.report.pictures import data_uri, heat_map, kept, original, resized
from pertinent.report.pieces import Piece, pieces
from pertinent.report.style import FRAGMENT
from pertinent.report.summary import Cell, summary
from pertinent.results.evaluation import Evaluation
from pertinent.results.explanation import Explanation, Explanations, Failure
from pertinent.types import Array

_TOP = 8
_TOP_COLUMNS = 20
_MOST_LISTED = 500
_LARGEST_PICTURE = 512


def fragment(explanation: Explanation) -> str:
    """One explanation with its own style, for notebooks and other pages."""
    return FRAGMENT + card(explanation)


def fragments(explanations: Explanations) -> str:
    """Several explanations with their style, and the failures."""
    return FRAGMENT + "".join(map(card, explanations)) + failure_list(explanations.failures)


def failure_list(failures: Sequence[Failure]) -> str:
    """The failures and their reasons; empty if there are none."""
    lines = "".join(f"<li>Input {f.index + 1}: {escaped(f.reason)}</li>" for f in failures)
    return f'<h2>{len(failures)} failed</h2><ul class="failures">{lines}</ul>' if failures else ""


def card(explanation: Explanation) -> str:
    """One explanation without style, for a page that has its own."""
    e = explanation
    return (
        f'<article class="pertinent">{_heading(e)}<div class="columns"><div>{"".join(_main(e))}</div>'
        f"<aside>{_prediction(e)}{_facts(e)}</aside></div></article>"
    )


def evaluation_table(evaluation: Evaluation) -> str:
    """Mean and confidence interval by method and metric, with its own style."""
    return FRAGMENT + evaluation_card(evaluation)


def evaluation_card(evaluation: Evaluation) -> str:
    """Mean and confidence interval by method and metric, without style."""
    found = summary(evaluation)
    axes = {
        metric: Axis.of([_bounds(cell) for (_, own), cell in found.cells.items() if own == metric])
        for metric in evaluation.better
    }
    head = "".join(
        f'<th scope="col">{escaped(metric)} <span title="{better} is better">{say.arrow(better)}</span></th>'
        for metric, better in evaluation.better.items()
    )
    rows = "".join(
        f'<tr><th scope="row" class="name">{escaped(method)}</th>'
        + "".join(_measured(found.cells.get((method, m)), axes[m]) for m in evaluation.better)
        + "</tr>"
        for method in evaluation.methods
    )
    notes = "".join(f'<p class="legend">{escaped(note)}.</p>' for note in found.notes)
    return (
        '<div class="pertinent"><div class="scroll"><table class="rows"><thead><tr>'
        f'<th scope="col">method</th>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
        f'<p class="legend">{escaped(found.caption)}. '
        f"↓ lower is better, ↑ higher is better; the best mean is bold.</p>{notes}</div>"
    )


def _measured(cell: Cell | None, axis: Axis) -> str:
    if cell is None:
        return "<td>–</td>"
    mean = f"<strong>{cell.text}</strong>" if cell.best else cell.text
    drawn = f'<span class="track">{axis.dot(cell.interval.mean, *_bounds(cell))}</span>'
    return f'<td>{mean} <span class="quiet">{cell.interval_text}</span>{drawn}</td>'


def _bounds(cell: Cell) -> tuple[float, float]:
    i = cell.interval
    return (i.low, i.high) if cell.has_bounds else (i.mean, i.mean)


def _heading(e: Explanation) -> str:
    predicted = say.predicted(e)
    title = f"{escaped(e.classes[predicted])} <span>{escaped(say.amount(e, predicted))}</span>"
    verb = "moves" if e.output.kind == "value" else "supports"
    line = f"What {verb} it, according to {escaped(e.method)}"
    if e.target != predicted:
        chance = escaped(say.amount(e, e.target))
        line = f"What {verb} <strong>{escaped(e.target_name)}</strong> ({chance}) instead, "
        line += f"according to {escaped(e.method)}"
    said = (*e.warnings, *e.notes)
    notes = "".join(f'<p class="note" role="note">⚠ {escaped(note)}</p>' for note in said)
    return f"<header><h3>{title}</h3><p>{line}</p></header>{notes}"


def _main(e: Explanation) -> Iterator[str]:
    top = _TOP
    if isinstance(e.input, TextInput):
        yield from _segments(e, e.input)
        yield _legend(e)
    elif isinstance(e.input, ImageInput):
        yield _pictures(e, e.input)
        yield _legend(e)
    elif isinstance(e.input, TableInput):
        top = _TOP_COLUMNS
    shown = say.strongest(e, top if len(e.features) > top else None)
    yield f"<h4>{'Features' if len(shown) == len(e.features) else 'Strongest features'}</h4>"
    yield feature_bars(e, shown)
    if len(shown) < len(e.features) <= _MOST_LISTED:
        yield f"<details><summary>All {len(e.features)} features</summary>"
        yield f"{feature_bars(e, e.ranking)}</details>"
    if e.chosen:
        yield _sets(e)
    if e.measures:
        yield _measures(e)


def _segments(e: Explanation, input: TextInput) -> Iterator[str]:
    """Each segment, its features shaded; `lang=""` marks the language as unknown."""
    inside = ["" for _ in input.text.segments]
    share, smallest = shares(e.scores), say.smallest_set(e)
    for piece in pieces(input):
        marked = bool(smallest[list(piece.features)].any())
        inside[piece.segment] += _piece(e, piece, share, marked=marked)
    for segment, content in enumerate(inside):
        fixed = "" if input.text.removable(segment) else ' fixed" title="fixed: never removed'
        yield f'<p class="text{fixed}" lang="" dir="auto">{content}</p>'


def _piece(e: Explanation, piece: Piece, share: Array, *, marked: bool) -> str:
    feature = piece.strongest(e)
    if feature is None:
        return escaped(piece.text)
    told = "; ".join(f"{say.score_text(e, i)} {say.error_text(e, i)}".strip() for i in piece.features)
    colours = "".join(
        f"--{name}:{shade(share[feature], surface)};" for name, surface in (("l", LIGHT), ("d", DARK))
    )
    style = f' style="{colours}"' if share[feature] else ""
    return f'<span class="w{" in" if marked else ""}"{style} title="{told}">{escaped(piece.text)}</span>'


def _legend(e: Explanation) -> str:
    if e.chosen:
        smallest = " · underlined: the smallest set" if isinstance(e.input, TextInput) else ""
        return f'<p class="legend">never chosen <span class="scale half"></span> in every set{smallest}</p>'
    target = escaped(e.target_name)
    support, against = say.directions(e)
    return (
        f'<p class="legend"><span>{against} {target}</span> <span class="scale"></span> '
        f"<span>{support} {target}</span></p>"
    )


def _pictures(e: Explanation, input: ImageInput) -> str:
    height, width = input.labels.shape
    best = ", ".join(f"{e.features[i]} {say.score_text(e, i)}" for i in e.ranking[:3].tolist())
    return (
        '<div class="pictures">'
        + _figure(original(input), f"The image, {width} × {height} pixels", "image")
        + _figure(heat_map(e), f"Heat map; the most important: {best}", "heat map")
        + "</div>"
    )


def _figure(picture: Array, alt: str, caption: str) -> str:
    picture = resized(picture, _LARGEST_PICTURE)
    coarse = ' class="coarse"' if max(picture.shape) < 200 else ""
    return (
        f'<figure><img{coarse} src="{data_uri(picture)}" alt="{escaped(alt)}">'
        f"<figcaption>{escaped(caption)}</figcaption></figure>"
    )


def _sets(e: Explanation) -> str:
    """Which features a search chose at each sparsity."""
    found = say.chosen_sets(e)
    if isinstance(e.input, ImageInput):
        figures = "".join(
            _figure(kept(e.input, s.mask), f"The {s.mask.sum()} features kept", s.sparsities) for s in found
        )
        return f'<h4>Best set at each sparsity</h4><div class="pictures small">{figures}</div>'
    rows = ""
    for s in found:
        names = ", ".join(escaped(say.on_one_line(e.features[i])) for i in np.flatnonzero(s.mask))
        rows += f'<tr><th scope="row" class="tight">{s.sparsities}</th><td lang="">{names}</td></tr>'
    return f'<h4>Best set at each sparsity</h4><table class="rows"><tbody>{rows}</tbody></table>'


def _measures(e: Explanation) -> str:
    """The measures, at each sparsity and on average."""
    found = say.measures(e)
    sparsities = sorted({s for m in found for s in m.values if s is not None})
    head = "".join(f'<th scope="col" class="number">{100 * s:g}%</th>' for s in sparsities)
    rows = ""
    for m in found:
        cells = [f"{m.values[s]:.3f}" if s in m.values else "" for s in sparsities]
        rows += (
            f'<tr><th scope="row">{escaped(m.name)} <span title="{m.better} is better">{m.arrow}</span></th>'
            + "".join(f'<td class="number">{cell}</td>' for cell in cells)
            + f'<td class="number"><strong>{m.mean:.3f}</strong></td></tr>'
        )
    return (
        '<h4>Measured</h4><div class="scroll"><table class="rows"><thead><tr><th scope="col"></th>'
        f'{head}<th scope="col" class="number">mean</th></tr></thead><tbody>{rows}</tbody></table></div>'
        '<p class="legend">By share of features that count as chosen. '
        "↓ lower is better, ↑ higher is better.</p>"
    )


def _prediction(e: Explanation) -> str:
    axis = Axis(0.0, 1.0)
    if e.output.kind == "value":
        axis = Axis.of((float(e.prediction[i]), float(e.prediction[i])) for i in say.listed_classes(e))
    rows = ""
    for i in say.listed_classes(e):
        name = escaped(e.classes[i])
        name = f"<strong>{name}</strong>" if i == e.target else name
        rows += (
            f'<tr><th scope="row" class="name tight" title="{escaped(e.classes[i])}">{name}</th>'
            f'<td><span class="track">{axis.bar(float(e.prediction[i]), "plain")}</span></td>'
            f'<td class="number tight">{escaped(say.amount(e, i))}</td></tr>'
        )
    left = len(e.classes) - len(say.listed_classes(e))
    others = {"class": "less likely classes", "label": "less likely labels", "value": "other values"}
    more = f'<p class="legend">and {left:,} {others[e.output.kind]}</p>' if left else ""
    return f"<h4>Prediction</h4><table><tbody>{rows}</tbody></table>{more}"


def _facts(e: Explanation) -> str:
    rows = "".join(
        f"<dt>{escaped(label)}</dt><dd>{escaped(value)}</dd>" for label, value in say.facts(e).items()
    )
    return f"<h4>How it was found</h4><dl>{rows}</dl>"
