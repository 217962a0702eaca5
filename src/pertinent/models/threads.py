"""Number of OpenMP threads with which a model on the CPU is fastest."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

FIRST_WAIT, WAIT_FACTOR, LONGEST_WAIT = 32, 4, 512
"""Number of batches between two trials; each failed trial multiplies it, up to the largest number."""

FASTER = 0.9
"""A larger number of threads is kept if a batch takes less than this fraction of the time."""

DROP = 1.5
"""A trial starts when a batch takes this many times as long as before."""


@cache
def thread_pools() -> ThreadpoolController:
    """Return the thread pools of the libraries loaded at the first call; finding them takes 10 ms."""
    return ThreadpoolController()


class ThreadCount:
    """The number of OpenMP threads for batches of one kind, chosen by measured throughput.

    On a quiet machine, all cores are usually best. On a busy machine, threads wait for each other, so fewer
    threads can be many times as fast. Occasionally a batch is computed with half or twice the number of
    threads, and the number is kept if it is faster. The limit applies only to the calling thread.

    Parameters
    ----------
    most
        Largest number of threads; by default the number that OpenMP libraries currently use.
    """

    def __init__(self, most: int | None = None) -> None:
        self._pools: ThreadpoolController | None = None
        self._most = most or 0
        self._n = 0
        self._trial: int | None = None
        self._pace: float | None = None
        self._wait, self._left = FIRST_WAIT, 1
        self._is_down = True

    def __reduce__(self) -> tuple[type[ThreadCount], tuple[()]]:
        """Serialise without measurements, which are only valid for this machine."""
        return ThreadCount, ()

    @property
    def n(self) -> int:
        """Return the number of threads for the next batch; 0 before the first."""
        return self._trial or self._n

    def limit(self) -> AbstractContextManager[Any]:
        """Return a context that limits OpenMP to the number of threads for the next batch."""
        if self._pools is None:
            self._pools = ThreadpoolController().select(user_api="openmp")
            self._most = self._most or max((pool["num_threads"] for pool in self._pools.info()), default=1)
            self._n = self._most
        return nullcontext() if self.n == self._most else self._pools.limit(limits=self.n)

    def observe(self, cost: float, seconds: float) -> None:
        """Record the time of a batch and decide the number of threads for the next one."""
        if self._most <= 1:
            return
        pace = seconds / cost
        if self._pace is None:  # the first batch includes start-up costs
            self._pace = 0.0
        elif self._trial is not None:
            self._judge(self._trial, pace)
        else:
            self._left = 0 if self._left <= 1 or pace > DROP * self._pace > 0 else self._left - 1
            self._pace = (self._pace + pace) / 2 if self._left and self._pace else pace
            if not self._left:
                self._trial = self._neighbour()

    def _judge(self, trial: int, pace: float) -> None:
        """Keep a trial's number of threads if it was faster, and then try the next number immediately."""
        assert self._pace is not None
        if pace < self._pace * (1.0 if trial < self._n else FASTER):
            self._n, self._pace = trial, pace
            self._wait = self._left = FIRST_WAIT
            self._trial = self._neighbour() if 1 < trial < self._most else None
        else:
            self._trial = None
            self._left = self._wait
            self._wait = min(self._wait * WAIT_FACTOR, LONGEST_WAIT)
            self._is_down = not self._is_down

    def _neighbour(self) -> int:
        """Return half or twice the number of threads, in the direction of the last success."""
        self._is_down = self._n > 1 and (self._is_down or self._n == self._most)
        return self._n // 2 if self._is_down else min(2 * self._n, self._most)
