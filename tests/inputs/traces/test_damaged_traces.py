"""Damaged exports of traces are read, or raise an error of the library."""

import copy
from contextlib import suppress

import pytest

from pertinent import Prompt
from pertinent.errors import PertinentError
from tests.inputs.traces.examples import MESSAGES, generative_ai, langfuse, openinference, otlp

TRACES = {
    "messages": MESSAGES,
    "spans": openinference(nested=True),
    "otlp": otlp(openinference()),
    "gen_ai": generative_ai(),
    "langfuse": langfuse(),
}
VALUES = [
    None,
    3,
    float("nan"),
    "",
    "text",
    "\x00",
    "[1,",
    [],
    {},
    [None],
    [[]],
    {"a": 1},
    [{"role": "user"}],
]


def paths(value, path=()):
    """Yield the path to every value inside."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from paths(inner, (*path, key))


def put(trace, path, value):
    """Return a copy with another value at a path."""
    if not path:
        return value
    changed = inner = copy.deepcopy(trace)
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return changed


@pytest.mark.parametrize("name", TRACES)
def test_damaged_traces(name):
    n_read = 0
    for path in paths(TRACES[name]):
        for value in VALUES:
            with suppress(PertinentError):  # any other error fails the test
                Prompt.from_trace(put(TRACES[name], path, value)).render_messages()
                n_read += 1
    assert n_read > 0
