"""One self-contained HTML page: no network, and no script but that of its index."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any
from zlib import compress

import numpy as np

from pertinent.config.serialization import json_text
from pertinent.config.settings import Share, checked
from pertinent.errors import InputError
from pertinent.files import write_text
from pertinent.number_format import measure_text
from pertinent.rendering import wording as say
from pertinent.rendering.by_input import Explained, by_input
from pertinent.rendering.colours import Look
from pertinent.rendering.drawings import drawing_of
from pertinent.rendering.html import Markup, from_template, own_file, style
from pertinent.rendering.html.explanation import card, failure_list
from pertinent.rendering.html.importance import importance_card
from pertinent.rendering.html.svg import swarm_card
from pertinent.rendering.html.tables import evaluation_card
from pertinent.results.evaluation import Evaluation
from pertinent.results.explanation import Explanation, Explanations
from pertinent.results.failures import Failure


@checked
def save_report(
    explanations: Any,
    path: str | Path,
    *,
    title: str = "pertinent report",
    evaluation: Evaluation | None = None,
    by_class: bool = False,
    groups: str | Sequence[Any] | None = None,
    opacity: Share | None = None,
) -> Path:
    """Write explanations to one self-contained HTML page, and return its path.

    Parameters
    ----------
    explanations
        One, many, or an evaluation, whose explanations are used.
    path
        The file, which is written atomically.
    title
        The heading of the page.
    evaluation
        Its table comes first, and the explanations that it measured show their metrics.
    by_class
        Add the scores for the other classes to each explanation whose method gives them.
    groups
        Compare groups of inputs in the importance of features, as in `Explanations.importance`.
    opacity
        The opacity of heat maps over their images; 0.75 by default.

    Examples
    --------
    >>> import pertinent, tempfile
    >>> model = pertinent.wrap(lambda texts: [[0.9, 0.1] if "bad" in t else [0.2, 0.8] for t in texts])
    >>> e = pertinent.explain(model, "not bad at all", method="leave-one-out")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_report(e, f"{folder}/report.html").name
    'report.html'
    """
    page = report(
        explanations, title=title, evaluation=evaluation, by_class=by_class, groups=groups, opacity=opacity
    )
    write_text(Path(path), page)
    return Path(path)


def report(
    explanations: Any,
    *,
    title: str = "pertinent report",
    evaluation: Evaluation | None = None,
    by_class: bool = False,
    groups: str | Sequence[Any] | None = None,
    opacity: float | None = None,
) -> str:
    """Return the page that `save_report` writes."""
    items = explanations
    failures: list[Failure] = []
    if isinstance(items, Evaluation):
        evaluation, items = items, items.explanations
    if isinstance(items, Explanations):
        failures += items.failures
    every = [items] if isinstance(items, Explanation) or not isinstance(items, Iterable) else list(items)
    if not all(isinstance(e, Explanation) for e in every):
        raise InputError("A report is made of explanations, or of an evaluation.")
    if evaluation is not None:
        failures += [failure for failure in evaluation.failures if failure not in failures]
        every = _with_measures(every, evaluation)
    if by_class and every and all(e.class_scores is None for e in every):
        every[0].by_class()  # raises the error that says so
    inputs = by_input(every)
    many = len(inputs) > _MOST_UNPACKED
    look = Look(opacity=opacity, compact=many)
    script = Markup(own_file("overlay.js") + own_file("report.js"))
    return str(
        from_template(
            "page.html",
            title=title,
            style=style("page.css"),
            script=script if len(inputs) > 1 or any(e.input.is_picture for e in every) else "",
            script_digest=b64encode(sha256(script.encode()).digest()).decode(),
            inputs=inputs,
            count=_count(inputs),
            summary=evaluation_card(evaluation) if evaluation is not None and evaluation.rows else "",
            importance=_importance(every, groups),
            failures=failure_list(failures),
            sections=((found, _section(found, look, by_class=by_class)) for found in inputs),
            pack=_packed if many else None,
            words=_packed(json_text([_search_text(found) for found in inputs])) if many else "",
            index=_index(inputs) if len(inputs) > 1 else None,
            together=any(len(found.explanations) > 1 for found in inputs),
        )
    )


def _importance(explanations: Sequence[Explanation], groups: str | Sequence[Any] | None) -> Markup:
    """Which features matter over many texts or rows; nothing for few, for images and for several methods."""
    is_drawn = any(e.input.is_picture for e in explanations)
    alike = len({(e.method, e.input.kind) for e in explanations}) == 1
    if groups is None and (len(explanations) < _MANY or is_drawn or not alike):
        return Markup()
    found = Explanations(explanations).importance(groups, top=15)
    if not found.is_signed:
        return importance_card(found)
    return importance_card(found) + from_template(
        "folded.html", name="Every score", content=swarm_card(found)
    )


def _section(found: Explained, look: Look, *, by_class: bool) -> Markup:
    """The explanations of one input side by side; an image that several explain is shown once."""
    input, together = found.explanations[0].input, len(found.explanations) > 1
    given = drawing_of(input).html_input(input) if together and not look.compact else Markup()
    alone = not together and not look.compact
    cards = [card(e, look=look, with_input=alone, by_class=by_class) for e in found.explanations]
    return from_template("section.html", found=found, given=given, cards=cards)


def _packed(text: str) -> str:
    """A text compressed (zlib) and as base64, which the script of the page unpacks."""
    return b64encode(compress(text.encode(), 9)).decode()


def _search_text(found: Explained) -> str:
    """Return the text that the search of a page looks through, besides the index."""
    input = found.explanations[0].input
    return input.search_text if input.has_words else ""


def _count(inputs: Sequence[Explained]) -> str:
    explanations = sum(len(found.explanations) for found in inputs)
    return (
        f"{explanations:,} explanation{'' if explanations == 1 else 's'} "
        f"of {len(inputs):,} input{'' if len(inputs) == 1 else 's'}"
    )


def _with_measures(explanations: list[Explanation], evaluation: Evaluation) -> list[Explanation]:
    """The explanations, each with its measures if the evaluation has them."""

    def key(e: Explanation) -> tuple[object, ...]:
        return e.method, repr(e.settings), e.removal, e.input.fingerprint, e.target, e.seed

    measured = {key(e): e for e in evaluation.explanations}
    return [e if e.measures else measured.get(key(e), e) for e in explanations]


_MANY = 20
"""From how many explanations on a report says which features matter."""

_MOST_UNPACKED = 100
"""A report of more inputs than this is packed: what is not shown is compressed."""

_MEASURE = "number more"
_MOST_MEASURES = 4
"""How many columns of measures an index shows without being asked."""


@dataclass(frozen=True)
class _IndexCell:
    """What a cell of the index shows, by what it is sorted, and its class."""

    shown: str = ""
    value: object = ""
    kind: str = ""


def _index(inputs: Sequence[Explained]) -> dict[str, Any]:
    """The columns of the index, and a row for each input; columns that are empty throughout are left out.

    Of many columns of measures none is shown at first; `more` says what they are.
    """
    methods = {e.method for found in inputs for e in found.explanations}
    rows = [dict(_cells(found, several_methods=len(methods) > 1)) for found in inputs]
    if len(methods) > 1 and len({row["method"] for row in rows}) == 1:
        rows = [{column: cell for column, cell in row.items() if column != "method"} for row in rows]
    columns = {column: cell.kind for row in rows for column, cell in row.items() if cell.shown}
    measures = [column for column, kind in columns.items() if kind == _MEASURE]
    if len(measures) <= _MOST_MEASURES:
        columns |= dict.fromkeys(measures, "number")
    predicted = [_predicted(found) for found in inputs]
    cells = [[(row.get(column, _IndexCell()), kind) for column, kind in columns.items()] for row in rows]
    return {
        "columns": columns,
        "more": f"{len(measures)} columns of measures" if len(measures) > _MOST_MEASURES else "",
        "predictions": sorted(set(predicted)),
        "rows": list(zip(predicted, cells, strict=True)),
    }


def _cells(found: Explained, *, several_methods: bool) -> Iterator[tuple[str, _IndexCell]]:
    first = found.explanations[0]
    yield "id", _IndexCell(first.id or "", first.id or "")
    beginning = drawing_of(first.input).beginning(first.input)
    yield "begins", _IndexCell(beginning, "" if isinstance(beginning, Markup) else beginning, "start")
    yield "prediction", _IndexCell(_predicted(found), _predicted(found))
    amount = "value" if first.output.kind == "value" else "probability"
    predicted = say.predicted(first)
    yield (
        amount,
        _IndexCell(say.amount(first, predicted), float(first.prediction.values[predicted]), "number"),
    )
    targets = ", ".join(
        dict.fromkeys(e.target_name for e in found.explanations if e.target != say.predicted(e))
    )
    yield "explained instead", _IndexCell(targets, targets)
    methods = ", ".join(dict.fromkeys(e.method for e in found.explanations))
    yield "method", _IndexCell(methods, methods)
    measured: dict[str, list[float]] = {}
    for e in found.explanations:
        for m in say.measures(e):
            column = f"{m.name} {m.arrow} {e.method if several_methods else ''}"
            measured.setdefault(" ".join(column.split()), []).append(m.mean)
    for column, values in measured.items():
        yield column, _IndexCell(measure_text(float(np.mean(values))), float(np.mean(values)), _MEASURE)


def _predicted(found: Explained) -> str:
    first = found.explanations[0]
    return first.classes[say.predicted(first)]
