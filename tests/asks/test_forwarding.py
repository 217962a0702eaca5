"""An algorithm inside another gets its answers and its errors, and is closed with it."""

import numpy as np
import pytest

from pertinent.asks import Values, on_scale, relay
from pertinent.engine.meter import Meter
from pertinent.errors import BudgetError, ModelError
from pertinent.explainers.base import Task
from pertinent.explainers.search.base import SearchLog
from pertinent.explainers.search.sampled_search import RandomSearch

ONE = np.ones((1, 2), dtype=bool)
TASK = Task(2, 0, np.ones(2), 10, (0.5,), np.random.default_rng(0))
WRAPPERS = {
    "relay": relay,
    "meter": lambda algorithm: Meter(10).watch(algorithm),
    "scale": lambda algorithm: on_scale(algorithm, "logit"),
    "trajectory": lambda algorithm: RandomSearch().logged(algorithm, TASK, 2, SearchLog()),
}


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_an_error_is_raised_in_the_algorithm_that_asked(wrapper):
    def steps():
        try:
            yield Values(ONE)
        except ModelError:
            answer = yield Values(ONE)
            return "survived", answer

    wrapped = WRAPPERS[wrapper](steps())
    wrapped.send(None)
    assert isinstance(wrapped.throw(ModelError("no answer")), Values)
    with pytest.raises(StopIteration) as stop:
        wrapped.send(np.zeros((1, 2)))
    assert stop.value.value[0] == "survived"


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_an_error_that_the_algorithm_does_not_catch_comes_out(wrapper):
    def steps():
        yield Values(ONE)

    wrapped = WRAPPERS[wrapper](steps())
    wrapped.send(None)
    with pytest.raises(ModelError, match="no answer"):
        wrapped.throw(ModelError("no answer"))


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_closing_closes_the_algorithm(wrapper):
    closed = []

    def steps():
        try:
            yield Values(ONE)
        finally:
            closed.append(True)

    inner = steps()  # kept here, so that only closing it can end it
    wrapped = WRAPPERS[wrapper](inner)
    wrapped.send(None)
    wrapped.close()
    assert closed == [True]


def test_an_error_of_the_wrapper_is_raised_in_the_algorithm():
    def steps():
        try:
            yield Values(np.array([[1, 0], [0, 1]], dtype=bool))
        except BudgetError:
            return "too many"

    with pytest.raises(StopIteration) as stop:
        Meter(1).watch(steps()).send(None)
    assert stop.value.value == "too many"
