"""Saved explanations in the web app: search, filter, sort, and global feature importance."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any
from urllib.parse import urlencode

import numpy as np

from pertinent.app.cohorts import name_cohorts
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
"""Sort orders that list mistakes first: of classes, and of numeric values."""

_PREDICTED, _EVERY_CLASS, _RIGHT = "predicted class", "every class", "right or wrong"
"""Groupings that are available for every kind of input."""

_ROWS_PER_PAGE = 25


@dataclass(frozen=True)
class Filter:
    """Filter, order and view of the list of explanations of a `method`.

    Attributes
    ----------
    q
        Search terms that must all occur in the input or its id, in any order; parts of words match.
    predicted, right
        The predicted class and the true class.
    feature
        The name of a feature that the input must have, as in the global view.
    sort
        A name from `ExplanationBrowser.orders`.
    by
        The grouping that the global view compares, from `ExplanationBrowser.groupings`.
    view
        ``"beeswarm"`` to draw every score as a point; by default bars.
    page
        The index of the page.
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
    def from_query(cls, query: Mapping[str, str]) -> Filter:
        """Decode the query parameters of a URL."""
        page = query.get("page", "0")
        if not page.isdecimal() or len(page) > 9:
            raise InputError(f"`page` must be a whole number, got {shorten(repr(page), 60)}.")
        return decode(Filter, {**query, "page": int(page)})

    def url(self, **changes: Any) -> str:
        """Return the URL of the list with some fields changed, at its first page by default."""
        fields = {**vars(self), "page": 0, **changes}
        return f"/browse?{urlencode({name: value for name, value in fields.items() if value})}"


@dataclass(frozen=True)
class _Row:
    """An explanation with the values by which it is searched and sorted."""

    number: int
    explanation: Explanation
    text: str
    features: frozenset[str]
    right: Any = None

    @property
    def is_wrong(self) -> bool:
        """Whether the predicted class differs from the true class."""
        return isinstance(self.right, str) and self.predicted != self.right

    @property
    def severity(self) -> float:
        """Absolute error of a value, or probability of a wrongly predicted class; negative if correct."""
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
        """Return the sum of the scores of all occurrences of a feature."""
        pairs = zip(self.explanation.features, self.explanation.scores.tolist(), strict=True)
        return float(sum(score for name, score in pairs if feature in (name, _normalized(name))))

    @property
    def error(self) -> float:
        errors = self.explanation.standard_errors
        return 0.0 if errors is None else float(np.nan_to_num(errors, nan=np.inf).max(initial=0.0))


