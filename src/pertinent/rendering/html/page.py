"""Self-contained HTML report that needs no network access."""

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
from pertinent.rendering.html import Markup, from_template, read_asset, style
from pertinent.rendering.html.explanation import card, failure_list
from pertinent.rendering.html.hops import hops_card
from pertinent.rendering.html.importance import importance_card
from pertinent.rendering.html.svg import swarm_card
from pertinent.rendering.html.tables import evaluation_card
from pertinent.results.evaluation import Evaluation
from pertinent.results.explanation import Explanation, Explanations
from pertinent.results.failures import Failure
from pertinent.results.hops import Hops


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
    """Write explanations to a self-contained HTML page and return its path.

    Parameters
    ----------
    explanations
        One or several explanations, or an evaluation or `Hops` that contain them.
    path
        HTML file to write atomically.
    title
        Heading of the page.
    evaluation
        An evaluation of the explanations. Its table comes first, and each explanation shows its metrics.
    by_class
        Add the scores for the other classes to each explanation that has them.
    groups
        Groups of inputs to compare by feature importance, as in `Explanations.importance`.
    opacity
        Opacity of heat maps over their images; by default 0.75.

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
    summary = Markup()
    if isinstance(items, Evaluation):
        evaluation, items = items, items.explanations
    if isinstance(items, Hops):
        summary, items = hops_card(items), items.explanations
    if isinstance(items, Explanations):
        failures += items.failures
    every = [items] if isinstance(items, Explanation) or not isinstance(items, Iterable) else list(items)
    if not all(isinstance(e, Explanation) for e in every):
        raise InputError("`explanations` must be one or several explanations, an evaluation or hops.")
    if evaluation is not None:
        failures += [failure for failure in evaluation.failures if failure not in failures]
        every = _with_measures(every, evaluation)
    if by_class and every and all(e.class_scores is None for e in every):
        every[0].by_class()  # raises a SettingError
    inputs = by_input(every)
    many = len(inputs) > _MOST_UNPACKED
    look = Look(opacity=opacity, compact=many)
    script = Markup(read_asset("overlay.js") + read_asset("report.js"))
    return str(
        from_template(
            "page.html",
            title=title,
            style=style("page.css"),
            script=script if len(inputs) > 1 or any(e.input.is_picture for e in every) else "",
            script_digest=b64encode(sha256(script.encode()).digest()).decode(),
            inputs=inputs,
            count=_count(inputs),
            summary=evaluation_card(evaluation) if evaluation is not None and evaluation.rows else summary,
            importance=_importance(every, groups),
            failures=failure_list(failures),
            sections=((i, _section(i, look, by_class=by_class)) for i in inputs),
            pack=_pack if many else None,
            words=_pack(json_text([_search_text(i) for i in inputs])) if many else "",
            index=_index(inputs) if len(inputs) > 1 else None,
            together=any(len(i.explanations) > 1 for i in inputs),
        )
    )


def _importance(explanations: Sequence[Explanation], groups: str | Sequence[Any] | None) -> Markup:
    """Return the feature importance over many texts or rows; empty for few, images or several methods."""
    has_pictures = any(e.input.is_picture for e in explanations)
    alike = len({(e.method, e.input.kind) for e in explanations}) == 1
    if groups is None and (len(explanations) < _MANY or has_pictures or not alike):
        return Markup()
    importance = Explanations(explanations).importance(groups, top=15)
    if not importance.is_signed:
        return importance_card(importance)
    return importance_card(importance) + from_template(
        "folded.html", name="All scores", content=swarm_card(importance)
    )


def _section(explained: Explained, look: Look, *, by_class: bool) -> Markup:
    """Return the explanations of one input side by side; a shared image is shown once."""
    input, together = explained.explanations[0].input, len(explained.explanations) > 1
    original = drawing_of(input).html_input(input) if together and not look.compact else Markup()
    with_input = not together and not look.compact
    cards = [card(e, look=look, with_input=with_input, by_class=by_class) for e in explained.explanations]
    return from_template("section.html", explained=explained, original=original, cards=cards)


def _pack(text: str) -> str:
    """Return a text compressed with zlib and encoded as base64; the page's script decodes it."""
    return b64encode(compress(text.encode(), 9)).decode()


