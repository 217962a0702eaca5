"""Sentences and paragraphs: same spans as the plain definition, in linear time."""

import re
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pertinent.inputs.text import PARAGRAPH, SENTENCE, Text, cut

PLAIN = {
    SENTENCE: re.compile(r"\S(?:.*?)(?:[.!?…。！？]+(?=\s|$)|(?=\n)|$)", re.DOTALL),
    PARAGRAPH: re.compile(r"\S(?:.*?)(?=\n\s*\n|\s*$)", re.DOTALL),
}
"""Reference patterns, which read like the definitions but take quadratic time."""


@pytest.mark.parametrize("pattern", PLAIN, ids=("sentences", "paragraphs"))
def test_spans_equal_the_reference(pattern):
    @settings(max_examples=2000, deadline=None, database=None, derandomize=True)
    @given(st.text(alphabet="ab.!…。 \n\t\r\u00a0", max_size=24))
    @example("Dr. Who?! No.\n\n\n  Yes…\n")
    @example("...a... .b\n.\n . \n")
    def compare(text):
        spans = [found.span() for found in pattern.finditer(text)]
        assert spans == [found.span() for found in PLAIN[pattern].finditer(text)]

    compare()


@pytest.mark.parametrize(
    ("pattern", "make"),
    [
        (SENTENCE, lambda n: "a " + "." * n + "x"),
        (SENTENCE, lambda n: "." * n + "\n" + "!x" * n),
        (PARAGRAPH, lambda n: "a" + " " * n + "b"),
        (PARAGRAPH, lambda n: "a" + " \n" * n),
        (PARAGRAPH, lambda n: "a" + "\n" * n + "b" + " " * n),
    ],
)
def test_time_grows_with_the_length(pattern, make):
    def measure(n):
        text, times = make(n), []
        for _ in range(3):
            start = time.perf_counter()
            list(pattern.finditer(text))
            times.append(time.perf_counter() - start)
        return min(times)

    # 32 times the length: a linear pattern takes about 32 times as long, a quadratic one about 1,000 times.
    assert measure(64_000) < 200 * max(measure(2_000), 1e-5)


def test_a_run_of_dots_is_cut_into_sentences():
    assert cut(Text("." * 200_000 + "x. B."), "sentences").tolist() == [
        [0, 0, 200_002],
        [0, 200_003, 200_005],
    ]
