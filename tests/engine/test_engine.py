"""The engine answers questions in full batches, counts them, and survives what goes wrong."""

import numpy as np
import pytest
import torch
from hypothesis import given as for_all
from hypothesis import settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_info, threadpool_limits

import pertinent
from pertinent.engine.asks import Fork, PathGradients, Values
from pertinent.engine.batch_size import BatchSize
from pertinent.engine.cache import Cache
from pertinent.engine.conversation import Job
from pertinent.engine.engine import Engine
from pertinent.engine.meter import Meter
from pertinent.engine.pending import Pending
from pertinent.errors import BudgetError, ModelError, PertinentError
from pertinent.models.base import Answer
from pertinent.models.function import FunctionModel
from pertinent.removal.constant import Constant


class Counting:
    """A table model that remembers the batches it was given."""

    def __init__(self, refuse=None, out_of_memory_above=None):
        self.batches = []
        self.refuse = refuse
        self.limit = out_of_memory_above

    def __call__(self, rows):
        if self.limit is not None and len(rows) > self.limit:
            raise MemoryError
        if self.refuse is not None and (rows == self.refuse).any():
            raise ValueError("I refuse this one")
        self.batches.append(len(rows))
        p = 1 / (1 + np.exp(-rows.astype(float) @ np.linspace(-1, 1, rows.shape[1])))
        return np.stack([1 - p, p], axis=1)


def job(model, row, algorithm, key=0):
    return Job(key, model.prepare(row), Constant(), algorithm)


def asks(*masks):
    """An algorithm that asks for some masks and returns the answers."""
    answers = []
    for mask in masks:
        answer = yield Values(np.array(mask, dtype=bool))
        answers.append(answer)
    return answers


def run(engine, jobs):
    return {done.key: done for done in engine.run(jobs)}


def test_answers_are_the_models_own():
    function = Counting()
    model = FunctionModel(function, kind="table")
    masks = [[1, 0, 1], [0, 0, 0], [1, 1, 1]]
    (done,) = Engine(model).run([job(model, [1.0, 2.0, 3.0], asks(masks))])
    expected = function(np.array([[1, 0, 3], [0, 0, 0], [1, 2, 3]]))
    np.testing.assert_allclose(done.result[0], expected)


def test_questions_of_many_inputs_share_batches():
    function = Counting()
    model = FunctionModel(function, kind="table")
    jobs = [job(model, [float(i), 1.0], asks([[1, 0], [0, 1]]), i) for i in range(16)]
    engine = Engine(model, batch_size=8)
    assert len(run(engine, jobs)) == 16
    assert function.batches == [8, 8, 8, 8]
    assert engine.work.rows == 32


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


def test_a_device_works_on_one_half_while_the_other_is_answered():
    model = Waiting()
    late = waves(model, 64, batch_size=64)
    assert min(model.left[1:-3]) >= 1
    plain = FunctionModel(Counting(), kind="table")
    for key, done in waves(plain, 64, batch_size=64).items():
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

    model = Failing()
    jobs = [job(model, [float(i), 1.0], asks([[1, 0], [0, 1]]), i) for i in range(16)]
    done = run(Engine(model, batch_size=8), jobs)
    assert len(done) == 16 and sum(d.error is None for d in done.values()) >= 12


def test_an_engine_begins_anew_after_a_run_was_broken_off():
    model = FunctionModel(Counting(), kind="table")
    engine = Engine(model, batch_size=2)

    def jobs():
        return [job(model, [float(i), 1.0], asks([[1, 0], [0, 1]]), i) for i in range(20)]

    first = engine.run(jobs())
    next(first)
    first.close()
    assert sorted(done.key for done in engine.run(jobs())) == list(range(20))


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


def test_a_mask_asked_twice_is_evaluated_once_and_answered_twice():
    function = Counting()
    model = FunctionModel(function, kind="table")
    (done,) = Engine(model).run([job(model, [1.0, 2.0], asks([[1, 0], [1, 0]], [[1, 0]]))])
    assert sum(function.batches) == 1
    assert (done.result[0] == done.result[1]).all()


