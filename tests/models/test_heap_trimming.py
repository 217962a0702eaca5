"""Freed memory goes back when the process has grown."""

import sys

import numpy as np
import pytest

from pertinent.models.torch import devices as heap

linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def test_memory_goes_back_only_after_growth(monkeypatch):
    """Growth counts from what is held after the first batch, and after the one that follows each time."""
    trimmed = []
    now = iter([100, 102, 104, 95, 97, 98, 101, 120, 121])
    monkeypatch.setattr(heap, "resident_memory", lambda: next(now))
    kept = heap.MemoryTrimmer()
    kept._trim = trimmed.append
    for given_back in (0, 0, 1, 1, 1, 2, 2, 3, 3):
        kept.trim()
        assert len(trimmed) == given_back


def test_where_it_cannot_go_back_nothing_is_asked(monkeypatch):
    monkeypatch.setattr(heap.sys, "platform", "elsewhere")
    monkeypatch.setattr(heap, "resident_memory", lambda: pytest.fail("asked"))
    heap.MemoryTrimmer().trim()


@linux
def test_resident_memory_grows_with_what_is_used():
    before = heap.resident_memory()
    block = np.ones(8_000_000)
    assert heap.resident_memory() - before > 0.9 * block.nbytes
