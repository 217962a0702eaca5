"""The engine as a service: jobs come at any time, may be cancelled, and publish what they have found."""

import time

import numpy as np
import pytest

import pertinent
from pertinent.asks import Fork, Publish, Values
from pertinent.engine.engine import Engine
from pertinent.engine.meter import Meter
from pertinent.models.function import FunctionModel
from tests.engine.jobs import Counting, asks, job
from tests.engine.test_device import Waiting

ROWS = [[1, 0], [0, 1]]


def table_model():
    return FunctionModel(Counting(), kind="table")


def finish(engine):
    """What ends, in this order, until nothing is under way."""
    ended = []
    while engine.is_busy:
        ended += engine.step()
    return ended


# -- submit and step -----------------------------------------------------------------------------


def test_jobs_may_be_submitted_while_others_are_under_way():
    model = table_model()
    engine = Engine(model)
    assert engine.step() == []
    engine.submit(job(model, [1.0, 2.0], asks(ROWS, ROWS, [[1, 1]]), "first"))
    assert engine.step() == []
    engine.submit(job(model, [3.0, 4.0], asks([[1, 1]]), "second"))
    assert {done.key for done in finish(engine)} == {"first", "second"}
    assert not engine.is_busy
    (again,) = engine.run([job(model, [1.0, 2.0], asks(ROWS), "third")])
    assert again.key == "third"


def test_jobs_that_were_submitted_together_share_batches():
    model = table_model()
    engine = Engine(model)
    numbers = [engine.submit(job(model, [float(i), 1.0], asks(ROWS), i)) for i in range(8)]
    assert len(set(numbers)) == 8
    assert {done.key for done in engine.step()} | {done.key for done in finish(engine)} == set(range(8))
    assert model.function.batches == [16]


def test_a_service_is_told_when_there_is_room():
    model = table_model()
    engine = Engine(model, batch_size=8)
    submitted = 0
    while engine.has_room:
        engine.submit(job(model, [float(submitted), 1.0], asks(ROWS), submitted))
        submitted += 1
    assert 0 < submitted < 30
    assert len(finish(engine)) == submitted
    assert engine.has_room


# -- cancel --------------------------------------------------------------------------------------


class Patient:
    """Algorithms that note that they were closed."""

    def __init__(self):
        self.closed = []

    def asks(self, name, n=3):
        try:
            for i in range(n):
                yield Values(np.array([[i >> 1 & 1, i & 1]], dtype=bool))
        finally:
            self.closed.append(name)

    def forks(self, name):
        try:
            yield Values(np.array([[1, 1]], dtype=bool))
            yield Fork([self.asks("left"), self.forks_again(), self.asks("right")])
        finally:
            self.closed.append(name)

    def forks_again(self):
        try:
            yield Fork([self.asks("inner")])
        finally:
            self.closed.append("middle")


def test_a_cancelled_job_frees_its_questions_and_closes_its_algorithm():
    model, patient = table_model(), Patient()
    engine = Engine(model)
    number = engine.submit(job(model, [1.0, 2.0], patient.asks("only")))
    assert engine._scheduler.cost == 1
    assert engine.cancel(number)
    assert (engine._scheduler.cost, engine._unanswered, patient.closed) == (0, 0, ["only"])
    assert not engine.is_busy
    assert finish(engine) == []
    assert not engine.cancel(number)
    assert model.function.batches == []


def test_a_cancelled_job_frees_its_cached_answers():
    model = table_model()
    engine = Engine(model)
    number = engine.submit(job(model, [1.0, 2.0], asks(ROWS, [[1, 1]])))
    other = engine.submit(job(model, [5.0, 6.0], asks([[1, 1]], [[0, 0]])))
    engine.step()
    held = engine.cache._bytes
    assert engine.cancel(number)
    assert 0 < engine.cache._bytes < held
    assert engine.cancel(other)
    assert engine.cache._bytes == 0