def test_the_cache_lies_below_the_meter():
    function = Counting()
    model = FunctionModel(function, kind="table")
    engine = Engine(model)
    meters = [Meter(10), Meter(10)]
    run(engine, [
        job(model, [1.0, 2.0], meters[0].watch(asks([[1, 0], [0, 1]], [[0, 0]])), 0),
        job(model, [1.0, 2.0], meters[1].watch(asks([[0, 0]], [[1, 0]])), 1),
    ])  # fmt: skip
    assert sum(function.batches) < 5
    assert [m.evaluations for m in meters] == [3, 2]


def test_the_meter_counts_distinct_masks_and_enforces_the_budget():
    model = FunctionModel(Counting(), kind="table")
    meter = Meter(2)
    (done,) = Engine(model).run([job(model, [1.0, 2.0], meter.watch(asks([[1, 0], [1, 0]], [[0, 1]])))])
    assert done.error is None
    assert meter.evaluations == 2
    (done,) = Engine(model).run([job(model, [1.0, 2.0], Meter(2).watch(asks([[1, 0], [0, 1]], [[0, 0]])))])
    assert isinstance(done.error, BudgetError)
    assert "asked for 3 evaluations, but its budget is 2" in str(done.error)


def test_branches_of_a_fork_run_side_by_side_with_a_budget_each():
    function = Counting()
    model = FunctionModel(function, kind="table")

    def parent():
        return (yield Fork([asks([[1, 0]], [[0, 1]]), asks([[0, 0]], [[1, 1]])]))

    meter = Meter(2)
    (done,) = Engine(model).run([job(model, [1.0, 2.0], meter.watch(parent()))])
    assert [len(branch) for branch in done.result] == [2, 2]
    assert meter.evaluations == 4
    assert function.batches == [2, 2]


def test_a_fork_fails_as_a_whole():
    model = FunctionModel(Counting(), kind="table")

    def breaks():
        yield Values(np.ones((1, 2), dtype=bool))
        raise RuntimeError("broken branch")

    def parent():
        return (yield Fork([asks([[1, 0]], [[0, 1]]), breaks()]))

    (done,) = Engine(model).run([job(model, [1.0, 2.0], parent())])
    assert "broken branch" in str(done.error)


def test_batches_are_halved_when_memory_runs_out():
    function = Counting(out_of_memory_above=5)
    model = FunctionModel(function, kind="table")
    rng = np.random.default_rng(0)
    masks = rng.random((40, 12)) < 0.5
    engine = Engine(model, batch_size=32)
    (done,) = engine.run([job(model, list(range(12)), asks(masks))])
    assert done.error is None
    assert len(done.result[0]) == 40
    assert max(function.batches) <= 5
    assert engine.batch_size.cost <= 5


def test_one_input_that_the_model_refuses_does_not_take_the_others_down():
    model = FunctionModel(Counting(refuse=99.0), kind="table")
    jobs = [job(model, [float(v), 1.0], asks([[1, 1]]), v) for v in (1, 99, 3)]
    done = run(Engine(model), jobs)
    assert isinstance(done[99].error, ModelError)
    assert "I refuse this one" in str(done[99].error)
    assert done[1].error is None
    assert done[3].error is None


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda rows: np.full((len(rows), 2), np.nan), "NaN"),
        (lambda rows: np.full((len(rows), 2), 3.0), "output='logit'"),
        (lambda rows: np.full((len(rows) + 1, 2), 0.5), "rows of class scores"),
        (lambda rows: np.array([["a", "b"]] * len(rows)), "must answer with numbers"),
        (lambda rows: None, "must answer with numbers"),
    ],
)
def test_unusable_answers_say_what_is_wrong(answer, message):
    model = pertinent.wrap(answer, kind="table")
    with pytest.raises(ModelError, match=message):
        pertinent.explain(model, [1.0, 2.0], method="leave-one-out")


def test_nan_for_one_input_fails_that_input_only():
    def answer(rows):
        p = np.where(rows[:, 0] == 7, np.nan, 0.5)
        return np.stack([1 - p, p], axis=1)

    model = pertinent.wrap(answer, kind="table")
    found = pertinent.explain(model, [[1.0, 2.0], [7.0, 1.0], [3.0, 4.0]], method="leave-one-out")
    assert len(found) == 2
    assert [f.index for f in found.failures] == [1]
    assert "NaN" in found.failures[0].reason


def test_an_algorithm_that_asks_nonsense_fails_alone():
    model = FunctionModel(Counting(), kind="table")
    (done,) = Engine(model).run([job(model, [1.0, 2.0], asks([[1, 0, 1]]))])
    assert "bool (n, 2)" in str(done.error)


