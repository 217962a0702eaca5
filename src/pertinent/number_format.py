"""Formatting of numbers for people."""

from __future__ import annotations

from math import isfinite

_LONG = 1e4
"""Smallest number with a thousands separator, so that years have none."""

_HUGE = 1e15


def number_text(value: float, digits: int = 4) -> str:
    """Format a number with `digits` significant digits, and at least all digits before the decimal point.

    >>> [number_text(value) for value in (50410.0, 2024.0, 3.14159, -1234567.8, 0.0, 1e20)]
    ['50,410', '2024', '3.142', '-1,234,568', '0', '1e+20']
    """
    size = abs(value)
    if isfinite(size) and size < _HUGE and round(size) >= 10**digits:
        return f"{value:,.0f}" if size >= _LONG else f"{value:.0f}"
    return f"{value:.{digits}g}"


def measure_text(value: float) -> str:
    """Format a measure with three decimals, or without decimals from 10,000 on.

    >>> [measure_text(value) for value in (0.12345, -17.78, 50410.4)]
    ['0.123', '-17.780', '50,410']
    """
    return f"{value:,.0f}" if _LONG <= abs(value) < _HUGE else f"{value:.3f}"


def count(n: int, noun: str) -> str:
    """Format a number with its noun, as ``1 input`` or ``1,200 inputs``."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"
