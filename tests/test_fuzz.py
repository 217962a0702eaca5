"""Short fuzzes; ``python -m tests.fuzz`` and ``python -m tests.fuzz_pages`` run long ones."""

from __future__ import annotations

import logging
import warnings

import pytest

from tests.fuzz import Counts, fuzz, fuzz_files
from tests.fuzz_pages import fuzz_pages


@pytest.fixture(autouse=True)
def _quiet():
    logging.disable(logging.CRITICAL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    logging.disable(logging.NOTSET)


def test_every_call_returns_or_raises_a_pertinent_error():
    counts = Counts()
    fuzz(400, 13, counts)
    assert not counts.errors, next(iter(counts.errors.values()))[1]
    assert counts["calls"] >= 400
    assert counts["returned"] > 50


def test_a_damaged_file_is_refused_or_read_unchanged():
    counts = Counts()
    fuzz_files(300, 7, counts)
    assert not counts.errors, next(iter(counts.errors.values()))[1]
    assert counts["files"] == 300
    assert counts["files refused"] > 150
    assert not counts["silent"]


def test_every_request_to_a_page_is_answered_or_refused():
    counts = Counts()
    fuzz_pages(1500, 2, counts)
    assert not counts.errors, next(iter(counts.errors.values()))
    assert counts["requests"] >= 1500
    assert min(counts[200], counts[303], counts[400], counts[403], counts[404], counts[422]) > 20
    assert counts["people"] > 5 and counts["answers"] > 5
