"""Bars, whiskers and dots on a shared axis, drawn in plain HTML."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape

from pertinent.inputs.table import TableInput
from pertinent.report import facts as say
from pertinent.results.explanation import Explanation
from pertinent.types import Ints


def escaped(text: str) -> str:
    """Text that is safe between tags and inside quoted attributes."""
    return escape(text, quote=True)


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

    def bar(self, value: float, kind: str) -> str:
        """A bar from zero to the value."""
        left, right = sorted((self.place(0.0), self.place(value)))
        return f'<i class="{kind}" style="left:{left:.2f}%;width:{right - left:.2f}%"></i>'

    def line(self, low: float, high: float) -> str:
        """A whisker."""
        return self._span("error", low, high)

    def zero(self) -> str:
        """A mark at zero."""
        return f'<i class="zero" style="left:{self.place(0.0):.2f}%"></i>'

    def dot(self, value: float, low: float, high: float) -> str:
        """A dot with its whisker."""
        return f'{self.zero()}{self.line(low, high)}<i class="dot" style="left:{self.place(value):.2f}%"></i>'

    def _span(self, kind: str, low: float, high: float) -> str:
        left, right = self.place(low), self.place(high)
        return f'<i class="{kind}" style="left:{left:.2f}%;width:{right - left:.2f}%"></i>'


def feature_bars(e: Explanation, features: Ints) -> str:
    """A line for each feature: name, value (of a column), bar with whisker, score and error."""
    shown = features.tolist()
    spread = {i: say.error_of(e, i) or 0.0 for i in shown}
    axis = Axis.of((float(e.scores[i]) - spread[i], float(e.scores[i]) + spread[i]) for i in shown)
    values = e.input.shown() if isinstance(e.input, TableInput) else None
    rows = ""
    for i in shown:
        score, name = float(e.scores[i]), escaped(say.on_one_line(e.features[i]))
        value = f'<td class="name quiet tight">{escaped(values[i])}</td>' if values else ""
        whisker = axis.line(score - spread[i], score + spread[i]) if spread[i] else ""
        error = (
            f'<td class="number quiet tight">{say.error_text(e, i)}</td>'
            if e.standard_errors is not None
            else ""
        )
        rows += (
            f'<tr><th scope="row" class="name tight" title="{name}" lang="">{name}</th>{value}'
            f'<td><span class="track">{axis.bar(score, "support" if score > 0 else "against")}'
            f"{axis.zero()}{whisker}</span></td>"
            f'<td class="number tight">{say.score_text(e, i)}</td>{error}</tr>'
        )
    return f"<table><tbody>{rows}</tbody></table>"
