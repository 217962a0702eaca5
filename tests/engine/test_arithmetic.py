"""Arithmetic of algorithms: it costs nothing, and shares the cores while a device computes."""

import os
import signal
import subprocess
import sys
import threading
import time
from functools import partial

import numpy as np
import pytest

import pertinent
from pertinent.asks import Compute, Values
from pertinent.engine import processes
from pertinent.engine.engine import COMPUTING, Engine
from pertinent.engine.meter import Meter
from pertinent.models.function import FunctionModel
from tests.engine.jobs import Counting, job, run
from tests.engine.test_device import Waiting

FULL = np.ones((1, 2), dtype=bool)


def fits(seen, seconds=0.0):
    """Ask once, compute, ask again: the sum of all that was answered, and the thread that computed."""
    first = yield Values(FULL)

    def compute():
        time.sleep(seconds)
        seen.append(threading.current_thread().name)
        return first.sum()

    total = yield Compute(compute)
    return total + (yield Values(~FULL)).sum()


@pytest.mark.parametrize(
    "model", [FunctionModel(Counting(), kind="table"), Waiting()], ids=["plain", "device"]
)
def test_an_algorithm_is_sent_what_its_function_returns(model):
    seen = []
    found = run(Engine(model), [job(model, [1.0, float(i)], fits(seen), i) for i in range(20)])
    assert [found[i].error for i in range(20)] == [None] * 20
    plain = FunctionModel(Counting(), kind="table")
    alone = run(Engine(plain), [job(plain, [1.0, float(i)], fits([]), i) for i in range(20)])
    assert [found[i].result for i in range(20)] == [alone[i].result for i in range(20)]
    elsewhere = {name for name in seen if name.startswith("pertinent-arithmetic")}
    assert bool(elsewhere) == (model.in_flight > 1)


def test_no_more_jobs_are_started_than_the_cores_can_compute_for():
    model, started = Waiting(), []

    def jobs():
        for i in range(200):
            started.append(i)
            yield job(model, [1.0, float(i)], fits([], seconds=0.02), i)

    engine = Engine(model)
    for n, _ in enumerate(engine.run(jobs(), 200)):
        assert len(started) - n < COMPUTING * processes.n_cores() + 16 * model.in_flight + 2


def test_it_is_not_charged():
    meter = Meter(2)
    model = FunctionModel(Counting(), kind="table")
    (done,) = Engine(model).run([job(model, [1.0, 2.0], meter.watch(fits([])))])
    assert (done.error, meter.evaluations) == (None, 2)


@pytest.mark.parametrize(
    "model", [FunctionModel(Counting(), kind="table"), Waiting()], ids=["plain", "device"]
)
def test_an_error_is_raised_in_the_algorithm(model):
    def fails():
        yield Values(FULL)
        try:
            yield Compute(lambda: 1 / 0)
        except ZeroDivisionError:
            return "caught"

    (done,) = Engine(model).run([job(model, [1.0, 2.0], fails())])
    assert done.result == "caught"


def test_what_is_cancelled_is_not_sent_its_result():
    model = Waiting()
    engine, heard = Engine(model), []
    number = engine.submit(job(model, [1.0, 2.0], fits(heard, seconds=0.3)))
    while not engine._computing:
        assert engine._work()
    assert engine.cancel(number)
    while engine.is_busy or engine._computing:
        engine.step()
        engine._gather()
    assert not engine._done


@pytest.fixture
def busy(monkeypatch):
    """Processes that are started at once."""
    monkeypatch.setattr(processes, "WORTH_A_START", 0.0)
    found = processes.Processes(2)
    monkeypatch.setattr("pertinent.engine.engine.shared", lambda: found)
    yield found
    found.close()


def test_a_process_is_started_when_there_was_much_to_compute():
    found = processes.Processes(1)
    assert found.call(os.getpid) == os.getpid()
    found._seconds = processes.WORTH_A_START
    elsewhere = found.call(os.getpid)
    assert elsewhere != os.getpid()
    assert found.call(os.getpid) == elsewhere
    found.close()
    with pytest.raises(ProcessLookupError):
        os.kill(elsewhere, 0)


def test_errors_come_back_from_a_process(busy):
    with pytest.raises(np.linalg.LinAlgError):
        busy.call(partial(np.linalg.cholesky, -np.eye(2)))
    assert busy.call(partial(sum, [1, 2])) == 3


def test_what_a_killed_process_was_asked_is_computed_here(busy):
    killed = busy.call(os.getpid)
    os.kill(killed, signal.SIGKILL)
    assert busy.call(os.getpid) == os.getpid()
    assert busy.call(os.getpid) not in (killed, os.getpid())


def test_a_program_needs_no_guard_around_its_main_part(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import os\n"
        "from pertinent.engine import processes\n"
        "processes.WORTH_A_START = 0.0\n"
        "print(processes.Processes(1).call(os.getpid) != os.getpid())\n"
    )
    found = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=60, check=False)
    assert (found.stdout, found.stderr) == ("True\n", "")


@pytest.mark.parametrize("method", ["shapley", "kernel-shap", "lime", "thompson-search"])
def test_scores_do_not_depend_on_threads_and_processes(method, busy):
    rows = np.random.default_rng(0).normal(size=(6, 14))

    def answer(batch):
        p = 1 / (1 + np.exp(-np.tanh(batch).sum(axis=1)))
        return np.stack([1 - p, p], axis=1)

    plain = pertinent.wrap(answer, background=np.zeros((1, 14)), kind="table")
    device = pertinent.wrap(answer, background=np.zeros((1, 14)), kind="table")
    type(device).in_flight, before = 4, type(device).in_flight
    try:
        threaded = pertinent.explain(device, rows, method, budget=80)
    finally:
        type(device).in_flight = before
    for one, two in zip(threaded, pertinent.explain(plain, rows, method, budget=80), strict=True):
        np.testing.assert_allclose(one.scores, two.scores, rtol=1e-9, atol=1e-12)
    assert bool(busy._idle) == (method != "lime")