def test_cancelling_closes_the_branches_of_forks():
    model, patient = table_model(), Patient()
    engine = Engine(model)
    number = engine.submit(job(model, [1.0, 2.0], patient.forks("root")))
    while engine._scheduler.cost < 3:
        engine._work()
    assert engine.cancel(number)
    assert patient.closed[-1] == "root"
    assert sorted(patient.closed) == ["inner", "left", "middle", "right", "root"]
    assert engine._scheduler.cost == 0
    assert finish(engine) == []


def test_answers_on_their_way_to_a_cancelled_job_are_discarded():
    model, patient = Waiting(), Patient()
    engine = Engine(model)
    number = engine.submit(job(model, [1.0, 2.0], patient.asks("cancelled"), 0))
    engine.submit(job(model, [3.0, 4.0], asks([[1, 1]], [[0, 0]]), 1))
    while not engine._flights:
        engine._work()
    assert engine.cancel(number)
    assert patient.closed == ["cancelled"]
    (done,) = finish(engine)
    assert (done.key, done.error) == (1, None)
    assert engine.cache._bytes == 0


@pytest.mark.parametrize("limit", [None, 3])
def test_the_others_are_answered_as_if_the_cancelled_job_had_never_been(limit):
    """Also where the batch that both were part of fails, and is made again in parts."""

    def answered(*, cancelled):
        model = Waiting()
        model.function.limit = limit
        engine = Engine(model)
        numbers = [engine.submit(job(model, [float(i), 1.0], asks(ROWS, [[1, 1]]), i)) for i in range(6)]
        engine._work()
        for i in cancelled:
            assert engine.cancel(numbers[i])
        return {done.key: done for done in finish(engine)}

    some, every = answered(cancelled=[0, 3]), answered(cancelled=[])
    assert sorted(some) == [1, 2, 4, 5]
    for key, done in some.items():
        assert done.error is None
        np.testing.assert_array_equal(done.result[0], every[key].result[0])


def test_an_algorithm_that_fails_when_it_is_closed_takes_no_other_with_it(caplog):
    model = table_model()
    engine = Engine(model)

    def stubborn():
        try:
            yield Values(np.array(ROWS, dtype=bool))
        finally:
            raise ValueError("cannot let go")

    number = engine.submit(job(model, [1.0, 2.0], stubborn(), 0))
    engine.submit(job(model, [3.0, 4.0], asks(ROWS), 1))
    assert engine.cancel(number)
    assert "cannot let go" in caplog.text
    assert [done.key for done in finish(engine)] == [1]


def test_a_run_that_is_broken_off_closes_its_algorithms():
    model, patient = table_model(), Patient()
    engine = Engine(model)
    algorithms = [patient.asks(i, n=1 + 3 * i) for i in range(3)]  # kept here: only the engine closes them
    running = engine.run(job(model, [float(i), 1.0], each, i) for i, each in enumerate(algorithms))
    assert next(running).key == 0
    running.close()
    assert sorted(patient.closed) == [0, 1, 2]
    assert not engine.is_busy


# -- partial findings ----------------------------------------------------------------------------


def publishing(n=3, made=None):
    for i in range(n):
        yield Values(np.array([[i >> 1 & 1, i & 1]], dtype=bool))
        answer = yield Publish(lambda i=i: made.append(i) or f"after {i}" if made is not None else i)
        assert answer is None
    return "whole"


def test_partial_findings_reach_the_listener_with_their_job_and_evaluations():
    model, heard = table_model(), []
    engine = Engine(model, on_partial=heard.append)
    meter = Meter(3)
    number = engine.submit(job(model, [1.0, 2.0], meter.watch(publishing(3, [])), "key"))
    (done,) = finish(engine)
    assert (done.result, meter.evaluations) == ("whole", 3)
    assert [(p.key, p.number, p.finding, p.evaluations) for p in heard] == [
        ("key", number, f"after {i}", i + 1) for i in range(3)
    ]


