"""The engine answers questions in full batches, counts them, and survives what goes wrong."""

import numpy as np
import pytest
import torch

import pertinent
from pertinent.asks import Fork, PathGradients, Values
from pertinent.engine.cache import Cache
from pertinent.engine.engine import Engine
from pertinent.engine.job import Job
from pertinent.engine.meter import Meter
from pertinent.engine.scheduler import BatchSize
from pertinent.errors import BudgetError, ModelError, PertinentError
from pertinent.inputs.background import Background
from pertinent.models.function import FunctionModel
from pertinent.removals import Constant, FromBackground, UniformNoise
from tests import tiny
from tests.engine.jobs import Counting, asks, job, run


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
    assert engine.rows == 32


def test_an_engine_begins_anew_after_a_run_was_broken_off():
    model = FunctionModel(Counting(), kind="table")
    engine = Engine(model, batch_size=2)

    def jobs():
        return [job(model, [float(i), 1.0], asks([[1, 0], [0, 1]]), i) for i in range(20)]

    first = engine.run(jobs())
    next(first)
    first.close()
    assert sorted(done.key for done in engine.run(jobs())) == list(range(20))


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
    assert "requested 3 evaluations, but its budget is 2" in str(done.error)


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
    assert engine.batch_sizes[Values].cost <= 5


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
        (lambda rows: np.full((len(rows) + 1, 2), 0.5), "rows of numbers"),
        (lambda rows: np.array([["a", "b"]] * len(rows)), "must return numbers"),
        (lambda rows: None, "must return numbers"),
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
    jobs = (job(model, row, asks(~np.eye(3, dtype=bool)), i) for i, row in enumerate(rows()))
    for n, _ in enumerate(engine.run(jobs)):
        ahead.append(len(taken) - n)
    assert len(ahead) == 1000
    assert max(ahead) < 30


class Weighed(FunctionModel):
    """A model to which a row costs as much as it keeps."""

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
    assert max(under_way) < 60


def test_the_cache_stays_within_its_bytes_and_forgets_what_is_over():
    cache = Cache(most_bytes=20_000)
    for i in range(50):
        cache.open(bytes([i]))
        cache.add(bytes([i]), Values, [bytes([i, j]) for j in range(10)], list(np.zeros((10, 2))))
    assert 10_000 < cache._bytes <= 20_000
    assert cache.answers_for(bytes([49]), Values)
    assert not cache.answers_for(bytes([49]), PathGradients)
    assert not cache.answers_for(bytes([0]), Values)
    for i in range(50):
        cache.close(bytes([i]))
    assert cache._bytes == 0
    assert not cache.answers_for(bytes([49]), Values)
    cache.add(bytes([49]), Values, [b"x"], list(np.zeros((1, 2))))
    assert not cache.answers_for(bytes([49]), Values)


