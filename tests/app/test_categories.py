"""Categorical columns on the page: values to choose from, and a note about values that never occur."""

import json
import re
from html import unescape

import httpx
import pytest

import pertinent
from pertinent.app.token_auth import COOKIE
from pertinent.inputs.background import Background
from pertinent.inputs.table import MOST_CATEGORIES, find_categories
from tests.app.browser import chromium, new_page
from tests.app.served import TOKEN, serving, site

ROWS = [[31, "Male", None], [45, "Female", "clerk"], [60, "Female", "nurse"], [22, "Male", "Ärztin <b>"]]


def predict(rows):
    ages = [0.01 * float(age) * (1 if sex == "Female" else 0.5) for age, sex, _ in rows]
    return [[1 - age, age] for age in ages]


@pytest.fixture(scope="module")
def address():
    model = pertinent.wrap(predict, background=ROWS, columns=["age", "sex", "job"], classes=["no", "yes"])
    with serving(site({"people": model}).app(TOKEN)) as found:
        yield found


@pytest.fixture
def client(address):
    with httpx.Client(base_url=address, cookies={COOKIE: TOKEN}, timeout=30) as found:
        yield found


def notes(client, **row):
    form = {
        "model": "people",
        "input": {"row": {"age": 30, "sex": "Male", "job": "clerk", **row}},
        "budget": 8,
    }
    result = client.post("/api/explain", json=form).text.strip().split("\n\n")[-2]
    html = json.loads(result.partition("data: ")[2])["html"]
    return [unescape(note) for note in re.findall(r'<p class="note" role="note">([^<]*)', html)]


def test_the_values_of_categorical_columns_are_offered(client):
    form = client.post("/api/form", json={"model": "people"}).text
    selects = re.findall(r'<select name="(sex|job)">(.*?)</select>', form, re.DOTALL)
    values = {name: [unescape(v) for v in re.findall(r"<option[^>]*>([^<]*)", own)] for name, own in selects}
    missing = "(missing)"
    assert values == {"sex": [missing, "Female", "Male"], "job": [missing, "clerk", "nurse", "Ärztin <b>"]}


def test_a_value_that_never_occurs_is_flagged_with_the_nearest(client):
    assert notes(client) == notes(client, job=None) == notes(client, age=99) == []
    (note,) = notes(client, sex="Femle")
    assert "sex" in note and "'Femle'" in note and note.index("'Female'") < note.index("'Male'")
    (note,) = notes(client, job=5)
    assert "job" in note
    assert len(notes(client, sex="male", job="nurze")) == 2


def test_a_column_of_many_texts_is_not_categorical():
    rows = [[str(i), "a" if i % 2 else "b", i] for i in range(MOST_CATEGORIES + 1)]
    assert find_categories(Background(rows), ("text", "letter", "number")) == {"letter": ["a", "b"]}


def test_a_category_is_chosen_in_a_browser(address):
    with chromium() as browser, new_page(browser, viewport={"width": 1200, "height": 900}) as page:
        page.goto(f"{address}/?token={TOKEN}")
        page.wait_for_selector(".go:not([disabled])")
        sex, job = page.locator("select[name=sex]"), page.locator("select[name=job]")
        assert sex.locator("option").evaluate_all("all => all.map((each) => each.value)") == [
            "",
            "Female",
            "Male",
        ]
        assert sex.input_value() == "Male" and job.input_value() == ""
        sex.select_option("Female")
        page.click(".go")
        page.wait_for_selector(".status:has-text('Done:')")
        assert page.locator("[data-part=result] .note").count() == 0
        sex.evaluate("each => { each.add(new Option('Femle')); each.value = 'Femle'; }")
        page.click(".go")
        page.wait_for_selector("[data-part=result] .note:has-text('Femle')")
