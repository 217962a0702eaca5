"""The desk: so many explanations at once, the others wait in line, and the line is not endless."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator

from pertinent.errors import PertinentError


class QueueFull(PertinentError):
    """The line is as long as it may be."""


class Admission:
    """A place at the desk, or in the line before it; `leave` it in any case."""

    def __init__(self, desk: AdmissionQueue) -> None:
        self._desk = desk
        self.called = asyncio.Event()

    async def positions(self, every: float = 1.0) -> AsyncIterator[int]:
        """The position in line, from 1, `every` so many seconds until it is this turn's."""
        while not self.called.is_set():
            yield self._desk.line.index(self) + 1
            try:
                await asyncio.wait_for(self.called.wait(), every)
            except TimeoutError:
                continue

    def leave(self) -> None:
        """Make room for the next; leaving twice is leaving once."""
        self._desk.remove(self)


class AdmissionQueue:
    """Serves `at_once` people at the same time, in the order in which they come; `most_waiting` may wait."""

    def __init__(self, at_once: int, most_waiting: int) -> None:
        self.at_once, self.most_waiting = at_once, most_waiting
        self.line: deque[Admission] = deque()
        self._served: set[Admission] = set()

    def enter(self) -> Admission:
        """Get in line."""
        turn = Admission(self)
        if len(self._served) < self.at_once:
            self._served.add(turn)
            turn.called.set()
        elif len(self.line) < self.most_waiting:
            self.line.append(turn)
        else:
            raise QueueFull(
                f"{self.at_once} explanations are under way and {self.most_waiting} are waiting: "
                "try again in a moment."
            )
        return turn

    def remove(self, turn: Admission) -> None:
        """Take a turn out, and call the next."""
        if turn in self.line:
            self.line.remove(turn)
        elif turn in self._served:
            self._served.remove(turn)
            if self.line:
                following = self.line.popleft()
                self._served.add(following)
                following.called.set()
