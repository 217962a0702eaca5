"""A result that says nothing says so, and is not drawn as if it said something."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO

import numpy as np
import pytest
from rich.console import Console
from tests.explanations import changed

from pertinent.diagnostics.removal_check import AblatedInput, RemovalCheck
from pertinent.rendering.html.explanation import show as fragment
from pertinent.rendering.panels import panel
from pertinent.rendering.plots.explanation import show as plot
from pertinent.rendering.terminal.explanation import show as rendered
from pertinent.rendering.wording import relative_scores, uninformative_reason

SAID = "No feature moves the prediction measurably: the largest score is"


def with_scores(e, scores):
    return replace(
        e, scores=np.resize(scores, len(e.features)), standard_errors=None, chosen={}, meaning="effect"
    )


def printed(thing):
    console = Console(width=140, file=StringIO(), color_system=None)
    console.print(thing)
    return console.file.getvalue()


@pytest.mark.parametrize("scores", [[0.0], [1e-11, -3e-12], [np.nan], [1e-10]])
def test_rounding_errors_are_not_shaded(explanation, scores):
    e = with_scores(explanation, scores)
    assert uninformative_reason(e).startswith(SAID)
    assert not relative_scores(e).any()
    assert SAID in printed(rendered(e))
    assert "█" not in printed(rendered(e)).split(SAID)[1]
    page = fragment(e)
    assert SAID in page
    assert "--share:" not in page
    assert 'class="support"' not in page


def test_rounding_errors_are_not_drawn(image, row):
    assert not panel(with_scores(image, [1e-12, -1e-12])).share.any()
    figure = plot(with_scores(row, [1e-12, -1e-12]))
    assert SAID in figure.axes[0].get_title(loc="left")
    assert figure.axes[0].get_xlim()[1] > 0.1


def test_scores_are_compared_with_the_prediction(row):
    tiny = with_scores(row, [3e-11, -1e-11])
    assert uninformative_reason(tiny) is not None
    assert uninformative_reason(changed(tiny, prediction=np.array([1e-10, 1e-11]))) is None


def test_equal_scores_are_told_from_none(row):
    assert uninformative_reason(with_scores(row, [0.3])).startswith("All features have the same score")
    assert uninformative_reason(with_scores(row, [0.3, 0.31])) is None


def test_a_result_says_what_it_found(explanation):
    assert uninformative_reason(explanation) is None


def check_of(n):
    """A check in which one of two removals is always wrong."""
    rows = [
        AblatedInput(i, removal, share, 1, removal == "a" or not share, 1.0, 0.9, 0.1)
        for i in range(n)
        for removal in ("a", "b")
        for share in (0.0, 0.5)
    ]
    fields = {"measure": "accuracy", "default": "a", "classes": ("no", "yes"), "features": "words"}
    return RemovalCheck(rows=tuple(rows), draws=10, seed=0, **fields)


def test_a_check_of_one_input_tells_nothing():
    check = check_of(1)
    assert check.recommendation.startswith("1 input: too few for a conclusion")
    for shown in (printed(check), check._repr_html_()):
        assert "1 input: too few" in shown
        assert "too few inputs" in shown
        assert "in distribution</td>" not in shown
    assert "badly out" in printed(check_of(20))
