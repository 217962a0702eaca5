"""Finding a good batch size while working."""

from __future__ import annotations

QUICK = 0.05
"""Seconds: a batch that takes less is doubled, because launching it is too large a part of its time."""

SLOW = 1.0
"""Seconds: a batch that takes more is never doubled, so that progress is seen and little is lost."""

PAYS = 0.75
"""A size is doubled again if, row by row, it takes at most this part of the time that half of it took."""

TRUST = 16
"""Full batches that must fit into memory before a size that once did not fit is tried again."""


class BatchSize:
    """Doubles the cost of a batch while that pays, and halves it when memory runs out.

    It pays while a batch is computed quickly, or while every doubling makes rows cheaper, as for a model
    that takes its time over any call. A busy machine makes a batch look slow, which delays growth but
    never ends it. Explanations do not depend on the size: it only decides how many rows are computed
    together.
    """

    def __init__(self, first: int, largest: int, fixed: int | None = None) -> None:
        self.cost = fixed or first
        self._largest = fixed or largest
        self._too_large: int | None = None
        self._fitted = 0
        self._before = self.cost
        self._fastest: dict[int, float] = {}

    def observe(self, cost: int, seconds: float) -> None:
        """Learn from a batch that has been answered, unless twice its rows would have fitted."""
        if 2 * cost <= self.cost:
            return
        self._fitted += 1
        if self._fitted >= TRUST:
            self._too_large = None
        shrunken = self.cost < self._before
        larger = 2 * self.cost
        fits = larger <= self._largest and (self._too_large is None or larger < self._too_large)
        if fits and (shrunken or self._pays(seconds)):
            self.cost = larger

    def _pays(self, seconds: float) -> bool:
        """Whether to double, by the fastest batch of this size and of half of it."""
        fastest = min(seconds, self._fastest.get(self.cost, seconds))
        self._fastest[self.cost] = fastest
        half = self._fastest.get(self.cost // 2)
        return fastest < QUICK or (fastest < SLOW and (half is None or fastest / 2 < PAYS * half))

    def halve(self, failed: int) -> None:
        """A batch of this cost did not fit into memory."""
        if self._too_large is None:
            self._before = self.cost
        self._too_large, self._fitted = failed, 0
        self.cost = max(1, min(self.cost, failed) // 2)

    def restore(self) -> None:
        """A single row did not fit into memory, so the size was not to blame: go back to what it was."""
        self.cost, self._too_large = self._before, None
