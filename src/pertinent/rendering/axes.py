"""Layout of axis ticks and point labels in pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

_LETTER = 7.0
"""Width of a digit, in pixels."""


@dataclass(frozen=True)
class AxisScale:
    """A linear or logarithmic mapping from [low, high] to the coordinates [start, end].

    >>> AxisScale(0, 10, 100, 200).position(5)
    150.0
    >>> AxisScale(1, 100, 0, 10, is_log=True).position(10)
    5.0
    """

    low: float
    high: float
    start: float
    end: float
    is_log: bool = False

    def position(self, value: float) -> float:
        """Return the coordinate of a value."""
        low, high = self.low, self.high
        if self.is_log:
            low, high, value = log10(low), log10(high), log10(value)
        return round(self.start + (self.end - self.start) * (value - low) / ((high - low) or 1.0), 1)

    def ticks(self) -> list[tuple[float, str]]:
        """Return the coordinates and labels of a few round numbers.

        >>> [text for _, text in AxisScale(0.03, 0.47, 0, 1).ticks()]
        ['0.1', '0.2', '0.3', '0.4']
        >>> [text for _, text in AxisScale(0.7, 250, 0, 1, is_log=True).ticks()]
        ['1', '10', '100']
        """
        values = _powers(self.low, self.high) if self.is_log else _round_numbers(self.low, self.high)
        return [(self.position(value), f"{value:g}") for value in values]

    @property
    def margin(self) -> float:
        """Return the width of the tick labels of a vertical axis, in pixels."""
        return _LETTER * max((len(text) for _, text in self.ticks()), default=0) + 16


def _round_numbers(low: float, high: float) -> list[float]:
    rough = (high - low) / 4 or 1.0
    power = 10.0 ** floor(log10(rough))
    step = min((power * n for n in (1, 2, 5, 10)), key=lambda step: abs(step - rough))
    return [round(step * i, 12) for i in range(ceil(low / step), floor(high / step) + 1)]


def _powers(low: float, high: float) -> list[float]:
    tens = [10.0**i for i in range(ceil(log10(low)), floor(log10(high)) + 1)]
    if len(tens) > 2:
        return tens
    exponents = range(floor(log10(low)), ceil(log10(high)) + 1)
    return [n * 10.0**i for i in exponents for n in (1, 2, 5) if low <= n * 10.0**i <= high]


def label_rows(boxes: Sequence[tuple[float, float, float]], line: float) -> list[int]:
    """Return the number of lines by which each label moves up to avoid overlap with earlier labels.

    A box is the (left, right, height) of a label; `line` is the distance between lines.

    >>> label_rows([(0, 50, 0), (20, 70, 1), (90, 120, 0), (60, 100, 0)], line=10)
    [0, 1, 0, 3]
    """
    rows: list[int] = []
    for i, (left, right, height) in enumerate(boxes):
        taken = [
            other + line * row
            for (start, end, other), row in zip(boxes[:i], rows, strict=True)
            if start < right and left < end
        ]
        free = (row for row in range(i + 1) if all(abs(height + line * row - y) >= line for y in taken))
        rows.append(next(free, i))
    return rows
