"""Terminals without colour, words that were not read, and scales that outliers do not spoil."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO

import numpy as np
import pytest
from rich.console import Console
from tests.explanations import changed

from pertinent.inputs.base import Truncation
from pertinent.inputs.image import image_input
from pertinent.inputs.text import Text, text_input
from pertinent.rendering.drawings.text import spans_of
from pertinent.rendering.html.explanation import show as fragment
from pertinent.rendering.panels import clipping, panel
from pertinent.rendering.plots.explanation import show as plot
from pertinent.rendering.terminal.explanation import show as rendered
from pertinent.rendering.terminal.explanation import show_all as rendered_all
from pertinent.results.explanation import Explanations

SAID = "slow 愛 film, then wonderful, truly"
SCORES = {"slow": -0.6, "愛": 0.3, "film": 0.02, "then": -0.2, "wonderful": 1.0}
WAYS = [{"color_system": None}, {"color_system": "truecolor", "no_color": True}]


def printed(thing, width=100, **options):
    console = Console(width=width, file=StringIO(), force_terminal=True, **options)
    console.print(thing)
    return [line.strip() for line in console.file.getvalue().splitlines()]


@pytest.fixture
def words(text):
    spans = np.array([(0, SAID.index(word), SAID.index(word) + len(word)) for word in SCORES])
    given = text_input(Text(SAID), "words", spans)
    return replace(text, input=given, scores=np.array([*SCORES.values()]), standard_errors=None)


@pytest.mark.parametrize("options", WAYS, ids=["no colours", "NO_COLOR"])
def test_words_are_marked_below(words, options):
    lines = printed(rendered(words), **options)
    place = lines.index(SAID)
    assert lines[place + 1] == "==== ++       ---- #########"
    assert "+ supports [red]good, # strongly   - opposes [red]good, = strongly" in lines


def test_marks_stay_below_their_words_when_lines_wrap(words):
    lines = printed(rendered(words), width=21, color_system=None)
    place = lines.index("slow 愛 film, then")
    assert lines[place + 1 : place + 4] == ["==== ++       ----", "wonderful, truly", "#########"]


def test_lines_without_strong_words_have_no_marks(words):
    lines = printed(rendered(replace(words, scores=np.zeros(5))), color_system=None)
    assert lines[lines.index(SAID) + 1] == ""


def test_images_are_drawn_with_characters(image):
    input = image_input(np.repeat(np.linspace(0, 1, 16)[None], 16, axis=0)[None], "patches:8")
    e = replace(image, input=input, scores=np.array([1.0, 0.2, -0.2, -1.0]), standard_errors=None)
    for options in WAYS:
        lines = printed(rendered(e), **options)
        rows = [line for line in lines if line.endswith(("########++++++++", "--------========"))]
        assert [row[-16:] for row in rows] == ["########++++++++"] * 4 + ["--------========"] * 4
        assert all(row.startswith(".::-==+**#%%@@") for row in rows)
    coloured = printed(rendered(e), color_system="truecolor")
    assert any("▀" in line for line in coloured)


def test_words_after_truncation_look_unread(words):
    seen = replace(words.input, truncation=Truncation(5, 6, 8, "words"))
    assert [piece.text for piece in spans_of(seen) if piece.unread] == [", truly"]
    assert not any(piece.unread for piece in spans_of(words.input))
    e = replace(words, input=seen)
    page = fragment(e)
    assert '<span class="unread">, truly</span>' in page
    assert "not read by the model" in page
    assert "not read by the model" not in fragment(words)
    lines = printed(rendered(e), color_system=None)
    assert "==== ++       ---- #########~ ~~~~~" in lines
    assert "~ not read by the model" in " ".join(lines)
    assert any(
        "\x1b[2;9;" in line and ", truly" in line for line in printed(rendered(e), color_system="truecolor")
    )


def test_what_a_tokenizer_merges_is_not_called_unread(words):
    merged = replace(words.input, spans=words.input.spans[[0, 1, 4]], features=("slow", "愛", "wonderful"))
    noted = replace(merged, truncation=Truncation(3, 6, 8, "words"))
    assert [piece.text for piece in spans_of(noted) if piece.unread] == [", truly"]


def test_a_hot_pixel_does_not_blank_the_rest(image):
    input = image_input(np.zeros((1, 20, 20)), "pixels")
    scores = np.linspace(-1, 1, 400)
    scores[0] = 1000.0
    e = replace(image, input=input, scores=scores, standard_errors=None)
    assert np.abs(panel(e).share).mean() > 0.4
    assert clipping(e) == "clipped at ±0.99: 4 of 400 scores exceed it"
    assert "clipped at ±0.99" in fragment(e)
    assert "clipped at ±0.99" in " ".join(printed(rendered(e), color_system=None))
    figure = plot(e)
    assert figure.axes[-1].get_ylabel().endswith(", clipped")


def test_few_features_are_not_clipped(image):
    scores = np.zeros(len(image.features))
    scores[:2] = 1000.0, 1.0
    e = replace(image, scores=scores)
    assert panel(e).share.max() == 1.0
    assert clipping(e) == ""


def test_every_explanation_is_shown_under_the_number_of_its_input(words):
    second = replace(words, index=4, id="order-17")
    lines = printed(
        rendered_all(Explanations([second, words, changed(words, method="other")])), color_system=None
    )
    rules = [line.strip("─ ") for line in lines if line.startswith("──")]
    assert rules == ["input 0", "input 4 · order-17 · the same as input 0"]
    assert any(line.endswith("input 4 · order-17") for line in printed(rendered(second), color_system=None))
