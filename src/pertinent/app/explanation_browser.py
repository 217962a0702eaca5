"""Saved explanations on the page: search, filter, sort, and feature importance over all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any
from urllib.parse import urlencode

import numpy as np

from pertinent.app.cohorts import group_names
from pertinent.app.model_report import ModelReport, right_answers
from pertinent.config.serialization import Index, decode
from pertinent.errors import FileError, InputError, unknown
from pertinent.printable import shorten
from pertinent.rendering import wording as say
from pertinent.rendering.by_input import name_of
from pertinent.rendering.drawings import drawing_of
from pertinent.rendering.html import Markup
from pertinent.rendering.html.explanation import card
from pertinent.rendering.html.importance import importance_card
from pertinent.rendering.html.svg import swarm_card
from pertinent.results.explanation import Explanation, Explanations
from pertinent.results.importance import Importance

WORST = ("wrong and most confident first", "largest error first")
"""The order in which mistakes come first, of classes and of values."""

_PREDICTED, _EVERY_CLASS, _RIGHT = "predicted class", "every class", "right or wrong"
"""By what inputs of every kind can be grouped."""

_ROWS = 25
"""How many inputs there are on a page."""


@dataclass(frozen=True)
class Filter:
    """What a reader wants to see of the explanations of a `method`.

    Attributes
    ----------
    q
        What must occur in the input or its id: words or parts of words, in any order.
    predicted, right
        The predicted class, and the right one, where that is known.
    feature
        A feature that the input must have, as the global view names it.
    sort
        A name from `ExplanationBrowser.orders`.
    by
        A name from `ExplanationBrowser.cohorts`, which are compared in the global view.
    view
        ``"beeswarm"`` for every score as a point; by default bars.
    page
        The number of the page, from 0.
    """

    method: str = ""
    q: str = ""
    predicted: str = ""
    right: str = ""
    feature: str = ""
    sort: str = ""
    by: str = ""
    view: str = ""
    page: Index = 0

    @classmethod
    def from_query(cls, given: Mapping[str, str]) -> Filter:
        """The filter in the query of an address."""
        page = given.get("page", "0")
        if not page.isdecimal() or len(page) > 9:
            raise InputError(f"`page` must be a whole number, but got {shorten(repr(page), 60)}.")
        return decode(Filter, {**given, "page": int(page)})

    def address(self, **changes: Any) -> str:
        """The address of the page with this filter, changed in some fields; a change begins at page 0."""
        fields = {**vars(self), "page": 0, **changes}
        return f"/browse?{urlencode({name: value for name, value in fields.items() if value})}"


@dataclass(frozen=True)
class _Row:
    """One explanation, and what it is searched and sorted by."""

    number: int
    explanation: Explanation
    text: str
    features: frozenset[str]
    right: Any = None

    @property
    def is_wrong(self) -> bool:
        """Whether another class than the right one is predicted."""
        return isinstance(self.right, str) and self.predicted != self.right

    @property
    def wrong(self) -> float:
        """How wrong it is: the error of a value, the probability of a wrong class; below 0 if it is right."""
        if self.right is None:
            return -2.0
        if self.explanation.output.kind == "value":
            return abs(self.confidence - float(self.right))
        return self.confidence if self.is_wrong else -1.0

    @property
    def predicted(self) -> str:
        return self.explanation.classes[say.predicted(self.explanation)]

    @property
    def confidence(self) -> float:
        return float(self.explanation.prediction.values[say.predicted(self.explanation)])

    def score(self, feature: str) -> float:
        """The score of a feature, of all its occurrences together."""
        own = zip(self.explanation.features, self.explanation.scores.tolist(), strict=True)
        return float(sum(score for name, score in own if feature in (name, _plain(name))))

    @property
    def error(self) -> float:
        errors = self.explanation.standard_errors
        return 0.0 if errors is None else float(np.nan_to_num(errors, nan=np.inf).max(initial=0.0))


class ExplanationBrowser:
    """The explanations of a file; those of one input and method are a row of the page."""

    def __init__(self, explanations: Explanations, name: str, answers: Sequence[Any] | None = None) -> None:
        if not len(explanations):
            raise FileError(f"There are no explanations in {name!r}.")
        self.explanations, self.name = explanations, name
        right = [None] * len(explanations) if answers is None else right_answers(explanations, answers)
        self._rows = [_row(number, e, right[number]) for number, e in enumerate(explanations)]
        self.has_answers = any(each is not None for each in right)
        self.methods = list(dict.fromkeys(e.method for e in explanations))
        self._importance = lru_cache(64)(self._importance_of)

    def orders(self, method: str, feature: str = "") -> dict[str, Callable[[_Row], float]]:
        """The ways to sort the explanations of a method, by the name that a reader sees.

        Those with a `feature` can be sorted by its score.
        """
        own = [row.explanation for row in self._rows if row.explanation.method == method]
        is_value = any(e.output.kind == "value" for e in own)
        high, low = ("highest value", "lowest value") if is_value else ("most confident", "least confident")
        found: dict[str, Callable[[_Row], float]] = {
            "as in the file": lambda row: row.number,
            f"{low} first": lambda row: row.confidence,
            f"{high} first": lambda row: -row.confidence,
        }
        if feature:
            found["highest score first"] = lambda row: -row.score(feature)
            found["lowest score first"] = lambda row: row.score(feature)
        if self.has_answers:
            found[WORST[is_value]] = lambda row: -row.wrong
        if any(e.standard_errors is not None for e in own):
            found["largest standard error first"] = lambda row: -row.error
        for measure in {m.name: m for e in own for m in say.measures(e)}.values():
            sign = -1 if measure.better == "lower" else 1
            found[f"worst {measure.name} first"] = _by_measure(measure.name, sign)
            found[f"best {measure.name} first"] = _by_measure(measure.name, -sign)
        return found

    def filtered(self, wanted: Filter) -> list[_Row]:
        """The rows that fit, in the order wanted."""
        words = wanted.q.casefold().split()
        rows = [
            row
            for row in self._rows
            if row.explanation.method == (wanted.method or self.methods[0])
            and wanted.predicted in ("", row.predicted)
            and wanted.right in ("", str(row.right))
            and (not wanted.feature or wanted.feature in row.features)
            and all(word in row.text for word in words)
        ]
        order = self.orders(wanted.method or self.methods[0], wanted.feature).get(wanted.sort)
        return rows if order is None else sorted(rows, key=order)

    def list_view(self, wanted: Filter) -> dict[str, Any]:
        """What the page shows: the global view, and a list of the explanations that fit."""
        if wanted.method and wanted.method not in self.methods:
            raise unknown("method", wanted.method, self.methods)
        rows, method = self.filtered(wanted), wanted.method or self.methods[0]
        of_method = [row for row in self._rows if row.explanation.method == method]
        shown = rows[wanted.page * _ROWS :][:_ROWS]
        importance = self._importance(method, wanted.predicted, wanted.by)
        return {
            "saved": self,
            "wanted": wanted,
            "method": method,
            "predictions": sorted({row.predicted for row in of_method}),
            "rights": sorted({row.right for row in of_method if isinstance(row.right, str)}),
            "orders": list(self.orders(method, wanted.feature)),
            "cohorts": self.cohorts(method),
            "importance": importance and self._global_card(importance, wanted),
            "n": len(rows),
            "n_all": len(of_method),
            "rows": [(row, *_cells(row)) for row in shown],
            "measures": list(dict.fromkeys(m.name for row in shown for m in say.measures(row.explanation))),
            "first": wanted.page * _ROWS,
            "last_page": max(0, (len(rows) - 1) // _ROWS),
        }

    def model_view(self, column: str, target: str) -> dict[str, Any]:
        """What the page about the model shows, by the explanations of the first method."""
        wanted = Filter(method=self.methods[0])
        importance = self._importance(wanted.method, "")
        worst = f"{wanted.address(sort=WORST[self._judged.is_value])}#list"
        return self._judged.view(column, target) | {
            "address": wanted.address,
            "worst": worst,
            "importance": importance
            and importance_card(importance, lambda name: wanted.address(feature=name)),
        }

    @cached_property
    def _judged(self) -> ModelReport:
        rows = [row for row in self._rows if row.explanation.method == self.methods[0]]
        return ModelReport([row.explanation for row in rows], [row.right for row in rows])

    def one_view(self, number: int) -> dict[str, Any]:
        """What the page of one input shows: its explanations by all methods."""
        e = self.explanation(number)
        same = [row.explanation for row in self._rows if _same_input(row.explanation, e)]
        return {
            "name": name_of(e),
            "number": number,
            "row": self._rows[number],
            "cards": [card(each, by_class=each.class_scores is not None) for each in same],
        }

    def explanation(self, number: int) -> Explanation:
        """One of the explanations, by its place in the file."""
        if not 0 <= number < len(self._rows):
            raise InputError(f"There is no explanation {number}: there are {len(self._rows):,}.")
        return self._rows[number].explanation

    def cohorts(self, method: str) -> list[str]:
        """By what the inputs can be grouped: class, right or wrong, and the columns of a table."""
        own = [row for row in self._rows if row.explanation.method == method]
        found = [_PREDICTED] if len({row.predicted for row in own}) > 1 else []
        if (
            all(row.explanation.class_scores is not None for row in own)
            and len(own[0].explanation.classes) > 1
        ):
            found.append(_EVERY_CLASS)
        if len({row.is_wrong for row in own if row.right is not None}) > 1:
            found.append(_RIGHT)
        first = own[0].explanation
        return found + (list(first.features) if first.input.has_columns else [])

    @staticmethod
    def _global_card(importance: Importance, wanted: Filter) -> Markup:
        if wanted.view == "beeswarm" and importance.is_signed:
            return swarm_card(importance)
        return importance_card(importance, lambda name: f"{wanted.address(feature=name)}#list")

    def _importance_of(self, method: str, predicted: str, by: str = "") -> Importance | None:
        rows = [row for row in self._rows if row.explanation.method == method]
        rows = [row for row in rows if predicted in ("", row.predicted)]
        if not rows or rows[0].explanation.input.is_picture:
            return None  # the patches of different images are different things
        if by and by not in self.cohorts(method):
            raise unknown("by", by, self.cohorts(method))
        return Explanations([row.explanation for row in rows]).importance(_groups(rows, by), top=15)


def _groups(rows: Sequence[_Row], by: str) -> str | list[str] | None:
    """The groups of `importance`: a name for each row, or the scores for every class."""
    if by in ("", _EVERY_CLASS):
        return "class" if by else None
    if by == _PREDICTED:
        return [row.predicted for row in rows]
    if by == _RIGHT:
        return ["not known" if row.right is None else "wrong" if row.is_wrong else "right" for row in rows]
    place = rows[0].explanation.features.index(by)
    return group_names([row.explanation.input.feature_values()[place] for row in rows])


def _plain(name: str) -> str:
    """A feature as the global view names it."""
    return " ".join(name.casefold().split())


def _row(number: int, e: Explanation, right: Any) -> _Row:
    names = [_plain(name) for name in e.features]
    searched = f"{'' if e.input.is_picture else e.input.search_text} {e.id or ''}".casefold()
    return _Row(number, e, searched, frozenset((*names, *e.features)), right)


def _same_input(a: Explanation, b: Explanation) -> bool:
    return a.index == b.index and a.input.content == b.input.content


def _by_measure(name: str, sign: int) -> Callable[[_Row], float]:
    def key(row: _Row) -> float:
        found = [m.mean for m in say.measures(row.explanation) if m.name == name]
        return sign * found[0] if found else float("inf")

    return key


def _cells(row: _Row) -> tuple[Any, str, dict[str, str], Sequence[str]]:
    """What a line of the list shows: the beginning, the amount, the measures and the strongest features."""
    e = row.explanation
    measures = {m.name: f"{m.mean:.3f}" for m in say.measures(e)}
    strongest = [say.clipped(e.features[i], 20) for i in say.strongest(e, 3).tolist()]
    return drawing_of(e.input).beginning(e.input), say.amount(e, say.predicted(e)), measures, strongest
