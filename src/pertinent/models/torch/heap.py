"""The C library's heap, which keeps what was freed for later use."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

GROWTH = 1 / 32
"""How much the process may grow before it gives back: oftener costs time, as pages come back empty."""


class Heap:
    """Gives freed memory back when the process has grown, where the C library is one that can.

    No two of our batches need be alike, so what one frees may fit none of the next, and the
    process would go on growing.
    """

    def __init__(self) -> None:
        library = ctypes.CDLL(None) if sys.platform == "linux" else None
        self._trim = getattr(library, "malloc_trim", None)
        self._needed = 0

    def give_back(self) -> None:
        """Give back what was freed, if that may be much; to be called before each batch.

        What the first batch after that needs is taken for what any needs.
        """
        if self._trim is None:
            return
        now = resident()
        self._needed = self._needed or now
        if now > self._needed * (1 + GROWTH):
            self._trim(0)
            self._needed = 0


def resident() -> int:
    """The bytes of this process that lie in memory (Linux)."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
