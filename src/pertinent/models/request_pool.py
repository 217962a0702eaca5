"""Threads that send requests to an endpoint."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from threading import Event
from time import perf_counter
from typing import Any

from pertinent.models.base import Answer


class RequestPool:
    """Threads that call a function for several items, created on first use.

    Attributes
    ----------
    size
        Number of threads.
    interrupted
        Event that is set when the user interrupts the calls, so that calls that wait can stop.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.interrupted = Event()
        self._threads: ThreadPoolExecutor | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Return the number of threads."""
        return {"size": self.size}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the number of threads; they are created on first use."""
        vars(self).update(state, interrupted=Event(), _threads=None)

    def start(self, function: Callable[[Any], Any], items: Sequence[Any]) -> Answer:
        """Start the calls; the answer's outputs are a list of results.

        If a call raises an error, calls that have not begun are cancelled.
        """
        self._threads = self._threads or ThreadPoolExecutor(
            self.size, thread_name_prefix="pertinent-endpoint"
        )
        self.interrupted.clear()
        start = perf_counter()
        ends = [start]
        futures = [self._threads.submit(function, item) for item in items]

        def record_end(future: Future[Any]) -> None:
            ends.append(perf_counter())
            if not future.cancelled() and future.exception() is not None:
                for other in futures:
                    other.cancel()

        for future in futures:
            future.add_done_callback(record_end)

        def outputs() -> list[Any]:
            try:
                return _results(futures)
            except BaseException as error:
                for future in futures:
                    future.cancel()
                if not isinstance(error, Exception):
                    self.interrupted.set()
                raise

        return Answer(outputs, lambda: max(ends) - start, lambda: all(future.done() for future in futures))


def _results(futures: Sequence[Future[Any]]) -> list[Any]:
    """Wait for the results of all calls, or for the first error, and raise it."""
    wait(futures, return_when=FIRST_EXCEPTION)
    for future in futures:
        if future.done() and not future.cancelled():
            future.result()
    return [future.result() for future in futures]
