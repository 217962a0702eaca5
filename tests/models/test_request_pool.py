"""Threads that send requests: errors, interruptions and pickling."""

import pickle

import pytest

from pertinent.models.request_pool import RequestPool


def test_results_are_in_the_order_of_the_items():
    answer = RequestPool(3).start(lambda number: number**2, range(20))
    assert answer.outputs() == [number**2 for number in range(20)]
    assert answer.done()
    assert answer.seconds() >= 0


def test_calls_that_have_not_begun_are_cancelled_after_an_error():
    begun = []

    def fail(number):
        begun.append(number)
        raise ValueError(f"number {number}")

    with pytest.raises(ValueError, match="number 0"):
        RequestPool(1).start(fail, range(1000)).outputs()
    assert len(begun) < 1000


def test_waiting_calls_stop_when_the_user_interrupts():
    pool, stopped = RequestPool(2), []

    def wait(number):
        if number == 0:
            raise KeyboardInterrupt
        stopped.append(pool.interrupted.wait(30))

    with pytest.raises(KeyboardInterrupt):
        pool.start(wait, [0, 1]).outputs()
    assert pool.interrupted.is_set()
    assert stopped in ([], [True])
    assert pool.start(len, ["ab"]).outputs() == [2]
    assert not pool.interrupted.is_set()


def test_another_process_gets_new_threads():
    pool = RequestPool(2)
    assert pool.start(len, ["ab"]).outputs() == [2]
    assert pickle.loads(pickle.dumps(pool)).start(len, ["abc"]).outputs() == [3]
