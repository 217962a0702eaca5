"""Quality of a model: accuracy or error by class and cohort, and dependence plots of its scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from pertinent.app.cohorts import as_numbers, split_cohorts
from pertinent.array_types import Array, Floats, Ints
from pertinent.errors import InputError, unknown
from pertinent.rendering import wording as say
from pertinent.rendering.axes import AxisScale
from pertinent.rendering.colours import shade
from pertinent.results.explanation import Explanation
from pertinent.stats import Interval, bootstrap

_RESAMPLES = 2000
_BINS = 4
"""Number of quantile ranges of a numeric column."""

_WIDTH, _HEIGHT, _BELOW = 640, 330, 46


def right_answers(explanations: Sequence[Explanation], answers: Sequence[Any]) -> list[Any]:
    """Return the true answer for each explanation, by the index of its input.

    It is the name of a class, or a number. `answers` hold classes by name or index, and ``None`` for unknown
    ones.
    """
    right = []
    for e in explanations:
        if e.index >= len(answers):
            raise InputError(
                f"`answers` must have an answer for input {e.index}, got {len(answers):,} of them."
            )
        right.append(_right_answer(e, answers[e.index]))
    return right


def _right_answer(e: Explanation, answer: Any) -> Any:
    text = "" if answer is None else str(answer).strip()
    if not text:
        return None
    try:
        if e.output.kind == "value":
            return float(text)
        return text if text in e.classes else e.classes[int(float(text))]
    except (ValueError, IndexError):
        expected = "a number" if e.output.kind == "value" else f"one of {', '.join(e.classes)}"
        raise InputError(f"The answer for input {e.index} must be {expected}, got {text!r}.") from None


@dataclass(frozen=True)
class Cohort:
    """A group of inputs: its size, and the accuracy or mean absolute error on it."""

    name: str
    n: int
    interval: Interval


class ModelReport:
    """Quality of a model, from the explanations of one method; inputs without a true answer are omitted."""

    def __init__(self, explanations: Sequence[Explanation], answers: Sequence[Any]) -> None:
        labelled = [(e, right) for e, right in zip(explanations, answers, strict=True) if right is not None]
        if not labelled:
            raise InputError("None of the inputs has a true answer.")
        self.explanations = [e for e, _ in labelled]
        self.right = [right for _, right in labelled]
        self.is_value = self.explanations[0].output.kind == "value"
        self.predicted = [e.classes[say.predicted(e)] for e in self.explanations]
        self.dependence = lru_cache(64)(self._dependence)

    @cached_property
    def quality(self) -> Floats:
        """For each input 1 if the prediction is correct and 0 if not; for values the absolute error."""
        if self.is_value:
            values = np.array([float(e.prediction.values[say.predicted(e)]) for e in self.explanations])
            return np.asarray(np.abs(values - np.array(self.right, dtype=np.float64)))
        return np.array([a == b for a, b in zip(self.predicted, self.right, strict=True)], dtype=np.float64)

    @property
    def measure(self) -> str:
        """Name of `quality`."""
        return "mean absolute error" if self.is_value else "accuracy"

    def overall(self) -> Cohort:
        """Return the cohort of all inputs."""
        return self._cohort("all inputs", np.arange(len(self.right)))

    def confusion(self) -> list[tuple[str, list[int]]]:
        """Return each true class with the number of predictions of each class."""
        classes = self.explanations[0].classes
        pairs = list(zip(self.right, self.predicted, strict=True))
        return [(right, [pairs.count((right, predicted)) for predicted in classes]) for right in classes]

    def by_class(self) -> list[tuple[Cohort, Cohort]]:
        """Return the recall and the precision of each class."""
        pairs = []
        for name in self.explanations[0].classes:
            recall = self._cohort(name, np.flatnonzero([label == name for label in self.right]))
            precision = self._cohort(name, np.flatnonzero([label == name for label in self.predicted]))
            pairs.append((recall, precision))
        return pairs

    def columns(self) -> list[str]:
        """Return the columns of a table, the most important first."""
        if not self.explanations[0].input.has_columns:
            return []
        names = self.explanations[0].features
        size = np.mean([np.abs(e.scores) for e in self.explanations], axis=0)
        return [names[i] for i in np.argsort(-size, kind="stable").tolist()]

    def cohorts(self, column: str) -> list[Cohort]:
        """Return the cohorts by range or category of a column."""
        return [self._cohort(*cohort) for cohort in split_cohorts(self._values(column), _BINS)]

    def _dependence(self, column: str, target: str) -> dict[str, Any] | None:
        """Return a scatter plot of a column's values and its scores for a class.

        The colour is the rank of the column that it interacts with most. ``None`` if the values are not
        numbers, or if no explanation has scores for the class.
        """
        scores_of = [(i, _scores(e, target)) for i, e in enumerate(self.explanations)]
        indices = np.array([i for i, scores in scores_of if scores is not None], dtype=np.int64)
        numbers = as_numbers(self._values(column))
        if numbers is None or not len(indices):
            return None
        scores = np.array([scores for _, scores in scores_of if scores is not None])
        x, y = numbers[indices], scores[:, self._index(column)]
        other = self._interacting(column, x, y, indices)
        ranks = None if other is None else _ranks(as_numbers(self._values(other))[indices])  # type: ignore[index]
        return _picture(x, y, ranks) | {"column": column, "other": other, "target": target}

    def _interacting(self, column: str, x: Floats, y: Floats, indices: Ints) -> str | None:
        """Return the other column with which the scores vary most among inputs with similar values."""
        order = np.argsort(x, kind="stable")
        groups = np.array_split(order, max(1, len(order) // 10))
        strength = {}
        for name in self.explanations[0].features:
            others = None if name == column else as_numbers(self._values(name))
            if others is not None:
                strength[name] = sum(_covariation(y[group], others[indices][group]) for group in groups)
        best = max(strength, key=lambda name: strength[name], default=None)
        return best if best is not None and strength[best] > 0 else None

    def _index(self, column: str) -> int:
        names = self.explanations[0].features
        if column not in names:
            raise unknown("column", column, names)
        return names.index(column)

    def _values(self, column: str) -> Array:
        index = self._index(column)
        return np.array([e.input.feature_values()[index] for e in self.explanations], dtype=object)

    def _cohort(self, name: str, members: Ints) -> Cohort:
        if not len(members):
            return Cohort(name, 0, Interval(float("nan"), float("nan"), float("nan"), 0))
        within = None if self.is_value else (0.0, 1.0)
        return Cohort(
            name, len(members), bootstrap(self.quality[members], within=within, resamples=_RESAMPLES)
        )

    def view(self, column: str, target: str) -> dict[str, Any]:
        """Return the context of the page."""
        columns, classes = self.columns(), self.explanations[0].classes
        column = column or next(iter(columns), "")
        target = target or self._usual_target()
        if target not in classes:
            raise unknown("class", target, classes)
        return {
            "report": self,
            "overall": self.overall(),
            "by_class": [] if self.is_value else self.by_class(),
            "confusion": [] if self.is_value else self.confusion(),
            "classes": classes,
            "columns": columns,
            "column": column,
            "target": target,
            "cohorts": self.cohorts(column) if column else [],
            "picture": self.dependence(column, target) if column else None,
        }

    def _usual_target(self) -> str:
        names = [e.target_name for e in self.explanations]
        return max(dict.fromkeys(names), key=names.count)


def _scores(e: Explanation, target: str) -> Floats | None:
    """Return the scores for a class, if the explanation has them."""
    if e.target_name == target:
        return e.scores
    return None if e.class_scores is None else e.class_scores[e.classes.index(target)]


def _ranks(values: Floats) -> Floats:
    """Return the rank of each value among the distinct values, scaled to [0, 1]."""
    distinct, ranks = np.unique(values, return_inverse=True)
    return np.asarray(ranks / max(1, len(distinct) - 1))


def _covariation(a: Floats, b: Floats) -> float:
    """Return |correlation| of two arrays times the standard deviation of the first."""
    if len(a) < 3 or not np.ptp(a) or not np.ptp(b):
        return 0.0
    return float(abs(np.corrcoef(a, b)[0, 1]) * a.std())


def _picture(x: Floats, y: Floats, ranks: Floats | None) -> dict[str, Any]:
    def scale(values: Floats, start: float, end: float) -> AxisScale:
        margin = 0.05 * float(np.ptp(values)) or 0.5
        return AxisScale(float(values.min()) - margin, float(values.max()) + margin, start, end)

    y_axis = scale(y, _HEIGHT - _BELOW, 10)
    x_axis = scale(x, y_axis.margin, _WIDTH - 10)
    colour: Callable[[int], str] = lambda i: "" if ranks is None else shade(2 * float(ranks[i]) - 1)  # noqa: E731
    size = {"width": _WIDTH, "height": _HEIGHT, "left": y_axis.margin, "below": _HEIGHT - _BELOW}
    points = [
        (x_axis.position(a), y_axis.position(b), colour(i))
        for i, (a, b) in enumerate(zip(x.tolist(), y.tolist(), strict=True))
    ]
    zero = y_axis.position(0.0) if y_axis.low < 0 < y_axis.high else None
    return size | {"x": x_axis, "y": y_axis, "points": points, "zero": zero}
