"""How a search got on: what it had reached after each evaluation."""

from __future__ import annotations

from collections.abc import Callable

from pertinent.engine.asks import Algorithm, Values
from pertinent.types import Masks


def followed(
    search: Algorithm, sets_of: Callable[[Masks], Masks], target: int, k: int, log: list[list[float]]
) -> Algorithm:
    """The same search; `log` gets [evaluations, p] whenever a set of k features beats all before.

    Only questions about sets of exactly k features count, so what a method asks for to prepare
    itself, such as the masks of LIME, does not.
    """
    seen: set[bytes] = set()
    passes = 0
    answer = None
    while True:
        try:
            ask = search.send(answer)
        except StopIteration as stop:
            return stop.value
        answer = yield ask
        if not isinstance(ask, Values):
            passes += 2 * len(ask.keys)  # type: ignore[union-attr]
            continue
        sets = sets_of(ask.masks)
        lower = sets is not ask.masks
        judged = (sets.sum(axis=1) == k).all()
        for key, p in zip(ask.keys, answer[:, target].tolist(), strict=True):
            seen.add(key)
            better = not log or (p < log[-1][1] if lower else p > log[-1][1])
            if judged and better:
                log.append([len(seen) + passes, p])
