"""Bounded queue that limits concurrent explanations."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator

from pertinent.errors import PertinentError


class QueueFull(PertinentError):
    """Raised when no further request may wait."""


class Admission:
    """A request that runs or waits; call `leave` when it ends, however it ends.

    Attributes
    ----------
    admitted
        Set once the request may run.
    """

    def __init__(self, queue: AdmissionQueue) -> None:
        self._queue = queue
        self.admitted = asyncio.Event()

    async def positions(self, interval: float = 1.0) -> AsyncIterator[int]:
        """Yield the position in the queue, from 1, every `interval` seconds until the request is admitted."""
        while not self.admitted.is_set():
            yield self._queue.waiting.index(self) + 1
            try:
                await asyncio.wait_for(self.admitted.wait(), interval)
            except TimeoutError:
                continue

    def leave(self) -> None:
        """Leave the queue, so that the next request is admitted; a second call has no effect."""
        self._queue.remove(self)


class AdmissionQueue:
    """First-in, first-out queue that runs `max_concurrent` requests and lets `max_waiting` wait."""

    def __init__(self, max_concurrent: int, max_waiting: int) -> None:
        self.max_concurrent, self.max_waiting = max_concurrent, max_waiting
        self.waiting: deque[Admission] = deque()
        self.running: set[Admission] = set()

    def enter(self) -> Admission:
        """Add a request; raise `QueueFull` if it can neither run nor wait."""
        admission = Admission(self)
        if len(self.running) < self.max_concurrent:
            self.running.add(admission)
            admission.admitted.set()
        elif len(self.waiting) < self.max_waiting:
            self.waiting.append(admission)
        else:
            raise QueueFull(
                f"{self.max_concurrent} explanations are running and {self.max_waiting} are waiting: "
                "try again in a moment."
            )
        return admission

    def remove(self, admission: Admission) -> None:
        """Remove a request, and admit the next one if it was running."""
        if admission in self.waiting:
            self.waiting.remove(admission)
        elif admission in self.running:
            self.running.remove(admission)
            if self.waiting:
                following = self.waiting.popleft()
                self.running.add(following)
                following.admitted.set()