def test_questions_of_one_kind_do_not_starve_those_of_another():
    """Half of the inputs ask for many gradients again and again, the others for few values."""
    model = pertinent.wrap(torch.nn.Linear(3, 2), output="logit")
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
    assert answered[: len(answered) // 2].count("values") >= 6


def test_the_batch_size_grows_while_batches_are_quick_whatever_the_noise():
    """A row takes 0.1 ms, so 512 of them take long enough; every third batch meets a busy machine."""
    size = BatchSize(first=64, largest=10_000)
    for number in range(60):
        size.observe(size.cost, size.cost * 1e-4 * (50 if number % 3 == 0 else 1))
    assert size.cost == 512
    quick = BatchSize(first=64, largest=1000)
    for _ in range(20):
        quick.observe(quick.cost, 1e-3)
    assert quick.cost == 512
    for _ in range(20):
        quick.observe(100, 1e-3)  # the last batch of a run says nothing
    assert quick.cost == 512
    assert BatchSize(100, 1000, fixed=7).cost == 7


def test_the_batch_size_grows_while_rows_get_cheaper():
    """A call takes 60 ms whatever its size, as of a model behind a network."""
    far = BatchSize(first=256, largest=65536)
    for _ in range(20):
        far.observe(far.cost, 0.06)
    assert far.cost == 65536
    slow = BatchSize(first=256, largest=65536)
    for _ in range(20):
        slow.observe(slow.cost, 0.06 * slow.cost / 256)
    assert slow.cost == 512  # tried once, and it did not pay


def test_the_batch_size_grows_again_after_memory_ran_out():
    size = BatchSize(first=512, largest=512)
    size.halve(512)
    size.halve(256)
    assert size.cost == 128
    for _ in range(15):
        size.observe(size.cost, 1.0)
    assert size.cost == 128
    for _ in range(40):
        size.observe(size.cost, 1.0)
    assert size.cost == 512


def test_one_input_that_never_fits_does_not_make_batches_small_for_good():
    function = Counting(refuse=None)

    def answer(rows):
        if (rows == 99.0).any():
            raise RuntimeError("CUDA error: out of memory")
        return function(rows)

    model = FunctionModel(answer, kind="table")
    masks = np.random.default_rng(0).random((40, 12)) < 0.5
    masks[:, 0] = True
    jobs = [job(model, [99.0 if i == 5 else float(i), *range(11)], asks(masks), i) for i in range(60)]
    done = run(Engine(model, batch_size=200), jobs)
    assert [key for key, ended in done.items() if ended.error is not None] == [5]
    assert "out of memory" in str(done[5].error)
    assert len(function.batches) < 60


def test_a_batch_of_large_images_is_counted_in_bytes():
    sizes = []

    def classify(images):
        sizes.append(len(images))
        return np.full((len(images), 2), 0.5)

    model = pertinent.wrap(classify, kind="image")
    pertinent.explain(
        model, np.zeros((3, 1000, 1000), dtype=np.float32), "leave-one-out", features="patches:250"
    )
    assert sum(sizes) == 17 + 1 + 3  # the whole image and three masks twice: is the model random?
    assert sizes[:2] == [1, 1]  # 12 MB each; later batches are larger because these were quick
    assert max(sizes) < 17


def test_rows_of_many_draws_do_not_keep_batches_small():
    """A row costs its 100 draws: two of them fill the first batch of 256 as far as it can be."""
    sizes = []

    def classify(rows):
        sizes.append(len(rows))
        return np.full((len(rows), 2), 0.5)

    model = pertinent.wrap(classify, kind="table", background=np.random.default_rng(0).random((100, 8)))
    pertinent.explain(model, np.zeros(8), "kernel-shap", samples=200, removal="background")
    assert max(sizes) > 1000


def test_errors_share_one_root():
    with pytest.raises(PertinentError):
        pertinent.explain(lambda rows: rows, [1.0], method="no-such-method")


# -- the seed, the removal and the kind decide what is shared ------------------------------------


def test_seeds_share_batches_and_answers_only_where_nothing_is_drawn():
    rows = np.arange(40.0).reshape(20, 2)
    masks = [[1, 0], [0, 1], [0, 0]]
    for removal, later in ((Constant(), []), (UniformNoise(low=0.0, high=1.0), [3])):
        function = Counting()
        model = FunctionModel(function, kind="table", background=rows)
        input = model.prepare([1.0, 2.0])
        jobs = [Job(seed, input, removal, asks(masks), seed) for seed in (0, 1, 2)]
        done = run(Engine(model), jobs)
        assert function.batches == [9]
        for seed in (0, 1, 2):
            (alone,) = Engine(model).run([Job(seed, input, removal, asks(masks), seed)])
            np.testing.assert_array_equal(done[seed].result, alone.result)
        assert np.array_equal(done[0].result, done[1].result) != removal.is_random
        function.batches.clear()
        first, second = (
            Job(0, input, removal, asks(masks, [[1, 0]]), 0),
            Job(1, input, removal, asks([[1, 1]], masks), 1),
        )
        run(Engine(model), [first, second])
        assert function.batches == [4, *later]


@pytest.mark.parametrize("size", [3, 2000])
def test_two_backgrounds_share_no_answers(size):
    """Of a large array `repr` shows only the ends, which are the same here."""
    one, other = np.zeros((size, 2)), np.zeros((size, 2))
    other[size // 2] = 6.0
    model = FunctionModel(lambda rows: np.stack([rows[:, 0] / 9, 1 - rows[:, 0] / 9], axis=1), kind="table")
    input = model.prepare([9.0, 9.0])
    removals = [FromBackground(rows=size, background=Background(values)) for values in (one, other)]
    jobs = [Job(i, input, removal, asks([[0, 1]])) for i, removal in enumerate(removals)]
    done = run(Engine(model), jobs)
    assert done[0].result[0][0, 0] == pytest.approx(0.0)
    assert done[1].result[0][0, 0] == pytest.approx(6 / 9 / size)


# -- odd questions -------------------------------------------------------------------------------


def test_a_fork_of_nothing_returns_nothing():
    model = FunctionModel(Counting(), kind="table")

    def parent():
        return (yield Fork([]))

    (done,) = Engine(model).run([job(model, [1.0, 2.0], Meter(1).watch(parent()))])
    assert done.error is None and done.result == []


def test_a_question_of_no_rows_is_answered_with_no_rows():
    function = Counting()
    model = FunctionModel(function, kind="table")

    def steps():
        yield Values(np.ones((1, 2), dtype=bool))
        return (yield Values(np.empty((0, 2), dtype=bool)))

    (done,) = Engine(model).run([job(model, [1.0, 2.0], steps())])
    assert done.error is None and done.result.shape == (0, 2)
    assert function.batches == [1]


# -- errors are raised where the question was asked ----------------------------------------------


def test_an_algorithm_may_survive_a_question_that_failed():
    model = FunctionModel(Counting(refuse=99.0), kind="table")

    def steps():
        try:
            yield Values(np.array([[1, 0]], dtype=bool))
        except ModelError as error:
            answer = yield Values(np.array([[0, 1]], dtype=bool))
            return str(error), answer
        return None

    (done,) = Engine(model).run([job(model, [99.0, 1.0], steps())])
    assert done.error is None
    assert "I refuse this one" in done.result[0]
    assert done.result[1].shape == (1, 2)


def test_an_error_in_a_branch_is_raised_at_the_fork():
    """The other branches are closed, and what they still wait for is forgotten."""
    function = Counting(refuse=99.0)
    model = FunctionModel(function, kind="table")
    closed = []

    def patient():
        try:
            for i in range(4):
                yield Values(np.array([[0, 1], [0, 0]], dtype=bool)[i % 2 : i % 2 + 1])
        finally:
            closed.append(True)

    def parent():
        try:
            yield Fork([patient(), asks([[1, 0]]), patient()])
        except ModelError:
            return (yield Fork([asks([[0, 1]]), asks([[0, 0]])]))

    (done,) = Engine(model).run([job(model, [99.0, 1.0], parent())])
    assert done.error is None
    assert [len(branch) for branch in done.result] == [1, 1]
    assert closed == [True, True]


def test_memory_that_runs_out_in_gradients_leaves_values_alone():
    class Greedy(torch.nn.Linear):
        def forward(self, rows):
            if rows.requires_grad and len(rows) > 3:
                raise MemoryError
            return super().forward(rows)

    model = pertinent.wrap(Greedy(3, 2), kind="table", output="logit")
    engine = Engine(model, batch_size=64)

    def steps():
        found = yield PathGradients(np.linspace(0, 1, 16), 0)
        answers = yield Values(np.random.default_rng(0).random((40, 3)) < 0.5)
        return found, answers

    (done,) = engine.run([job(model, np.ones(3, dtype=np.float32), steps())])
    assert done.error is None
    assert done.result[0].gradients.shape == (16, 3)
    assert engine.batch_sizes[PathGradients].cost <= 3
    assert engine.batch_sizes[Values].cost == 64


def test_images_of_several_sizes_share_no_batch_and_none_fails():
    shapes = []

    def classify(images):
        shapes.append(images.shape)
        p = images.mean(axis=(1, 2, 3))
        return np.stack([1 - p, p], axis=1)

    model = pertinent.wrap(classify, kind="image")
    pictures = [np.full((1, side, side), 0.5) for side in (4, 6, 4, 6, 4)]
    found = pertinent.explain(model, pictures, method="leave-one-out", features="patches:2")
    assert not found.failures
    assert [len(e.features) for e in found] == [4, 9, 4, 9, 4]
    again = [6, 3]  # three masks of three inputs: is the model random?
    assert [shape[0] for shape in shapes] == [3, 3 * 4, 2, 2, 2 * 9, 1, *again]


def test_a_metered_algorithm_may_survive_a_question_that_failed():
    model = FunctionModel(Counting(refuse=99.0), kind="table")

    def steps():
        try:
            yield Values(np.array([[1, 0]], dtype=bool))
        except ModelError:
            yield Values(np.array([[0, 1]], dtype=bool))
            return "survived"
        return None

    meter = Meter(2)
    (done,) = Engine(model).run([job(model, [99.0, 1.0], meter.watch(steps()))])
    assert (done.result, meter.evaluations) == ("survived", 2)


@pytest.mark.parametrize("most", [1, 4, 19])
@pytest.mark.parametrize("batch_size", [None, 8])
def test_the_draws_of_one_mask_are_divided_when_they_do_not_fit_into_memory(most, batch_size):
    background = np.random.default_rng(0).normal(size=(20, 3))
    sizes = []

    def classify(rows):
        sizes.append(len(rows))
        if most < len(rows):
            raise MemoryError
        p = 1 / (1 + np.exp(-rows.sum(axis=1)))
        return np.stack([1 - p, p], axis=1)

    def explained(function):
        model = pertinent.wrap(function, kind="table", background=background)
        words = {"removal": "background:rows=20", "batch_size": batch_size}
        return pertinent.explain(model, np.ones((2, 3)), "exact-shapley", **words)

    found = explained(classify)
    assert not found.failures
    refused = sum(size > most for size in sizes)
    whole = explained(lambda rows: [[1 - p, p] for p in 1 / (1 + np.exp(-rows.sum(axis=1)))])
    np.testing.assert_allclose(found[1].scores, whole[1].scores, rtol=1e-12)
    assert refused < len(sizes) / 2


def test_the_draws_of_one_text_are_divided_too():
    tokens = pertinent.wrap(tiny.pair("bert"))
    submit, sizes = tokens.submit, []

    def limited(rows):
        sizes.append(sum(len(part.attend) for part in rows))
        if sizes[-1] > 2:
            raise MemoryError
        return submit(rows)

    words = {"method": "leave-one-out", "removal": "random-token:samples=5"}
    whole = pertinent.explain(tokens, "w1 w2 w3", **words)
    tokens.submit = limited
    found = pertinent.explain(tokens, "w1 w2 w3", **words)
    np.testing.assert_allclose(found.scores, whole.scores, atol=1e-6)


def test_a_single_row_that_does_not_fit_fails_at_once():
    sizes = []

    def classify(rows):
        sizes.append(len(rows))
        raise MemoryError("no room")

    model = pertinent.wrap(classify, kind="image")
    with pytest.raises(ModelError, match="MemoryError"):
        pertinent.explain(model, np.zeros((3, 500, 500), dtype=np.float32), "leave-one-out")
    assert sizes == [1]
