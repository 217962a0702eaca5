"""Meanings of a model's output row, one file per kind."""

from __future__ import annotations

from pertinent.errors import require, unknown
from pertinent.outputs.base import SCALES, TINY, Output, Scale, column_index, percent
from pertinent.outputs.log_likelihoods import PER_TOKEN, LogLikelihoods
from pertinent.outputs.probabilities import Classes, Labels, Probabilities, log_odds, softmax
from pertinent.outputs.values import PlainValues

__all__ = [
    "NAMES",
    "SCALES",
    "TINY",
    "Classes",
    "Labels",
    "LogLikelihoods",
    "Output",
    "PlainValues",
    "Probabilities",
    "Scale",
    "column_index",
    "log_odds",
    "output_named",
    "percent",
    "softmax",
]

_PROBABILITIES = {
    output.name: output for kind in (Classes, Labels) for output in (kind(), kind(from_logits=True))
}

NAMES = (*_PROBABILITIES, "value", "log-likelihood")
"""Values of ``output`` that `wrap` accepts."""


def output_named(name: str, unit: str | None = None) -> Output:
    """Return the output called `name`; only values and log-likelihoods have a unit.

    >>> output_named("value", "m²").describe(3.14159)
    '3.142 m²'
    """
    if name not in NAMES:
        raise unknown("output", name, NAMES)
    if name == "value":
        return PlainValues(unit or "")
    if name == "log-likelihood":
        require(unit in (None, "nats", PER_TOKEN), "unit", f"'nats' or {PER_TOKEN!r}", unit)
        return LogLikelihoods(unit or "nats")
    require(not unit, "unit", "omitted unless output='value'", unit)
    return _PROBABILITIES[name]
