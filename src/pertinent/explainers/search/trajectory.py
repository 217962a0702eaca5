"""The course of a search: the best objective so far, by number of evaluations."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from pertinent.array_types import Floats, Masks
from pertinent.asks import Algorithm, Ask, Question, Values, relay


def followed(
    search: Algorithm,
    sets_of: Callable[[Masks], Masks],
    objective: Callable[[Floats], Floats],
    k: int,
    log: list[list[float]],
    *,
    passes: int = 0,
) -> Algorithm:
    """The same search, which adds [evaluations, objective] to `log` at each improvement.

    Only sets of exactly k features can be an improvement, so preparatory questions, such as the masks
    of LIME, cannot. `passes` were made before.
    """
    paid: set[Hashable] = set()

    def record(ask: Ask, answer: Any) -> None:
        nonlocal passes
        if not isinstance(ask, Values):
            passes += ask.price(paid) if isinstance(ask, Question) else 0
            return
        sets = sets_of(ask.masks)
        lower = sets is not ask.masks
        judged = (sets.sum(axis=1) == k).all()
        for key, reached in zip(ask.keys, objective(answer).tolist(), strict=True):
            paid.add(key)
            better = not log or (reached < log[-1][1] if lower else reached > log[-1][1])
            if judged and better:
                log.append([len(paid) + passes, reached])

    return relay(search, on_answer=record)
