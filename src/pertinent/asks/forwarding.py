"""Running one algorithm inside another, with its asks, answers, errors and end passed on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pertinent.asks.base import Algorithm, Ask, Fork, Partial
from pertinent.asks.tree_values import TreeValues
from pertinent.asks.values import Values
from pertinent.outputs import Scale


def relay(
    algorithm: Algorithm,
    transform: Callable[[Ask], Ask] = lambda ask: ask,
    on_answer: Callable[[Ask, Any], Partial | None] | None = None,
) -> Algorithm:
    """Run an algorithm, and yield each of its asks as `transform` returns it.

    `on_answer` is told each ask, as the algorithm made it, with its answer, before the algorithm is; a
    `Partial` that it returns is published. Errors are raised in the algorithm at the ask that they belong to,
    those of `transform` and `on_answer` too. Closing the relay closes the algorithm.
    """
    answer: Any = None
    error: Exception | None = None
    try:
        while True:
            ask = algorithm.send(answer) if error is None else algorithm.throw(error)
            error = None
            try:
                answer = yield transform(ask)
                partial = on_answer(ask, answer) if on_answer is not None else None
                if partial is not None:
                    yield partial
            except Exception as raised:  # noqa: BLE001  for the algorithm to deal with
                error = raised
    except StopIteration as stop:
        return stop.value
    finally:
        algorithm.close()


def on_scale(algorithm: Algorithm, scale: Scale, groups: int = 0) -> Algorithm:
    """Run an algorithm with its questions for values asked on the scale, and for groups of draws."""
    if scale == "natural" and not groups:
        return algorithm
    return relay(algorithm, lambda ask: _asked_on(ask, scale, groups))


def _asked_on(ask: Ask, scale: Scale, groups: int) -> Ask:
    if isinstance(ask, Fork):
        return Fork([on_scale(branch, scale, groups) for branch in ask.branches])
    if isinstance(ask, Partial):
        return ask
    question = ask.on_scale(scale)
    return replace(question, groups=groups) if isinstance(question, Values | TreeValues) else question
