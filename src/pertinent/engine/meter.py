"""Counts what one explanation asks for, and holds it to its budget."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable
from typing import Any

from pertinent.asks import Algorithm, Ask, Fork
from pertinent.errors import BudgetError


class Meter:
    """Stands between an algorithm and the engine.

    It sees every question before the cache does, so no method gets cheaper because another ran first.
    Branches of a fork have a budget each, and are counted together in `evaluations`.
    """

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self._paid: defaultdict[type, set[Hashable]] = defaultdict(set)
        self._spent = 0
        self._branches: list[Meter] = []

    @property
    def evaluations(self) -> int:
        """What was spent so far."""
        return self._spent + sum(branch.evaluations for branch in self._branches)

    def watch(self, algorithm: Algorithm) -> Algorithm:
        """The same algorithm, counted."""
        answer: Any = None
        error: Exception | None = None
        while True:
            try:
                ask = algorithm.send(answer) if error is None else algorithm.throw(error)
            except StopIteration as stop:
                return stop.value
            before, error = self._spent, None
            try:
                answer = yield self._charged(ask)
            except Exception as raised:  # noqa: BLE001  for the algorithm to deal with
                error = raised
            else:
                if not isinstance(ask, Fork):
                    self._spent -= min(self._spent - before, ask.unspent(answer))

    def _charged(self, ask: Ask) -> Ask:
        if isinstance(ask, Fork):
            meters = [Meter(self.budget) for _ in ask.branches]
            self._branches += meters
            return Fork([m.watch(b) for m, b in zip(meters, ask.branches, strict=True)])
        self._spent += ask.price(self._paid[type(ask)])
        if self._spent > self.budget:
            raise BudgetError(
                f"The method asked for {self._spent} evaluations, but its budget is {self.budget}."
            )
        return ask