class ExplanationBrowser:
    """Explanations of a file, with a row for each input and method."""

    def __init__(self, explanations: Explanations, name: str, answers: Sequence[Any] | None = None) -> None:
        if not len(explanations):
            raise FileError(f"There are no explanations in {name!r}.")
        self.explanations, self.name = explanations, name
        right = [None] * len(explanations) if answers is None else right_answers(explanations, answers)
        self._rows = [_row(number, e, right[number]) for number, e in enumerate(explanations)]
        self.has_answers = any(answer is not None for answer in right)
        self.methods = list(dict.fromkeys(e.method for e in explanations))
        self._importance = lru_cache(64)(self._importance_of)

    def orders(self, method: str, feature: str = "") -> dict[str, Callable[[_Row], float]]:
        """Return the sort keys of a method by displayed name, with a `feature` also those of its score."""
        explanations = [row.explanation for row in self._rows if row.explanation.method == method]
        is_value = any(e.output.kind == "value" for e in explanations)
        high, low = ("highest value", "lowest value") if is_value else ("most confident", "least confident")
        orders: dict[str, Callable[[_Row], float]] = {
            "as in the file": lambda row: row.number,
            f"{low} first": lambda row: row.confidence,
            f"{high} first": lambda row: -row.confidence,
        }
        if feature:
            orders["highest score first"] = lambda row: -row.score(feature)
            orders["lowest score first"] = lambda row: row.score(feature)
        if self.has_answers:
            orders[WORST[is_value]] = lambda row: -row.severity
        if any(e.standard_errors is not None for e in explanations):
            orders["largest standard error first"] = lambda row: -row.error
        for measure in {m.name: m for e in explanations for m in say.measures(e)}.values():
            sign = -1 if measure.better == "lower" else 1
            orders[f"worst {measure.name} first"] = _by_measure(measure.name, sign)
            orders[f"best {measure.name} first"] = _by_measure(measure.name, -sign)
        return orders

    def select(self, filter: Filter) -> list[_Row]:
        """Return the rows that match a filter, in its order."""
        words = filter.q.casefold().split()
        rows = [
            row
            for row in self._rows
            if row.explanation.method == (filter.method or self.methods[0])
            and filter.predicted in ("", row.predicted)
            and filter.right in ("", str(row.right))
            and (not filter.feature or filter.feature in row.features)
            and all(word in row.text for word in words)
        ]
        order = self.orders(filter.method or self.methods[0], filter.feature).get(filter.sort)
        return rows if order is None else sorted(rows, key=order)

    def list_view(self, filter: Filter) -> dict[str, Any]:
        """Return the context of the list page: global importance and one page of matching rows."""
        if filter.method and filter.method not in self.methods:
            raise unknown("method", filter.method, self.methods)
        rows, method = self.select(filter), filter.method or self.methods[0]
        of_method = [row for row in self._rows if row.explanation.method == method]
        shown = rows[filter.page * _ROWS_PER_PAGE :][:_ROWS_PER_PAGE]
        importance = self._importance(method, filter.predicted, filter.by)
        return {
            "saved": self,
            "filter": filter,
            "method": method,
            "predictions": sorted({row.predicted for row in of_method}),
            "rights": sorted({row.right for row in of_method if isinstance(row.right, str)}),
            "orders": list(self.orders(method, filter.feature)),
            "groupings": self.groupings(method),
            "importance": importance and self._global_card(importance, filter),
            "n": len(rows),
            "n_all": len(of_method),
            "rows": [(row, *_cells(row)) for row in shown],
            "measures": list(dict.fromkeys(m.name for row in shown for m in say.measures(row.explanation))),
            "first": filter.page * _ROWS_PER_PAGE,
            "last_page": max(0, (len(rows) - 1) // _ROWS_PER_PAGE),
        }

    def model_view(self, column: str, target: str) -> dict[str, Any]:
        """Return the context of the model page, from the explanations of the first method."""
        filter = Filter(method=self.methods[0])
        importance = self._importance(filter.method, "")
        worst = f"{filter.url(sort=WORST[self._report.is_value])}#list"
        return self._report.view(column, target) | {
            "url": filter.url,
            "worst": worst,
            "importance": importance and importance_card(importance, lambda name: filter.url(feature=name)),
        }

    @cached_property
    def _report(self) -> ModelReport:
        rows = [row for row in self._rows if row.explanation.method == self.methods[0]]
        return ModelReport([row.explanation for row in rows], [row.right for row in rows])

    def one_view(self, number: int) -> dict[str, Any]:
        """Return the context of the page of one input, with its explanations by all methods."""
        e = self.explanation(number)
        same = [row.explanation for row in self._rows if _same_input(row.explanation, e)]
        return {
            "name": name_of(e),
            "number": number,
            "row": self._rows[number],
            "cards": [card(each, by_class=each.class_scores is not None) for each in same],
        }

    def explanation(self, number: int) -> Explanation:
        """Return the explanation with this index in the file."""
        if not 0 <= number < len(self._rows):
            raise InputError(f"There is no explanation {number}: there are {len(self._rows):,}.")
        return self._rows[number].explanation

    def groupings(self, method: str) -> list[str]:
        """Return the groupings of the inputs: by class, by correctness, and by each column of a table."""
        rows = [row for row in self._rows if row.explanation.method == method]
        first = rows[0].explanation
        names = [_PREDICTED] if len({row.predicted for row in rows}) > 1 else []
        if len(first.classes) > 1 and all(row.explanation.class_scores is not None for row in rows):
            names.append(_EVERY_CLASS)
        if len({row.is_wrong for row in rows if row.right is not None}) > 1:
            names.append(_RIGHT)
        return names + (list(first.features) if first.input.has_columns else [])

    @staticmethod
    def _global_card(importance: Importance, filter: Filter) -> Markup:
        if filter.view == "beeswarm" and importance.is_signed:
            return swarm_card(importance)
        return importance_card(importance, lambda name: f"{filter.url(feature=name)}#list")

    def _importance_of(self, method: str, predicted: str, by: str = "") -> Importance | None:
        rows = [row for row in self._rows if row.explanation.method == method]
        rows = [row for row in rows if predicted in ("", row.predicted)]
        if not rows or rows[0].explanation.input.is_picture:
            return None  # patches of different images cannot be averaged
        if by and by not in self.groupings(method):
            raise unknown("by", by, self.groupings(method))
        return Explanations([row.explanation for row in rows]).importance(_groups(rows, by), top=15)


def _groups(rows: Sequence[_Row], by: str) -> str | list[str] | None:
    """Return the `groups` argument of `importance`: a name for each row, or ``"class"``."""
    if by in ("", _EVERY_CLASS):
        return "class" if by else None
    if by == _PREDICTED:
        return [row.predicted for row in rows]
    if by == _RIGHT:
        return ["unknown" if row.right is None else "wrong" if row.is_wrong else "right" for row in rows]
    column = rows[0].explanation.features.index(by)
    return name_cohorts([row.explanation.input.feature_values()[column] for row in rows])


def _normalized(name: str) -> str:
    """Return the name of a feature in the global view."""
    return " ".join(name.casefold().split())


def _row(number: int, e: Explanation, right: Any) -> _Row:
    names = [_normalized(name) for name in e.features]
    searched = f"{'' if e.input.is_picture else e.input.search_text} {e.id or ''}".casefold()
    return _Row(number, e, searched, frozenset((*names, *e.features)), right)


def _same_input(a: Explanation, b: Explanation) -> bool:
    return a.index == b.index and a.input.content == b.input.content


def _by_measure(name: str, sign: int) -> Callable[[_Row], float]:
    def key(row: _Row) -> float:
        means = [m.mean for m in say.measures(row.explanation) if m.name == name]
        return sign * means[0] if means else float("inf")

    return key


def _cells(row: _Row) -> tuple[Any, str, dict[str, str], Sequence[str]]:
    """Return the cells of a row: start of the input, prediction, measures and strongest features."""
    e = row.explanation
    measures = {m.name: f"{m.mean:.3f}" for m in say.measures(e)}
    strongest = [say.clipped(e.features[i], 20) for i in say.strongest(e, 3).tolist()]
    return drawing_of(e.input).beginning(e.input), say.amount(e, say.predicted(e)), measures, strongest
