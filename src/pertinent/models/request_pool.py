"""Threads that send requests to an endpoint."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from time import perf_counter
from typing import Any

from pertinent.models.base import Answer


class RequestPool:
    """Threads that call a function for several items, created on first use."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._threads: ThreadPoolExecutor | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes, without the threads."""
        return vars(self) | {"_threads": None}

    def start(self, function: Callable[[Any], Any], items: Sequence[Any]) -> Answer:
        """Start the calls; the answer's outputs are a list of results.

        If a call raises an error, calls that have not begun are cancelled.
        """
        self._threads = self._threads or ThreadPoolExecutor(
            self.size, thread_name_prefix="pertinent-endpoint"
        )
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
                wait(futures, return_when=FIRST_EXCEPTION)
                for future in futures:
                    if future.done() and not future.cancelled():
                        future.result()  # raises the error of a failed call
                return [future.result() for future in futures]
            except BaseException:
                for future in futures:
                    future.cancel()
                raise

        return Answer(outputs, lambda: max(ends) - start, lambda: all(future.done() for future in futures))
