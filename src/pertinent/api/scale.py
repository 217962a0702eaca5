"""The scale of a request: an algorithm asks for values, and is answered with probabilities or logits."""

from __future__ import annotations

from typing import Any

from pertinent.asks import Algorithm, Ask, Fork
from pertinent.errors import SettingError
from pertinent.explainers.base import Explainer
from pertinent.outputs import Output, Scale


def check_scale(scale: Scale, explainer: Explainer, output: Output | None = None) -> None:
    """Raise a `SettingError` unless the method, and the model's output if it is known, have the scale."""
    if scale not in explainer.scales:
        raise SettingError(
            f"`scale` must be {' or '.join(map(repr, explainer.scales))} for {explainer.name}, but got "
            f"{scale!r}: choose a method that scores features by values, such as kernel-shap."
        )
    if scale == "logit" and output is not None and output.kind == "value":
        raise SettingError(
            "`scale` must be 'natural' for a regressor, whose values have no logits, but got 'logit'."
        )


def on_scale(algorithm: Algorithm, scale: Scale) -> Algorithm:
    """The same algorithm, whose questions for values are asked on the scale."""
    if scale == "natural":
        return (yield from algorithm)
    answer: Any = None
    error: Exception | None = None
    while True:
        try:
            ask = algorithm.send(answer) if error is None else algorithm.throw(error)
        except StopIteration as stop:
            return stop.value
        error = None
        try:
            answer = yield _asked_on(ask, scale)
        except Exception as raised:  # noqa: BLE001  for the algorithm to deal with
            error = raised


def _asked_on(ask: Ask, scale: Scale) -> Ask:
    if isinstance(ask, Fork):
        return Fork([on_scale(branch, scale) for branch in ask.branches])
    return ask.on_scale(scale)
