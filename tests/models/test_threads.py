"""The number of threads of a model on the CPU."""

import pickle

import pytest
from threadpoolctl import threadpool_info

from pertinent.models.threads import FIRST_WAIT, ThreadCount


def simulate(count, seconds, n_batches):
    """Compute batches that take ``seconds(n)`` with n threads, and return the numbers of threads."""
    numbers = []
    for _ in range(n_batches):
        with count.limit():
            numbers.append(count.n)
        count.observe(1, seconds(count.n))
    return numbers


def test_all_threads_are_used_where_they_are_faster():
    numbers = simulate(ThreadCount(4), lambda n: 1 / n, 200)
    assert numbers[0] == 4
    assert numbers.count(4) > 190


def test_one_thread_is_used_where_threads_wait_for_each_other():
    numbers = simulate(ThreadCount(8), lambda n: 1.0 + (n > 1) * n, 200)
    assert numbers[:5] == [8, 8, 4, 2, 1]
    assert numbers.count(1) > 180


def test_the_best_number_between_the_limits_is_found():
    numbers = simulate(ThreadCount(16), lambda n: abs(n - 4) + 1, 300)
    assert numbers.count(4) > 280


@pytest.mark.parametrize(("before", "after"), [(4, 1), (1, 4)])
def test_the_number_follows_the_load(before, after):
    count = ThreadCount(4)
    pace = {4: lambda n: 1 / n, 1: float}
    assert simulate(count, pace[before], 60)[-1] == before
    assert after in simulate(count, pace[after], 600)[-30:]


def test_the_first_batch_decides_nothing():
    count = ThreadCount(2)
    slow = iter([100.0])
    simulate(count, lambda _: next(slow, 0.0), 1)
    assert simulate(count, lambda n: 1 / n, FIRST_WAIT)[0] == 2


def test_the_limit_applies_within_the_context_only():
    def n_threads():
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "openmp"]

    import torch  # noqa: F401  loads OpenMP

    before, count = n_threads(), ThreadCount(2)
    with count.limit():
        count.observe(1, 1.0)
    count.observe(1, 1.0)
    assert count.n == 1
    with count.limit():
        assert set(n_threads()) == {1}
    assert n_threads() == before


def test_measurements_are_not_pickled():
    count = ThreadCount(4)
    simulate(count, float, 20)
    assert pickle.loads(pickle.dumps(count)).n == 0


def test_an_engine_measures_its_batches():
    import numpy as np

    import pertinent as pt

    model = pt.wrap(lambda rows: rows[:, :1], output="value", background=np.zeros((4, 3)))
    pt.explain(model, np.ones(3), method="kernel-shap", budget=32, seed=0)
    assert {kind.__name__ for kind in model.thread_counts} >= {"Values"}
