"""Prompts in the terminal, in HTML and in plots: the answer is there, and its tokens can be chosen."""

import re

import pytest
from rich.console import Console
from tests import tiny_lm

import pertinent
from pertinent import Prompt
from pertinent.rendering.html.page import report

from .test_html import Reader

SOURCES = ["Ann keeps <b>the</b> key.", "Bob keeps the map."]


@pytest.fixture(scope="module")
def model():
    return pertinent.wrap((tiny_lm.model("llama"), tiny_lm.tokenizer()))


@pytest.fixture(scope="module")
def explanation(model):
    prompt = Prompt("Who keeps the map?", SOURCES, answer=" <i>Bob</i>", rather_than=" Ann")
    return pertinent.explain(model, prompt, "shapley")


def printed(e, **options):
    console = Console(width=80, **options)
    with console.capture() as captured:
        console.print(e)
    return captured.get()


@pytest.mark.parametrize("colour", [None, "truecolor"])
def test_the_terminal_shows_the_answer_after_the_prompt(explanation, colour):
    shown = printed(explanation, color_system=colour, force_terminal=colour is not None)
    plain = re.sub(r"\x1b\[[\d;]*m", "", shown)
    assert plain.index("Bob keeps the map.") < plain.index("Who keeps the map?") < plain.index("→ <i>Bob</i>")
    assert "rather than Ann" in plain
    assert "supports contrast" in plain


def test_a_page_has_a_button_for_each_token(explanation):
    page = report(explanation)
    reader = Reader(page)
    columns = len(explanation.classes)
    assert reader.tags.count("input") == columns
    assert not {"b", "script"} & set(reader.tags)
    assert "<i>Bob" not in page
    assert "Ann keeps <b>the</b> key." in reader.text
    assert page.count("checked>") == 1
    for column in range(columns):
        assert f".prompt:has(.t{column}:checked) .w" in page


def test_a_method_that_scores_the_target_alone_has_no_buttons(model):
    e = pertinent.explain(model, Prompt("Ann keeps the key.", answer=" Bob"), "parallel-local-search")
    reader = Reader(report(e))
    assert "input" not in reader.tags
    assert "Bob" in reader.text


def test_the_heat_map_has_a_column_for_each_token(explanation):
    figure = explanation.plot()
    heat = figure.axes[0]
    n_tokens = len(explanation.input.text.answer_tokens)
    assert heat.images[0].get_array().shape == (2, n_tokens)
    assert len(heat.get_xticklabels()) == n_tokens
    expected = explanation.class_scores[explanation.input.text.first_token :].T
    assert heat.images[0].get_array().tolist() == expected.tolist()
