"""Whatever a string holds, it is visible text on the page: that is what `Markup.format` makes of it."""

from __future__ import annotations

import ast
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import markupsafe
import numpy as np
import pytest
from tests.explanations import changed

import pertinent
from pertinent import rendering
from pertinent.diagnostics.removal_check import AblatedInput, RemovalCheck
from pertinent.inputs.base import Truncation
from pertinent.inputs.table import TableInput
from pertinent.inputs.text import Text, TextInput
from pertinent.outputs import PlainValues
from pertinent.rendering.html.explanation import show_all as fragments
from pertinent.rendering.html.page import report
from pertinent.results.evaluation import Evaluation, EvaluationRow
from pertinent.results.explanation import Explanations
from pertinent.results.failures import Failure

from .browser import dumped, needs_browser

ATTACK = (
    "\"><img src=x onerror=document.title='hacked'><script>document.title='hacked'</script>"
    "' onmouseover=document.title='hacked' y=' </style></title></select>"
)
HARMLESS = "".join("x" if c != " " else c for c in ATTACK)


class Shape(HTMLParser):
    """The tags of a page with the names of their attributes, in order."""

    def __init__(self, page):
        super().__init__()
        self.shape = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.shape.append((tag, *(name for name, _ in attrs)))

    def handle_endtag(self, tag):
        self.shape.append(f"/{tag}")


def spelt(e, word, number):
    """The explanation with every string replaced by `word`."""
    input = replace(
        e.input,
        features=(word,) * len(e.features),
        granularity=word,
        notes=(f"noted {word}",),
        truncation=Truncation(1, 2, 3, word),
        fingerprint=f"{number} {word}".encode(),
    )
    if isinstance(input, TextInput):
        spans = np.array([(0, 7 * i, 7 * i + 5) for i in range(len(e.features))])
        input = replace(input, text=Text(word * len(e.features), word, fixed="second"), spans=spans)
    if isinstance(input, TableInput):
        values = np.array([word] * len(input.values), dtype=object)
        input = replace(input, names=(word,) * len(input.names), values=values)
    return changed(
        e,
        input=input,
        index=number,
        id=word,
        method=word,
        settings={word: word},
        removal=word,
        removal_settings={word: word},
        classes=(word, f"{word}2"),
        output=PlainValues(word) if number % 2 else e.output,
        details={word: word, f"{word}2": 0.5},
        warnings=(word,),
        measures={word: {0.2: 0.5, None: 0.1}},
    )


def pages(several, word):
    """Every kind of page, with `word` wherever there is a string."""
    explanations = Explanations(
        [spelt(e, word, i) for i, e in enumerate(several)], [Failure(9, word, id=word)]
    )
    rows = [EvaluationRow(i, f"{word}{i % 2}", word, 0.2, 0.5) for i in range(len(explanations))]
    evaluation = Evaluation(rows, explanations, {word: "lower"}, [Failure(3, word)])
    yield report(explanations, title=word, evaluation=evaluation)
    yield fragments(explanations)
    ablated = [
        AblatedInput(i, removal, share, 0, True, 1.0, 0.9, 0.1)
        for i in range(2)
        for removal in (word, f"{word}2")
        for share in (0.0, 0.5)
    ]
    skipped, failures = {word: word}, (Failure(1, word, id=word),)
    check = RemovalCheck(
        rows=tuple(ablated),
        measure="accuracy",
        default=word,
        classes=(word,),
        features=word,
        draws=2,
        seed=0,
        skipped=skipped,
        failures=failures,
    )
    yield check._repr_html_()


@pytest.fixture
def several(text, search, image, row):
    return [text, search, image, row, row, text]


def test_strings_add_no_element_and_no_attribute(several):
    for attacked, harmless in zip(pages(several, ATTACK), pages(several, HARMLESS), strict=True):
        assert attacked.count("&lt;script&gt;") >= 7
        assert Shape(attacked).shape == Shape(harmless).shape


@needs_browser
def test_a_browser_runs_nothing_of_it(several, tmp_path):
    page = next(pages(several, ATTACK)).replace("Content-Security-Policy", "none")
    assert "<title>hacked" not in dumped(page, tmp_path)


@needs_browser
def test_a_browser_would_run_no_script_but_ours(text, tmp_path):
    page = report([text, replace(text, index=1)], title="A title")
    page = page.replace("</main>", "</main><script>document.title = 'hacked'</script>")
    seen = dumped(page, tmp_path)
    assert "<title>A title" in seen
    assert "2 of 2 inputs" in seen


@pytest.mark.parametrize(
    "path", sorted(Path(rendering.__file__).parent.glob("*.py")), ids=lambda path: path.name
)
def test_only_literals_are_taken_for_markup(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Markup":
            assert all(isinstance(argument, ast.Constant) for argument in node.args), ast.unparse(node)


def test_control_characters_are_seen(several):
    hidden = "\x00\x07\x1b[2J\x7f\x9b\u202e\u2066"
    for page in pages(several, f"a{hidden}b"):
        assert not set(page) & set(hidden) - set("[2J")
        assert page.count("a␀␇␛[2J" + "\ufffd" * 4 + "b") >= 7


def test_only_our_own_markup_is_trusted(text):
    """A text that calls itself safe, as that of a web framework, is a text."""
    safe = markupsafe.Markup("a <img src=x> film")
    e = pertinent.explain(
        lambda texts: [[0.3, 0.7]] * len(texts), safe, "leave-one-out", features="sentences"
    )
    for page in (e.to_html(), report(text, title=safe), changed(text, method=safe).to_html()):
        assert "<img" not in page
        assert "&lt;img src=x" in page


def test_lines_and_tabs_stay(text):
    page = report(text, title="a\r\nb\tc\nd")
    assert "<h1>a\nb\tc\nd</h1>" in page


@pytest.mark.parametrize(
    "path", sorted(Path(rendering.__file__).parent.glob("*.py")), ids=lambda path: path.name
)
def test_no_page_escapes_by_other_means(path):
    assert path.name == "markup.py" or "markupsafe" not in path.read_text(encoding="utf-8")


def test_fragments_are_plain_strings(text, evaluation):
    for page in (
        text.to_html(),
        evaluation._repr_html_(),
        report(text),
        Explanations([text])._repr_html_(),
    ):
        assert type(page) is str
