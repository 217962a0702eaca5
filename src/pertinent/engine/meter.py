"""Counts what one explanation asks for, and holds it to its budget."""

from __future__ import annotations

from pertinent.engine.asks import Algorithm, Fork, Values
from pertinent.errors import BudgetError


class Meter:
    """Stands between an algorithm and the engine.

    It sees every ask before the cache does, so no method gets cheaper because another ran first.
    A distinct mask counts as one, a gradient as two: one pass forward, one backward.
    Branches of a fork have a budget each, and are counted together in `evaluations`.
    """

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self._seen: set[bytes] = set()
        self._passes = 0
        self._branches: list[Meter] = []

    @property
    def evaluations(self) -> int:
        """Distinct masks, and passes for gradients, so far."""
        return self._spent + sum(branch.evaluations for branch in self._branches)

    @property
    def _spent(self) -> int:
        return len(self._seen) + self._passes

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
            else:
                if isinstance(ask, Values):
                    self._seen.update(ask.keys)
                else:
                    self._passes += 2 * len(ask.keys)
                if self._spent > self.budget:
                    raise BudgetError(
                        f"The method asked for {self._spent} evaluations, but its budget is {self.budget}."
                    )
            answer = yield ask
