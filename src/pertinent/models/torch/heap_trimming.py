"""Returning memory to the system that the C library's heap keeps after it was freed."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

GROWTH = 1 / 32
"""How much the process may grow before a trim; more often would cost time in page faults."""


class Heap:
    """Returns freed memory to the system when the process has grown, if the C library can do that.

    Our batch shapes vary, so memory freed by one batch may not fit the next, and the process would
    keep growing.
    """

    def __init__(self) -> None:
        library = ctypes.CDLL(None) if sys.platform == "linux" else None
        self._trim = getattr(library, "malloc_trim", None)
        self._needed = 0

    def give_back(self) -> None:
        """Return freed memory to the system if the process has grown; call this before each batch.

        Growth is measured from the size of the process after the first batch since the last trim.
        """
        if self._trim is None:
            return
        now = resident()
        self._needed = self._needed or now
        if now > self._needed * (1 + GROWTH):
            self._trim(0)
            self._needed = 0


def resident() -> int:
    """The resident memory of this process in bytes (Linux)."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
