"""Finding a good batch size while working."""

from __future__ import annotations


class BatchSize:
    """Doubles the cost of a batch while the device gets through it faster, and halves on out-of-memory.

    Explanations do not depend on it: it only decides how many rows travel together.
    """

    TRIALS = 3
    WORTHWHILE = 1.05

    def __init__(self, first: int, largest: int, fixed: int | None = None) -> None:
        self.cost = fixed or first
        self._largest = largest
        self._growing = fixed is None
        self._speeds: list[float] = []
        self._best = 0.0

    def observe(self, cost: int, seconds: float) -> None:
        """Learn from a batch that has been answered."""
        if not self._growing or seconds <= 0 or cost < 0.8 * self.cost:
            return
        self._speeds.append(cost / seconds)
        if len(self._speeds) < self.TRIALS:
            return
        speed, self._speeds = max(self._speeds), []
        if speed < self._best * self.WORTHWHILE:
            self.cost //= 2
            self._growing = False
        elif self.cost * 2 > self._largest:
            self._growing = False
        else:
            self._best = speed
            self.cost *= 2

    def halve(self, failed: int) -> None:
        """A batch of this cost did not fit into memory."""
        self.cost = max(1, min(self.cost, failed) // 2)
        self._growing = False
