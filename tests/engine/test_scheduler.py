"""Rows that wait are put into good batches, and none waits for ever. No model is needed."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pertinent.asks import MaskGradients, Values
from pertinent.engine.job import Chunk, OpenQuestion
from pertinent.engine.scheduler import FULL, GOOD, SMALL_TURN, Scheduler


class Waiting(OpenQuestion):
    """A question of a kind, asked by a job of this number."""

    def __init__(self, kind=Values, number=0):
        self.run = SimpleNamespace(number=number)
        self.question = kind.__new__(kind)
        self.withdrawn = False


def chunk(cost, n, *, kind=Values, group="", question=None, name="row"):
    question = question or Waiting(kind)
    return Chunk(question, group, np.arange(n), [(name, cost, i) for i in range(n)], cost)


def scheduler(limit=600, overhead=20, penalty=0.0):
    return Scheduler(lambda _: limit, overhead, penalty)


def costs(batch):
    return sorted({chunk.cost for chunk in batch})


def size(batch):
    return sum(chunk.total for chunk in batch)


@settings(max_examples=80, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(1, 50), st.integers(1, 40), st.sampled_from("ab")), min_size=1, max_size=60
    ),
    st.integers(1, 300),
    st.sampled_from([0, 5, 50]),
    st.sampled_from([0.0, 0.3]),
)
def test_batches_keep_their_limit_their_lane_and_every_row(waiting, limit, overhead, penalty):
    queue = scheduler(limit, overhead, penalty)
    expected = []
    for number, (cost, n, group) in enumerate(waiting):
        queue.put(chunk(cost, n, group=group, name=number))
        expected += [(number, cost, i) for i in range(n)]
    assert queue.cost == sum(cost * n for cost, n, _ in waiting)
    taken = []
    while queue.cost:
        batch = queue.pop_batch(GOOD) or queue.pop_batch()
        rows = [key for part in batch for key in part.keys]
        assert rows
        assert len({part.group for part in batch}) == 1
        assert len(rows) == 1 or len(rows) * max(costs(batch)) <= limit
        taken += rows
    assert sorted(taken) == sorted(expected)
    assert queue.pop_batch() == []


def test_kinds_and_groups_never_share_a_batch():
    queue = scheduler()
    for kind in (Values, MaskGradients):
        for group in ("small", "large"):
            queue.put(chunk(10, 3, kind=kind, group=group))
    batches = [queue.pop_batch() for _ in range(4)]
    assert len({(batch[0].kind, batch[0].group) for batch in batches}) == 4
    assert all(size(batch) == 30 for batch in batches)


@pytest.mark.parametrize(("overhead", "together"), [(4, [12]), (10, [11, 12]), (60, [10, 11, 12])])
def test_rows_are_padded_where_that_costs_less_than_a_batch_of_their_own(overhead, together):
    queue = scheduler(overhead=overhead)
    for cost, n in ((10, 20), (11, 5), (12, 20)):
        queue.put(chunk(cost, n))
    batches = []
    while queue.cost:
        batches.append(queue.pop_batch())
    assert together in [costs(batch) for batch in batches]


def test_only_a_good_batch_is_taken_where_one_is_asked_for():
    """With an overhead of 20 in 600, nine tenths of the efficiency of a full batch take 135."""
    queue = scheduler()
    queue.put(chunk(10, 13))
    assert queue.pop_batch(GOOD) == []
    queue.put(chunk(10, 1))
    assert size(queue.pop_batch(GOOD)) == 140
    queue.put(chunk(10, 40))
    assert queue.pop_batch(FULL) == []
    queue.put(chunk(10, 21))
    assert size(queue.pop_batch(FULL)) == 600
    assert queue.cost == 10


def test_a_limit_below_the_overhead_still_has_full_batches():
    queue = scheduler(limit=8, overhead=64)
    queue.put(chunk(1, 20))
    assert [size(queue.pop_batch(FULL)) for _ in range(3)] == [8, 8, 0]


@pytest.mark.parametrize("order", [(10, 30, 20), (20, 10, 30), (30, 20, 10)])
def test_of_good_batches_the_one_with_the_oldest_job_goes_first(order):
    queue = scheduler()
    for cost in (30, 10, 20):
        queue.put(chunk(cost, 600 // cost, question=Waiting(number=order.index(cost))))
    assert [costs(queue.pop_batch(GOOD)) for _ in order] == [[cost] for cost in order]


def test_a_small_batch_gets_its_turn_among_good_ones():
    """Rows of one cost come again and again; two of another are soon taken between them."""
    queue = scheduler()
    queue.put(chunk(3, 2, name="few"))
    taken = []
    for _ in range(2 * SMALL_TURN):
        queue.put(chunk(10, 60))
        taken.append(costs(queue.pop_batch(GOOD)))
    assert taken.count([3]) == 1
    assert taken.index([3]) < SMALL_TURN
    assert taken.count([10]) == 2 * SMALL_TURN - 1


def test_a_small_batch_does_not_go_while_nothing_good_is_there():
    queue = scheduler()
    queue.put(chunk(3, 2))
    assert [queue.pop_batch(GOOD) for _ in range(2 * SMALL_TURN)] == [[]] * 2 * SMALL_TURN
    assert queue.cost == 6


def test_rows_of_a_question_that_is_withdrawn_are_forgotten():
    queue = scheduler()
    one, other = Waiting(), Waiting()
    for cost in (5, 6):
        queue.put(chunk(cost, 4, question=one))
        queue.put(chunk(cost, 3, question=other))
    queue.put(chunk(7, 2, question=one))
    queue.withdraw([one])
    assert one.withdrawn and not other.withdrawn
    assert queue.cost == 3 * 5 + 3 * 6
    left = queue.pop_batch() + queue.pop_batch()
    assert {part.open for part in left} == {other}
    assert queue.cost == 0


def test_the_backlog_counts_batches_of_each_kind():
    queue = Scheduler({Values: 100, MaskGradients: 10}.__getitem__, 20, 0.0)
    queue.put(chunk(10, 5))
    queue.put(chunk(5, 6, kind=MaskGradients))
    assert queue.backlog == pytest.approx(0.5 + 3)
