"""The report page: an index that can be searched, filtered and sorted; methods side by side."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from tests.explanations import changed

import pertinent
from pertinent.rendering.by_input import by_input, name_of
from pertinent.rendering.html.explanation import show as fragment
from pertinent.rendering.html.explanation import show_all as fragments
from pertinent.rendering.html.page import report
from pertinent.results.explanation import Explanations
from pertinent.results.failures import Failure

from .browser import dumped, needs_browser
from .test_html import Reader

TEXTS = ["wonderful, not slow", "a slow one", "not slow, wonderful", "a slow one", "Ada"]


@pytest.fixture(scope="module")
def explanations(text_model):
    found = pertinent.explain(text_model, TEXTS, "leave-one-out")
    return [replace(e, id=f"order-{e.index}" if e.index else None) for e in found]


def acted(page, tmp_path, action):
    """The numbers of the inputs shown in the index and below it, after an action of the reader."""
    script = f"<script type='module'>{action}</script></body>"
    page = page.replace("Content-Security-Policy", "none").replace("</body>", script)
    page = re.sub("<style>.*?</style>", "", dumped(page, tmp_path), flags=re.DOTALL)
    rows = re.findall(r'<tr data-predicted="[^"]*"( hidden="")?>.*?<a[^>]*>(\d+)</a>', page)
    sections = re.findall(r'<section id="input-(\d+)"( hidden="")?', page)
    assert [n for hidden, n in rows if not hidden] == [n for n, hidden in sections if not hidden]
    return [int(number) for hidden, number in rows if not hidden]


def test_inputs_are_numbered_from_zero_and_named(explanations):
    assert [found.title for found in by_input(reversed(explanations))] == [
        "input 0",
        "input 1 · order-1",
        "input 2 · order-2",
        "input 3 · order-3 · the same as input 1",
        "input 4 · order-4",
    ]
    assert name_of(Failure(7, "blank", id="x")) == "input 7 · x"
    page = Reader(report(explanations)).text
    assert "Input 3 · order-3 the same as input 1" in page
    text = Reader(fragments(Explanations(explanations))).text
    assert "input 3 · order-3 · the same as input 1 · What supports it" in text
    assert "input 4 · order-4" in Reader(fragment(explanations[4])).text
    assert "input 0" not in Reader(fragment(explanations[0])).text


def test_separate_runs_share_numbers_but_not_sections(text, row):
    found = by_input([text, row, changed(text, method="other")])
    assert [each.name for each in found] == ["input 0", "input 1"]
    page = Reader(report([text, row])).text
    assert "Input 0" in page
    assert "Input 1" in page


def test_methods_of_one_input_share_a_section_whatever_their_features(text_model):
    found = [
        pertinent.explain(text_model, "A slow one. Wonderful.", "leave-one-out", features=features)
        for features in ("words", "sentences")
    ]
    (together,) = by_input(found)
    assert len(together.explanations) == 2


def test_the_index_has_a_line_for_each_input(evaluation):
    reader = Reader(report(evaluation))
    assert reader.text.count("not slow, but wonderful") >= 1
    for method in ("leave-one-out", "kernel-shap"):
        assert f"sufficiency ↓ {method}" in reader.text
    links = [value for name, value in reader.attributes if name == "href"]
    assert links == ["#input-0", "#input-1"]


def with_measures(text, n_methods, n_inputs=3):
    """Explanations of several inputs by several methods, each with two measures."""
    measures = {name: {0.1: 0.5} for name in ("sufficiency", "comprehensiveness")}
    return [
        changed(text, index=i, method=f"a-method-with-a-name-{m}", measures=measures)
        for i in range(n_inputs)
        for m in range(n_methods)
    ]


@needs_browser
@pytest.mark.parametrize("n_methods", [1, 2, 4])
def test_the_index_fits_the_page(text, tmp_path, n_methods):
    """At 1,200 pixels there is nothing to scroll to, and all measures can be had."""
    page = report(with_measures(text, n_methods))
    script = (
        "const box = document.querySelector('.index .scroll');"
        "const seen = () => [...box.querySelectorAll('th')].filter((h) => h.offsetWidth).length;"
        "document.title = [box.scrollWidth - box.clientWidth, seen()].join(' ');"
        "document.querySelector('.all')?.click(); document.title += ' ' + seen();"
    )
    page = page.replace("Content-Security-Policy", "none")
    page = page.replace("</body>", f"<script type='module'>{script}</script></body>")
    dom = dumped(page, tmp_path, "--window-size=1200,900")
    beyond, at_first, all_columns = map(int, re.search("<title>(.*?)</title>", dom)[1].split())
    assert beyond == 0
    assert all_columns - at_first == (2 * n_methods if n_methods == 4 else 0)


def test_one_input_has_no_index(text):
    page = report(text)
    assert "<script" not in page
    assert 'id="index"' not in page


def test_everything_is_shown_without_scripts(explanations):
    reader = Reader(report(explanations))
    hidden = [name for name, _ in reader.attributes if name == "hidden"]
    assert len(hidden) == 2, "only the controls and the pager, which do nothing without scripts"


def test_an_image_that_several_methods_explain_is_there_once(image):
    reader = Reader(report([image, changed(image, method="other")]))
    assert reader.tags.count("img") == 5  # the image, and two heat maps over it


def test_a_thousand_explanations_stay_small(text):
    scores = np.linspace(-1, 1, len(text.features))
    many = [replace(text, index=i, scores=scores) for i in range(101)]
    packed, plain = len(report(many)), len(report(many[:100]))
    assert packed < plain / 3
    assert packed * 1000 / 101 < 10e6


@pytest.fixture(scope="module")
def many(text_model):
    texts = [f"wonderful story number {i}, not slow" if i % 2 else f"a slow <i> one {i}" for i in range(130)]
    return pertinent.explain(text_model, texts, "leave-one-out")


@needs_browser
def test_a_long_report_is_unpacked_page_by_page(many, tmp_path):
    page = report(many)
    assert "a slow &lt;i&gt; one 128" not in page.partition('id="inputs"')[2]
    steps = {
        "": range(20),
        "document.querySelectorAll('.pages button')[1].click();": range(20, 40),
        "location.hash = '#input-125';": range(120, 130),
    }
    for action, shown in steps.items():
        dom = dumped(_waiting(page, action), tmp_path)
        assert re.findall(r'<section id="input-(\d+)">', dom) == list(map(str, shown))
        if 125 in shown:
            assert 'wonderful</span> <span class="w"' in dom


@needs_browser
def test_a_long_report_is_searched_and_sorted(many, tmp_path):
    page = report(many)
    typed = "const box = document.querySelector('.controls input');"
    typed += "box.value = 'STORY 12'; box.dispatchEvent(new Event('input'));"
    dom = dumped(_waiting(page, typed), tmp_path)
    expected = [i for i in range(130) if i % 2 and "12" in str(i)]
    assert re.findall(r'<section id="input-(\d+)">', dom) == list(map(str, expected))
    assert f"{len(expected)} of 130 inputs" in dom


def _waiting(page, action):
    """The page with a script that acts once everything is unpacked."""
    script = f"setTimeout(() => {{ {action} }}, 300)"
    page = page.replace("Content-Security-Policy", "none")
    return page.replace("</body>", f"<script type='module'>{script}</script></body>")


@needs_browser
def test_a_heat_map_can_be_seen_through(image, tmp_path):
    for images in ([image], [replace(image, index=i) for i in range(101)]):
        moved = (
            "const slider = document.querySelector('figure input[type=range]');"
            "slider.value = 30; slider.dispatchEvent(new Event('input'));"
        )
        dom = dumped(_waiting(report(images), moved), tmp_path)
        assert re.search(r'<img class="over[^>]*style="opacity: 0.3', dom)
        assert '<img class="under' in dom or 'class="coarse under"' in dom


def test_a_report_compares_cohorts_and_has_curves(text_model):
    found = pertinent.compare(text_model, TEXTS * 5, ["shapley"], budget=30)
    page = report(found.explanations, groups=["even", "odd"] * 12 + ["even"])
    assert page.count("<strong>even</strong>") == 1  # its beeswarm
    assert page.count(">odd</td>") > 3  # its bars
    assert "From the base value to the prediction" in page
    several = pertinent.compare(text_model, TEXTS, ["leave-one-out", "random"])
    assert report(several).count("<polyline") == 4  # two metrics, two methods


@needs_browser
def test_the_index_can_be_searched(explanations, tmp_path):
    page = report(explanations)
    typed = (
        "const box = document.querySelector('.controls input');"
        "box.value = 'SLOW wonderful'; box.dispatchEvent(new Event('input'));"
    )
    assert acted(page, tmp_path, typed) == [0, 2]


@needs_browser
def test_the_index_can_be_filtered_by_prediction(explanations, tmp_path):
    chosen = (
        "const list = document.querySelector('.controls select');"
        "list.value = '<b>bad</b>'; list.dispatchEvent(new Event('change'));"
    )
    bad = [e.index for e in explanations if e.prediction.values.argmax() == 0]
    assert bad == [1, 3]
    assert acted(report(explanations), tmp_path, chosen) == bad


@needs_browser
def test_the_index_can_be_sorted(explanations, tmp_path):
    clicks = (
        "const head = [...document.querySelectorAll('.index th')].find((h) => /probab/.test(h.textContent));"
        "head.firstChild.click(); head.firstChild.click();"
    )
    likely = sorted(explanations, key=lambda e: -e.prediction.values.max())
    assert acted(report(explanations), tmp_path, clicks) == [e.index for e in likely]