def _search_text(explained: Explained) -> str:
    """Return the searchable text of an input that is not in its index row."""
    input = explained.explanations[0].input
    return input.search_text if input.has_words else ""


def _count(inputs: Sequence[Explained]) -> str:
    explanations = sum(len(explained.explanations) for explained in inputs)
    return (
        f"{explanations:,} explanation{'' if explanations == 1 else 's'} "
        f"of {len(inputs):,} input{'' if len(inputs) == 1 else 's'}"
    )


def _with_measures(explanations: list[Explanation], evaluation: Evaluation) -> list[Explanation]:
    """Return the explanations with measures from the evaluation."""

    def key(e: Explanation) -> tuple[object, ...]:
        return e.method, repr(e.settings), e.removal, e.input.fingerprint, e.target, e.seed

    measured = {key(e): e for e in evaluation.explanations}
    return [e if e.measures else measured.get(key(e), e) for e in explanations]


_MANY = 20
"""Smallest number of explanations for which a report shows feature importance."""

_MOST_UNPACKED = 100
"""Largest number of inputs for which a report leaves hidden sections uncompressed."""

_MEASURE = "number more"
_MOST_MEASURES = 4
"""Largest number of metric columns that an index shows by default."""


@dataclass(frozen=True)
class _IndexCell:
    """A cell of the index: its text, its sort key, and its CSS class."""

    shown: str = ""
    value: object = ""
    kind: str = ""


def _index(inputs: Sequence[Explained]) -> dict[str, Any]:
    """Return the non-empty columns of the index, and a row for each input.

    If there are many metric columns, they are hidden by default; `more` is their number.
    """
    methods = {e.method for explained in inputs for e in explained.explanations}
    rows = [dict(_cells(explained, several_methods=len(methods) > 1)) for explained in inputs]
    if len(methods) > 1 and len({row["method"] for row in rows}) == 1:
        rows = [{column: cell for column, cell in row.items() if column != "method"} for row in rows]
    columns = {column: cell.kind for row in rows for column, cell in row.items() if cell.shown}
    measures = [column for column, kind in columns.items() if kind == _MEASURE]
    if len(measures) <= _MOST_MEASURES:
        columns |= dict.fromkeys(measures, "number")
    predicted = [_predicted(explained) for explained in inputs]
    cells = [[(row.get(column, _IndexCell()), kind) for column, kind in columns.items()] for row in rows]
    return {
        "columns": columns,
        "more": f"{len(measures)} columns of measures" if len(measures) > _MOST_MEASURES else "",
        "predictions": sorted(set(predicted)),
        "rows": list(zip(predicted, cells, strict=True)),
    }


def _cells(explained: Explained, *, several_methods: bool) -> Iterator[tuple[str, _IndexCell]]:
    first = explained.explanations[0]
    yield "id", _IndexCell(first.id or "", first.id or "")
    beginning = drawing_of(first.input).beginning(first.input)
    yield "begins", _IndexCell(beginning, "" if isinstance(beginning, Markup) else beginning, "start")
    yield "prediction", _IndexCell(_predicted(explained), _predicted(explained))
    amount = "value" if first.output.kind == "value" else "probability"
    predicted = say.predicted(first)
    yield (
        amount,
        _IndexCell(say.amount(first, predicted), float(first.prediction.values[predicted]), "number"),
    )
    targets = ", ".join(
        dict.fromkeys(e.target_name for e in explained.explanations if e.target != say.predicted(e))
    )
    yield "explained instead", _IndexCell(targets, targets)
    methods = ", ".join(dict.fromkeys(e.method for e in explained.explanations))
    yield "method", _IndexCell(methods, methods)
    measured: dict[str, list[float]] = {}
    for e in explained.explanations:
        for m in say.measures(e):
            column = f"{m.name} {m.arrow} {e.method if several_methods else ''}"
            measured.setdefault(" ".join(column.split()), []).append(m.mean)
    for column, values in measured.items():
        yield column, _IndexCell(measure_text(float(np.mean(values))), float(np.mean(values)), _MEASURE)


def _predicted(explained: Explained) -> str:
    first = explained.explanations[0]
    return first.classes[say.predicted(first)]