def test_progress_tells_every_input_once_at_the_end():
    seen = []
    model = FunctionModel(Counting(refuse=99.0), kind="table")
    pertinent.explain(model, [[1.0, 2.0], [99.0, 1.0]], method="leave-one-out", progress=seen.append)
    assert (seen[-1].done, seen[-1].failed, seen[-1].total) == (2, 1, 2)


def test_inputs_are_taken_in_only_as_there_is_room():
    taken = []
    model = FunctionModel(Counting(), kind="table")

    def rows():
        for i in range(1000):
            taken.append(i)
            yield [float(i), 1.0, 2.0]

    ahead = []
    engine = Engine(model, batch_size=8)
    model.ready = 16
    jobs = (job(model, row, asks(~np.eye(3, dtype=bool)), i) for i, row in enumerate(rows()))
    for n, _ in enumerate(engine.run(jobs)):
        ahead.append(len(taken) - n)
    assert len(ahead) == 1000
    assert max(ahead) < 30


class Weighed(FunctionModel):
    """A model to which a row costs as much as it keeps."""

    ready = 2000

    def cost(self, removal, given, masks):
        return masks.sum(axis=1) + 1


@pytest.mark.parametrize("first", [1, 2])
def test_an_input_is_begun_only_when_those_before_need_no_more(first):
    """Short questions come first, one row of each, and say nothing of the work to follow."""
    d = 30

    def steps(seed):
        for n in range(first):
            yield Values(np.eye(d, dtype=bool)[n : n + 1])
        yield Values(np.random.default_rng(seed).random((100, d)) < 0.5)

    begun = []

    def jobs():
        for i in range(200):
            begun.append(i)
            yield job(model, np.full(d, float(i)), steps(i), i)

    model = Weighed(Counting(), kind="table")
    under_way = [len(begun) - ended for ended, _ in enumerate(Engine(model, batch_size=256).run(jobs()))]
    assert len(under_way) == 200
    assert max(under_way) < 40


def test_the_cache_stays_within_its_bytes_and_forgets_what_is_over():
    cache = Cache(most_bytes=20_000)
    for i in range(50):
        cache.open(bytes([i]))
        cache.add(bytes([i]), [bytes([i, j]) for j in range(10)], np.zeros((10, 2)))
    assert 10_000 < cache._bytes <= 20_000
    assert cache.of(bytes([49]))
    assert not cache.of(bytes([0]))
    for i in range(50):
        cache.close(bytes([i]))
    assert cache._bytes == 0
    assert not cache.of(bytes([49]))
    cache.add(bytes([49]), [b"x"], np.zeros((1, 2)))
    assert not cache.of(bytes([49]))


@settings(max_examples=60, deadline=None)
@for_all(st.lists(st.integers(1, 50), min_size=1, max_size=200), st.integers(1, 300))
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


def test_questions_of_one_kind_do_not_starve_those_of_another():
    """Half of the inputs ask for many gradients again and again, the others for few values."""
    model = pertinent.wrap(torch.nn.Linear(3, 2))
    answered = []

    def asks_for(name, questions):
        for question in questions:
            yield question
            answered.append(name)

    gradients = [PathGradients(np.linspace(0, 1, 8), 0)] * 8
    values = [Values(np.array([[i >> 2 & 1, i >> 1 & 1, i & 1]], dtype=bool)) for i in range(8)]
    asked = {"gradients": gradients, "values": values}
    jobs = [
        job(model, np.full(3, i + j, dtype=np.float32), asks_for(name, questions), (name, i))
        for i in range(6)
        for j, (name, questions) in enumerate(asked.items())
    ]
    assert all(done.error is None for done in Engine(model, batch_size=16).run(jobs))
    assert answered[: len(answered) // 2].count("values") >= 12


def test_the_batch_size_grows_while_that_helps_and_then_stays():
    size = BatchSize(first=100, largest=10_000)
    speed = {100: 1.0, 200: 1.5, 400: 1.8, 800: 1.81, 1600: 1.0}
    for _ in range(60):
        size.observe(size.cost, size.cost / speed[size.cost])
    assert size.cost == 400
    assert BatchSize(100, 1000, fixed=7).cost == 7


def test_errors_share_one_root():
    with pytest.raises(PertinentError):
        pertinent.explain(lambda rows: rows, [1.0], method="no-such-method")
