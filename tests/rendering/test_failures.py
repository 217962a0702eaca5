"""Failures for the same reason share a line, wherever they are listed."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

import pertinent
from pertinent.cli.command_output import conclude
from pertinent.rendering.by_input import failure_lines, failure_notes
from pertinent.rendering.html.explanation import show_all as fragments
from pertinent.rendering.html.page import report
from pertinent.results.explanation import Explanations
from pertinent.results.failures import Failure

MANY = [Failure(i, "too long") for i in range(12)] + [Failure(12, "empty")]
GROUPED = "12 inputs (input 0, input 1, input 2, …): too long"


def test_a_place_that_failed_twice_for_a_reason_counts_once():
    assert list(failure_lines([("line 1", "a"), ("line 2", "b"), ("line 1", "a")])) == [
        "line 1: a",
        "line 2: b",
    ]


def test_three_are_named_and_more_are_counted():
    assert list(failure_lines((f"line {i}", "a") for i in range(3))) == ["line 0, line 1, line 2: a"]
    assert list(failure_lines((f"line {i}", "a") for i in range(1200))) == [
        "1,200 inputs (line 0, line 1, line 2, …): a"
    ]


def test_reasons_beyond_the_most_are_counted_by_their_failures():
    reasons = [("line 1", "a"), ("line 2", "b"), ("line 3", "c"), ("line 4", "c")]
    assert list(failure_lines(reasons, 2)) == ["line 1: a", "line 2: b", "… and 2 more"]
    assert list(failure_lines(reasons, 3))[-1] == "line 3, line 4: c"


def test_every_list_of_failures(text):
    explanations = Explanations([text], MANY)
    printed = io.StringIO()
    Console(file=printed, width=120).print(explanations)
    for shown in (printed.getvalue(), fragments(explanations), report(explanations)):
        assert "13 failed" in shown
        assert GROUPED in shown
        assert shown.count("too long") == shown.count("input 12: empty") == 1
    assert list(failure_notes(MANY)) == [f"Failed: {GROUPED}", "Failed: input 12: empty"]


def test_the_command_line(capsys):
    assert conclude(1, [(f"a.csv line {i}", "too long") for i in range(30)]) == 1
    err = capsys.readouterr().err
    assert err == ("pertinent: failed: 30 inputs (a.csv line 0, a.csv line 1, a.csv line 2, …): too long\n")


@pytest.mark.parametrize("out", [False, True])
def test_a_reason_shared_by_all_methods_counts_once_for_an_input(out, tmp_path):
    model = pertinent.wrap(
        lambda texts: [[0.9 if "bad" in t else 0.2] for t in texts], kind="text", output="value"
    )
    metrics = ["sufficiency", "class-faithfulness", "class-iou"]
    found = pertinent.compare(
        model,
        ["not bad", "quite bad"],
        ["leave-one-out", "random"],
        metrics,
        out=tmp_path / "a.parquet" if out else None,
    )
    failed = [(f.index, f.method, f.metric) for f in found.failures]
    assert failed == [(i, None, metric) for i in range(2) for metric in metrics[1:]]
    assert [str(f) for f in found.failures] == [f"{f.metric}: {f.reason}" for f in found.failures]
