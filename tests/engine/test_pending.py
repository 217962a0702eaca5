"""Rows that wait travel in good company, and not too late."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pertinent.engine.pending import Pending


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 50), min_size=1, max_size=200), st.integers(1, 300))
def test_batches_keep_their_limit_and_lose_nothing(costs, limit):
    pending = Pending(start=20)
    keys = [i.to_bytes(2, "little") for i in range(len(costs))]
    pending.add(None, np.arange(len(costs)), keys, np.array(costs))
    assert pending.cost == sum(costs)
    taken = []
    while pending.cost:
        batch = pending.take(limit)
        rows = [key for chunk in batch for key in chunk.keys]
        assert rows
        assert len(rows) == 1 or len(rows) * max(chunk.cost for chunk in batch) <= limit
        taken += [(key, chunk.cost) for chunk in batch for key in chunk.keys]
    assert sorted(taken) == sorted(zip(keys, costs, strict=True))


@pytest.mark.parametrize(("start", "together"), [(4, {12}), (10, {12, 11}), (60, {12, 11, 10})])
def test_rows_are_padded_where_that_costs_less_than_a_batch_of_their_own(start, together):
    pending = Pending(start)
    costs = np.repeat([10, 11, 12], [20, 5, 20])
    pending.add(None, np.arange(45), [bytes([i]) for i in range(45)], costs)
    assert {chunk.cost for chunk in pending.take(600)} == together


def test_urgent_questions_go_first():
    pending = Pending(start=2)
    pending.add(None, np.arange(90), [bytes([i]) for i in range(90)], np.full(90, 10))
    pending.add(None, np.arange(1), [b"urgent"], np.array([3]), urgent=True)
    assert [chunk.keys for chunk in pending.take(600)] == [[b"urgent"]]
    assert {chunk.cost for chunk in pending.take(600)} == {10}


def test_few_rows_do_not_wait_for_long():
    """Rows of one cost come again and again; five of another are soon taken between them."""
    pending = Pending(start=16)
    pending.add(None, np.arange(5), [b"few"] * 5, np.full(5, 3))
    for _ in range(40):
        pending.add(None, np.arange(90), [b"many"] * 90, np.full(90, 10))
    batches = [{key for chunk in pending.take(600) for key in chunk.keys} for _ in range(20)]
    assert batches.count({b"few"}) == 1
