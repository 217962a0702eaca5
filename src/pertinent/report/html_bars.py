"""Bars, whiskers and dots on a shared axis, drawn in plain HTML."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pertinent.array_types import Ints, Masks
from pertinent.inputs.table import TableInput
from pertinent.report import facts as say
from pertinent.report.markup import Markup
from pertinent.results.explanation import Explanation

_SPAN = Markup('<i class="{}" style="left:{:.1f}%;width:{:.1f}%"></i>')
_MARK = Markup('<i class="{}" style="left:{:.1f}%"></i>')
_TABLE = Markup('<table class="bars" style="--zero:{:.1f}%" lang=""><tbody>{}</tbody></table>')
_ROW = Markup("<tr><th{}>{}</th>{}<td><div>{}{}</div></td><td>{}</td>{}{}</tr>")
_TITLE = Markup(' title="{}"')
_VALUE = Markup('<td class="name quiet">{}</td>')
_MARKED = Markup("<u>{}</u>")
_ERROR = Markup('<td class="quiet">{}</td>')
_CLIPPED_FROM = 20
"""Names of this length may not fit, so that the whole name is a tooltip."""


@dataclass(frozen=True)
class Axis:
    """A range of values mapped to the width of a cell."""

    low: float
    high: float

    @classmethod
    def of(cls, ranges: Iterable[tuple[float, float]]) -> Axis:
        """The axis that covers every range and zero, with room for a dot at its ends."""
        ends = [value for pair in ranges for value in pair if value == value]  # noqa: PLR0124  not NaN
        low, high = min([0.0, *ends]), max([0.0, *ends])
        room = 0.03 * (high - low) or 1.0
        return cls(low - room if low < 0 else low, high + room)

    def place(self, value: float) -> float:
        """Where a value lies, from 0 to 100."""
        return 100 * min(1.0, max(0.0, (value - self.low) / (self.high - self.low)))

    def bar(self, value: float, kind: str) -> Markup:
        """A bar from zero to the value."""
        return self._span(kind, *sorted((0.0, value)))

    def line(self, low: float, high: float) -> Markup:
        """A whisker."""
        return self._span("error", low, high)

    def zero(self) -> Markup:
        """A mark at zero."""
        return _MARK.format("zero", self.place(0.0))

    def dot(self, value: float, low: float, high: float) -> Markup:
        """A dot with its whisker."""
        return self.zero() + self.line(low, high) + _MARK.format("dot", self.place(value))

    def _span(self, kind: str, low: float, high: float) -> Markup:
        left, right = self.place(low), self.place(high)
        return _SPAN.format(kind, left, right - left)


def feature_bars(
    e: Explanation, features: Ints, *, axis: Axis | None = None, marked: Masks | None = None
) -> Markup:
    """A line for each feature: name, value (of a column), bar with whisker, score, error, pertinence.

    The names of `marked` features are underlined.
    """
    shown = features.tolist()
    spread = {i: say.error_of(e, i) or 0.0 for i in shown}
    axis = axis or Axis.of(ends(e, i) for i in shown)
    values = e.input.shown() if isinstance(e.input, TableInput) else None
    share = say.relative_scores(e)
    rows = []
    for i in shown:
        score = float(e.scores[i])
        name = say.on_one_line(e.features[i])
        rows.append(
            _ROW.format(
                _TITLE.format(name) if len(name) >= _CLIPPED_FROM else "",
                name if marked is None or not marked[i] else _MARKED.format(name),
                _VALUE.format(values[i]) if values else "",
                axis.bar(score, say.side(e, i)) if share[i] else "",
                axis.line(score - spread[i], score + spread[i]) if spread[i] else "",
                say.score_text(e, i),
                "" if e.standard_errors is None else _ERROR.format(say.error_text(e, i)),
                "" if e.pertinence is None else _VALUE.format(say.pertinence_text(e, i)),
            )
        )
    return _TABLE.format(axis.place(0.0), Markup().join(rows))


def ends(e: Explanation, feature: int) -> tuple[float, float]:
    """The ends of the whisker on a feature's bar."""
    score, error = float(e.scores[feature]), say.error_of(e, feature) or 0.0
    return score - error, score + error
