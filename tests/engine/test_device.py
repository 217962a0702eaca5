"""A device that computes on its own is kept busy, and one batch that fails there ends alone."""

import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits

from pertinent.asks import Values
from pertinent.engine.engine import Engine
from pertinent.models.base import Answer
from pertinent.models.function import FunctionModel
from tests.engine.jobs import Counting, asks, job, run


class Waiting(FunctionModel):
    """A model that answers late, and remembers how much was on its way when it had to."""

    in_flight = 4

    def __init__(self):
        super().__init__(Counting(), kind="table")
        self.under_way = 0
        self.left = []

    def submit(self, rows):
        answer = super().submit(rows)
        self.under_way += 1

        def outputs():
            self.under_way -= 1
            self.left.append(self.under_way)
            return answer.outputs()

        return Answer(outputs, answer.seconds, lambda: False)


def waves(model, n, batch_size):
    """The batches of `n` inputs that each ask eight short questions, one after the other."""
    steps = [[[i >> 2 & 1, i >> 1 & 1, i & 1]] for i in range(8)]
    jobs = [job(model, [1.0, float(i), 3.0], asks(*steps), i) for i in range(n)]
    return run(Engine(model, batch_size=batch_size), jobs)


def test_a_device_has_a_batch_to_go_on_with_while_another_is_answered():
    model = Waiting()
    late = waves(model, 128, batch_size=64)
    assert min(model.left[1:-3]) >= 1
    plain = FunctionModel(Counting(), kind="table")
    for key, done in waves(plain, 128, batch_size=64).items():
        np.testing.assert_array_equal(done.result, late[key].result)


class Clocked(FunctionModel):
    """A device that takes a tick for each row, and notes for how long it had nothing to do."""

    in_flight = 4

    def __init__(self):
        super().__init__(Counting(), kind="table")
        self.now = self.end = 0
        self.idle = []

    def submit(self, rows):
        answer = super().submit(rows)
        outputs = answer.outputs()
        self.idle.append(max(0, self.now - self.end))
        end = self.end = max(self.now, self.end) + len(outputs)

        def wait():
            self.now = max(self.now, end)
            return outputs

        return Answer(wait, answer.seconds, lambda: self.now >= end)


def test_a_device_does_not_wait_for_arithmetic():
    """Four jobs of a batch take 40 ticks to finish, the next batch 16: it is launched in between."""
    model = Clocked()

    def slow():
        answer = yield Values(np.array([[i >> 1 & 1, i & 1] for i in range(4)], dtype=bool))
        model.now += 10
        return answer

    jobs = [job(model, [float(i), 1.0], slow(), i) for i in range(32)]
    assert len(run(Engine(model, batch_size=16), jobs)) == 32
    assert sum(model.idle) == 0


def test_arithmetic_keeps_to_one_thread_only_while_a_device_computes():
    def threads():
        """How many threads each pool may use."""
        return [pool["num_threads"] for pool in threadpool_info()]

    def counts():
        yield Values(np.array([[1, 0]], dtype=bool))
        return threads()

    def runs(model):
        with threadpool_limits(2):
            inside, outside = [], []
            for done in Engine(model).run([job(model, [float(i), 1.0], counts(), i) for i in range(3)]):
                inside.append(done.result)
                outside.append(threads())
            return inside, [*outside, threads()]

    two = [2] * len(threadpool_info())
    one = [1] * len(two)
    assert two
    assert runs(Waiting()) == ([one] * 3, [two] * 4)
    assert runs(FunctionModel(Counting(), kind="table")) == ([two] * 3, [two] * 4)


def test_a_batch_that_fails_on_the_device_takes_no_other_with_it():
    """CUDA tells of an error when it is asked whether a batch is there."""

    class Failing(Clocked):
        def submit(self, rows):
            answer = super().submit(rows)
            if len(self.idle) != 3:
                return answer

            def fail():
                raise RuntimeError("device-side assert")

            return Answer(fail, answer.seconds, fail)

    def found(model):
        jobs = [job(model, [float(i), 1.0], asks([[1, 0], [0, 1]]), i) for i in range(16)]
        return run(Engine(model, batch_size=8), jobs)

    retried, plain = found(Failing()), found(Clocked())
    assert sorted(retried) == list(range(16))
    for key, done in retried.items():
        assert done.error is None
        np.testing.assert_array_equal(done.result, plain[key].result)


def test_a_device_takes_batches_of_one():
    """As small as they get when memory runs out."""
    model = Waiting()
    assert all(done.error is None for done in waves(model, 3, batch_size=1).values())
    assert set(model.function.batches) == {1}


def test_few_questions_in_step_share_one_batch():
    """Less than half a batch: a start costs more than a device that waits."""
    model = Waiting()
    waves(model, 20, batch_size=64)
    assert model.function.batches.count(20) >= 6
    assert len(model.function.batches) <= 10
