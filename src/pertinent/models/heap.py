"""The C library's heap, which keeps what was freed for later use."""

from __future__ import annotations

import ctypes
import sys
import time

SECONDS = 1.0
"""Between two times that memory is given back; once for each batch would cost a quarter more time."""


class Heap:
    """Gives freed memory back now and then, where the C library is one that can.

    No two of our batches need be alike, so what one frees may fit none of the next, and the
    process would go on growing.
    """

    def __init__(self) -> None:
        library = ctypes.CDLL(None) if sys.platform == "linux" else None
        self._trim = getattr(library, "malloc_trim", None)
        self._last = time.monotonic()

    def give_back(self) -> None:
        """Give back what was freed, if that has not been done lately."""
        now = time.monotonic()
        if self._trim is not None and now - self._last >= SECONDS:
            self._trim(0)
            self._last = now
