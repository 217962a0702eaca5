"""The meter counts the evaluations of an explanation and enforces its budget."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable
from dataclasses import replace
from typing import Any

from pertinent.asks import Algorithm, Ask, Compute, Fork, Publish, Question, relay
from pertinent.errors import BudgetError


class Meter:
    """The meter between an algorithm and the engine.

    It sees every question before the cache does, so the cost of a method does not depend on earlier methods.
    Each branch of a fork has the full budget. `evaluations` is the sum over all branches, and `kinds` holds
    the question types of all branches.
    """

    def __init__(self, budget: int, total: list[int] | None = None, kinds: set[type] | None = None) -> None:
        self.budget = budget
        self.kinds: set[type] = set() if kinds is None else kinds
        self._paid: defaultdict[type, set[Hashable]] = defaultdict(set)
        self._spent = self._price = 0
        self._total = [0] if total is None else total  # shared with the meters of branches

    @property
    def evaluations(self) -> int:
        """Return the number of evaluations so far, in all branches."""
        return self._total[0]

    def watch(self, algorithm: Algorithm) -> Algorithm:
        """Run an algorithm and charge its questions to the budget."""
        return relay(algorithm, self._charge, self._refund)

    def _charge(self, ask: Ask) -> Ask:
        if isinstance(ask, Publish):
            return replace(ask, evaluations=self.evaluations)
        if isinstance(ask, Compute):
            return ask
        if isinstance(ask, Fork):
            return Fork(
                [Meter(self.budget, self._total, self.kinds).watch(branch) for branch in ask.branches]
            )
        self.kinds.add(type(ask))
        self._price = ask.price(self._paid[type(ask)])
        self._spend(self._price)
        if self._spent > self.budget:
            raise BudgetError(
                f"The method requested {self._spent} evaluations, but its budget is {self.budget}."
            )
        return ask

    def _refund(self, ask: Ask, answer: Any) -> None:
        """Refund the part of the last price that the answer did not need."""
        if isinstance(ask, Question):
            self._spend(-min(self._price, ask.unspent(answer)))

    def _spend(self, price: int) -> None:
        self._spent += price
        self._total[0] += price
