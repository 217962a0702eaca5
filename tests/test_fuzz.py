"""Short fuzzes; ``python -m tests.fuzz`` and ``python -m tests.fuzz_pages`` run long ones."""

from __future__ import annotations

import logging
import warnings
from collections import Counter

import pytest

from tests.fuzz import fuzz, fuzz_files
from tests.fuzz_pages import fuzz_pages


@pytest.fixture(autouse=True)
def _quiet():
    logging.disable(logging.CRITICAL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    logging.disable(logging.NOTSET)


def test_every_call_returns_something_or_raises_an_error_of_ours():
    found = Counter(calls=0, returned=0, refused=0)
    found["places"] = {}
    fuzz(400, 13, found)
    assert not found["places"], next(iter(found["places"].values()))[1]
    assert found["calls"] >= 400
    assert found["returned"] > 50


def test_a_damaged_file_is_refused_or_holds_what_was_written():
    found = Counter()
    found["places"] = {}
    fuzz_files(300, 7, found)
    assert not found["places"], next(iter(found["places"].values()))[1]
    assert found["files"] == 300
    assert found["files refused"] > 150
    assert not found["silent"]


def test_every_request_to_a_page_is_answered_or_refused():
    found = Counter()
    found["places"] = {}
    fuzz_pages(1500, 5, found)
    assert not found["places"], next(iter(found["places"].values()))
    assert found["requests"] >= 1500
    assert min(found[200], found[303], found[400], found[403], found[404], found[422]) > 20
    assert found["people"] > 5 and found["answers"] > 5
