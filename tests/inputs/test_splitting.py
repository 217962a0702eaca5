"""Sentences and paragraphs: same spans as the plain definition, in linear time."""

import re
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pertinent.inputs.segmentation import cut, pattern
from pertinent.inputs.text import Text

PLAIN = {
    "sentences": r"\S.*?(?:[.!?…]+(?=\s|$)|[.!?…]*[。！？।۔؟][.!?…。！？।۔؟]*[)」”\"']*|(?=\n)|$)",
    "lines": r"\S.*?(?=\s*(?:\n|$))",
    "paragraphs": r"\S.*?(?=\n\s*\n|\s*$)",
}
"""Reference patterns, which read like the definitions but take quadratic time."""


@pytest.mark.parametrize("unit", PLAIN)
def test_spans_equal_the_reference(unit):
    plain = re.compile(PLAIN[unit], re.DOTALL)

    @settings(max_examples=2000, deadline=None, database=None, derandomize=True)
    @given(st.text(alphabet="ab.!…。।)” \n\t\r\u00a0", max_size=24))
    @example("Dr. Who?! No.\n\n\n  Yes…\n")
    @example("...a... .b\n.\n . \n")
    def compare(text):
        spans = [match.span() for match in pattern(unit).finditer(text)]
        assert spans == [match.span() for match in plain.finditer(text)]

    compare()


@pytest.mark.parametrize(
    ("unit", "make"),
    [
        ("sentences", lambda n: "a " + "." * n + "x"),
        ("sentences", lambda n: "." * n + "\n" + "!x" * n),
        ("sentences", lambda n: "。" * n + "a" + "।)" * n),
        ("words", lambda n: "." * n),
        ("words", lambda n: "a." * n),
        ("words", lambda n: "a@" * n),
        ("words", lambda n: "1," * n + "http://" + "!" * n),
        ("lines", lambda n: "a" + " " * n + "b" + " " * n),
        ("paragraphs", lambda n: "a" + " " * n + "b"),
        ("paragraphs", lambda n: "a" + " \n" * n),
        ("paragraphs", lambda n: "a" + "\n" * n + "b" + " " * n),
    ],
)
def test_time_grows_with_the_length(unit, make):
    def measure(n):
        text, times = make(n), []
        for _ in range(3):
            start = time.perf_counter()
            list(pattern(unit).finditer(text))
            times.append(time.perf_counter() - start)
        return min(times)

    # 32 times the length: a linear pattern takes about 32 times as long, a quadratic one about 1,000 times.
    assert measure(64_000) < 200 * max(measure(2_000), 1e-5)


def test_a_run_of_dots_is_cut_into_sentences():
    assert cut(Text("." * 200_000 + "x. B."), "sentences").tolist() == [
        [0, 0, 200_002],
        [0, 200_003, 200_005],
    ]
