"""Counts the distinct masks that one explanation asks for, and holds it to its budget."""

from __future__ import annotations

from pertinent.engine.asks import Algorithm, Fork, Values
from pertinent.errors import BudgetError


class Meter:
    """Stands between an algorithm and the engine.

    It sees every ask before the cache does, so no method gets cheaper because another ran first.
    Branches of a fork have a budget each, and are counted together in `evaluations`.
    """

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self._seen: set[bytes] = set()
        self._branches: list[Meter] = []

    @property
    def evaluations(self) -> int:
        """Distinct masks asked for so far."""
        return len(self._seen) + sum(branch.evaluations for branch in self._branches)

    def watch(self, algorithm: Algorithm) -> Algorithm:
        """The same algorithm, counted."""
        answer = None
        while True:
            try:
                ask = algorithm.send(answer)
            except StopIteration as stop:
                return stop.value
            if isinstance(ask, Fork):
                meters = [Meter(self.budget) for _ in ask.branches]
                self._branches += meters
                ask = Fork([m.watch(b) for m, b in zip(meters, ask.branches, strict=True)])
            elif isinstance(ask, Values):
                self._seen.update(ask.keys)
                if len(self._seen) > self.budget:
                    raise BudgetError(
                        f"The method asked for {len(self._seen)} masks, but its budget is {self.budget}."
                    )
            answer = yield ask
