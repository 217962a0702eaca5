"""How an algorithm that asks for values is answered: in probabilities or logits, draws together or apart."""

from __future__ import annotations

from dataclasses import replace

from pertinent.asks import Algorithm, Ask, Fork, Partial, TreeValues, Values, relay
from pertinent.outputs import Scale


def on_scale(algorithm: Algorithm, scale: Scale, groups: int = 0) -> Algorithm:
    """The same algorithm, whose questions for values are asked on the scale, and for groups of draws."""
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
