"""HTTP connections that are closed when no whole request head arrives."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 10.0
"""Seconds in which the head of a request must arrive."""


class TimedConnection(H11Protocol):
    """HTTP/1.1 connection with a time limit for the head of each request.

    uvicorn limits only the time between two requests, and only until the first byte of the next one.
    `Guard` limits the time of the body and of the answer.
    """

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the time limit of the first request."""
        super().connection_made(transport)
        self._limit()

    def data_received(self, data: bytes) -> None:
        """Read data; start the time limit before a request is whole, end it afterwards."""
        super().data_received(data)
        self._limit()

    def connection_lost(self, exc: Exception | None) -> None:
        """End the time limit."""
        super().connection_lost(exc)
        self._unlimit()

    def _limit(self) -> None:
        if self.cycle is not None and not self.cycle.response_complete:
            self._unlimit()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    def _unlimit(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
