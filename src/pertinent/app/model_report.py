"""A model beside the right answers: how often it is right, for whom, and what its scores depend on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from pertinent.app.cohorts import cohorts_of, numbers_of
from pertinent.array_types import Array, Floats, Ints
from pertinent.errors import InputError, unknown
from pertinent.rendering import wording as say
from pertinent.rendering.axes import AxisScale
from pertinent.rendering.colours import shade
from pertinent.results.explanation import Explanation
from pertinent.stats import Interval, bootstrap

_RESAMPLES = 2000
_BINS = 4
"""The number of ranges that a column of numbers is divided into."""

_WIDTH, _HEIGHT, _BELOW = 640, 330, 46


def right_answers(explanations: Sequence[Explanation], answers: Sequence[Any]) -> list[Any]:
    """The right answer for each explanation, by its position: the name of a class, or a number.

    A class is given by its name or its number; ``None`` stands for an answer that is not known.
    """
    found = []
    for e in explanations:
        if e.index >= len(answers):
            raise InputError(f"There is no answer for input {e.index}: there are {len(answers):,}.")
        found.append(_right(e, answers[e.index]))
    return found


def _right(e: Explanation, given: Any) -> Any:
    text = "" if given is None else str(given).strip()
    if not text:
        return None
    try:
        if e.output.kind == "value":
            return float(text)
        return text if text in e.classes else e.classes[int(float(text))]
    except (ValueError, IndexError):
        must = "a number" if e.output.kind == "value" else f"one of {', '.join(e.classes)}"
        raise InputError(f"The answer for input {e.index} must be {must}, but is {text!r}.") from None


@dataclass(frozen=True)
class Cohort:
    """Some of the inputs: how many there are, and how well the model does on them."""

    name: str
    n: int
    interval: Interval


class ModelReport:
    """The explanations of one method, each with the right answer; those without one are left out."""

    def __init__(self, explanations: Sequence[Explanation], answers: Sequence[Any]) -> None:
        known = [(e, right) for e, right in zip(explanations, answers, strict=True) if right is not None]
        if not known:
            raise InputError("None of the inputs has a right answer.")
        self.explanations = [e for e, _ in known]
        self.right = [right for _, right in known]
        self.is_value = self.explanations[0].output.kind == "value"
        self.predicted = [e.classes[say.predicted(e)] for e in self.explanations]
        self.dependence = lru_cache(64)(self._dependence)

    @cached_property
    def quality(self) -> Floats:
        """For each input 1 if the prediction is right and 0 if not; of a value, the absolute error."""
        if self.is_value:
            values = np.array([float(e.prediction.values[say.predicted(e)]) for e in self.explanations])
            return np.asarray(np.abs(values - np.array(self.right, dtype=np.float64)))
        return np.array([a == b for a, b in zip(self.predicted, self.right, strict=True)], dtype=np.float64)

    @property
    def measure(self) -> str:
        """What `quality` is, in words."""
        return "mean absolute error" if self.is_value else "accuracy"

    def overall(self) -> Cohort:
        """How well the model does on all inputs."""
        return self._cohort("all inputs", np.arange(len(self.right)))

    def confusion(self) -> list[tuple[str, list[int]]]:
        """For each right class, how often each class was predicted."""
        classes = self.explanations[0].classes
        pairs = list(zip(self.right, self.predicted, strict=True))
        return [(right, [pairs.count((right, predicted)) for predicted in classes]) for right in classes]

    def by_class(self) -> list[tuple[Cohort, Cohort]]:
        """For each class, how often it is found where it is right, and is right where it is predicted."""
        found = []
        for name in self.explanations[0].classes:
            recall = self._cohort(name, np.flatnonzero([right == name for right in self.right]))
            precision = self._cohort(name, np.flatnonzero([own == name for own in self.predicted]))
            found.append((recall, precision))
        return found

    def columns(self) -> list[str]:
        """The columns of a table, the most important first."""
        if not self.explanations[0].input.has_columns:
            return []
        names = self.explanations[0].features
        size = np.mean([np.abs(e.scores) for e in self.explanations], axis=0)
        return [names[i] for i in np.argsort(-size, kind="stable").tolist()]

    def cohorts(self, column: str) -> list[Cohort]:
        """How well the model does on each range of a column's numbers, or each of its categories."""
        return [self._cohort(*own) for own in cohorts_of(self._values(column), _BINS)]

    def _dependence(self, column: str, target: str) -> dict[str, Any] | None:
        """A point for each input: the value of a column, and its score for a class.

        The colour is the rank of the column that it interacts with most. ``None`` if the values are no
        numbers, or if no explanation has scores for the class.
        """
        own = [(i, _scores(e, target)) for i, e in enumerate(self.explanations)]
        places = np.array([i for i, scores in own if scores is not None], dtype=np.int64)
        numbers = numbers_of(self._values(column))
        if numbers is None or not len(places):
            return None
        scores = np.array([scores for _, scores in own if scores is not None])
        x, y = numbers[places], scores[:, self._place(column)]
        other = self._interacting(column, x, y, places)
        ranks = None if other is None else _ranks(numbers_of(self._values(other))[places])  # type: ignore[index]
        return _picture(x, y, ranks) | {"column": column, "other": other, "target": target}

    def _interacting(self, column: str, x: Floats, y: Floats, places: Ints) -> str | None:
        """The other column with which the scores vary most among inputs that have nearly the same value."""
        order = np.argsort(x, kind="stable")
        parts = np.array_split(order, max(1, len(order) // 10))
        strength = {}
        for name in self.explanations[0].features:
            others = None if name == column else numbers_of(self._values(name))
            if others is not None:
                strength[name] = sum(_covariation(y[part], others[places][part]) for part in parts)
        best = max(strength, key=lambda name: strength[name], default=None)
        return best if best is not None and strength[best] > 0 else None

    def _place(self, column: str) -> int:
        names = self.explanations[0].features
        if column not in names:
            raise unknown("column", column, names)
        return names.index(column)

    def _values(self, column: str) -> Array:
        place = self._place(column)
        return np.array([e.input.feature_values()[place] for e in self.explanations], dtype=object)

    def _cohort(self, name: str, members: Ints) -> Cohort:
        if not len(members):
            return Cohort(name, 0, Interval(float("nan"), float("nan"), float("nan"), 0))
        within = None if self.is_value else (0.0, 1.0)
        return Cohort(
            name, len(members), bootstrap(self.quality[members], within=within, resamples=_RESAMPLES)
        )

    def view(self, column: str, target: str) -> dict[str, Any]:
        """What the page shows."""
        columns, classes = self.columns(), self.explanations[0].classes
        column = column or next(iter(columns), "")
        target = target or self._usual_target()
        if target not in classes:
            raise unknown("class", target, classes)
        return {
            "judged": self,
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
    """The scores for a class, if the explanation has them."""
    if e.target_name == target:
        return e.scores
    return None if e.class_scores is None else e.class_scores[e.classes.index(target)]


def _ranks(values: Floats) -> Floats:
    """The rank of each value among the distinct ones, from 0 to 1."""
    known, places = np.unique(values, return_inverse=True)
    return np.asarray(places / max(1, len(known) - 1))


def _covariation(a: Floats, b: Floats) -> float:
    """By how much two lists of numbers vary together: |correlation| times the deviation of the first."""
    if len(a) < 3 or not np.ptp(a) or not np.ptp(b):
        return 0.0
    return float(abs(np.corrcoef(a, b)[0, 1]) * a.std())


def _picture(x: Floats, y: Floats, ranks: Floats | None) -> dict[str, Any]:
    def scale(values: Floats, start: float, end: float) -> AxisScale:
        room = 0.05 * float(np.ptp(values)) or 0.5
        return AxisScale(float(values.min()) - room, float(values.max()) + room, start, end)

    up = scale(y, _HEIGHT - _BELOW, 10)
    across = scale(x, up.margin, _WIDTH - 10)
    colour: Callable[[int], str] = lambda i: "" if ranks is None else shade(2 * float(ranks[i]) - 1)  # noqa: E731
    size = {"width": _WIDTH, "height": _HEIGHT, "left": up.margin, "below": _HEIGHT - _BELOW}
    points = [
        (across.position(a), up.position(b), colour(i))
        for i, (a, b) in enumerate(zip(x.tolist(), y.tolist(), strict=True))
    ]
    zero = up.position(0.0) if up.low < 0 < up.high else None
    return size | {"x": across, "y": up, "points": points, "zero": zero}