def test_without_a_listener_no_finding_is_made():
    model, made = table_model(), []
    (done,) = Engine(model).run([job(model, [1.0, 2.0], publishing(3, made))])
    assert (done.result, made) == ("whole", [])


def test_branches_publish_with_the_evaluations_of_the_whole_job():
    model, heard = table_model(), []

    def parent():
        yield Values(np.ones((1, 2), dtype=bool))
        return (yield Fork([publishing(2), publishing(2)]))

    engine = Engine(model, on_partial=heard.append)
    engine.submit(job(model, [1.0, 2.0], Meter(9).watch(parent())))
    (done,) = finish(engine)
    assert done.result == ["whole", "whole"]
    assert [p.finding for p in heard] == [0, 0, 1, 1]
    assert [p.evaluations for p in heard] == [3, 4, 5, 5]


def test_a_listener_that_has_seen_enough_cancels():
    model = table_model()
    heard = []

    def enough(partial):
        heard.append(partial.finding)
        if partial.finding == 1:
            assert engine.cancel(partial.number)

    engine = Engine(model, on_partial=enough)
    engine.submit(job(model, [1.0, 2.0], Meter(9).watch(publishing(4))))
    assert finish(engine) == []
    assert heard == [0, 1]


def test_a_finding_that_cannot_be_made_fails_its_job_alone():
    model = table_model()

    def broken():
        yield Publish(lambda: 1 / 0)

    engine = Engine(model, on_partial=lambda _: None)
    engine.submit(job(model, [1.0, 2.0], broken(), 0))
    engine.submit(job(model, [1.0, 2.0], asks(ROWS), 1))
    done = {each.key: each for each in finish(engine)}
    assert isinstance(done[0].error, ZeroDivisionError)
    assert done[1].error is None


# -- streams -------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["leave-one-out", "parallel-local-search"])
def test_the_first_result_of_a_slow_stream_comes_before_the_next_input_is_asked_for(method):
    asked = []

    def slow():
        for i in range(3):
            asked.append(i)
            time.sleep(0.3)
            yield [float(i), 1.0, 2.0, 3.0]

    model = pertinent.wrap(Counting(), kind="table")
    for n, explanation in enumerate(pertinent.explain_iter(model, slow(), method, budget=20)):
        assert explanation.index == n
        assert asked == list(range(n + 1))


def test_a_stream_that_becomes_slow_delays_results_once():
    asked, ahead = [], {}

    def source():
        for i in range(8):
            asked.append(i)
            time.sleep(0.3 if i > 3 else 0)
            yield [float(i), 1.0]

    model = pertinent.wrap(Counting(), kind="table")
    for explanation in pertinent.explain_iter(model, source(), "leave-one-out"):
        ahead[explanation.index] = len(asked) - 1
    assert max(ahead[i] for i in range(4)) <= 4
    assert [ahead[i] for i in range(4, 8)] == [4, 5, 6, 7]


def test_a_fast_stream_fills_batches():
    function = Counting()
    model = FunctionModel(function, kind="table")
    jobs = (job(model, [float(i), 1.0], asks(ROWS), i) for i in range(64))
    assert len(list(Engine(model, batch_size=8).run(jobs))) == 64
    assert function.batches == [8] * 16


@pytest.mark.parametrize("seconds", [0.0, 0.03, 0.1])
def test_a_result_of_a_slow_stream_is_yielded_when_it_is_ready(seconds):
    n_read = 0

    def source():
        nonlocal n_read
        for i in range(100):
            n_read += 1
            time.sleep(seconds)
            yield [float(i), 1.0, 2.0, 3.0]

    model = pertinent.wrap(Counting(), kind="table")
    next(pertinent.explain_iter(model, iter([[0.0, 1.0, 2.0, 3.0]]), "shapley", budget=40))  # imports
    next(pertinent.explain_iter(model, source(), "shapley", budget=40))
    assert n_read <= (2 if seconds else 64)
