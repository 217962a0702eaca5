"""Saved explanations on the page: what fits, in which order, and what is shown of it."""

import re

import httpx
import numpy as np
import pytest

import pertinent
from pertinent.app.admission_queue import AdmissionQueue
from pertinent.app.explain_form import Limits
from pertinent.app.explanation_browser import ExplanationBrowser, Filter
from pertinent.app.serve import served_models
from pertinent.app.site import Site
from pertinent.app.token_auth import COOKIE
from pertinent.errors import FileError, InputError, SettingError
from tests.app.browser import chromium, new_page
from tests.app.served import TOKEN, Counting, serving

TEXTS = [f"{word} film number {i}" for i in range(30) for word in ("good", "bad <i>")]


@pytest.fixture(scope="module")
def model():
    return pertinent.wrap(Counting(), kind="text", classes=["bad", "good"])


@pytest.fixture(scope="module")
def saved(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("browse") / "run.parquet"
    found = pertinent.compare(model, TEXTS, ["shapley", "leave-one-out"], budget=40, out=path)
    assert len(found.explanations) == 2 * len(TEXTS)
    return ExplanationBrowser(pertinent.Explanations.read(path), "run.parquet")


def texts(rows):
    return [row.explanation.input.text.first for row in rows]


def test_search_filter_and_the_global_view(saved):
    assert texts(saved.select(Filter())) == TEXTS
    assert texts(saved.select(Filter(q="FILM 17"))) == ["good film number 17", "bad <i> film number 17"]
    assert texts(saved.select(Filter(predicted="bad"))) == TEXTS[1::2]
    assert texts(saved.select(Filter(feature="good"))) == TEXTS[::2]
    assert texts(saved.select(Filter(q="17", feature="good", predicted="bad"))) == []
    assert {row.explanation.method for row in saved.select(Filter(method="leave-one-out"))} == {
        "leave-one-out"
    }
    important = saved._importance("shapley", "")
    assert set(important.features[:2]) == {"good", "bad"} and important.rows_for("good")[0].n == 30


def test_orders(saved):
    orders = saved.orders("shapley")
    assert "worst sufficiency first" in orders and "largest standard error first" in orders
    for name, key in orders.items():
        values = [key(row) for row in saved.select(Filter(sort=name))]
        assert values == sorted(values)
    surest = saved.select(Filter(sort="most confident first"))[0].explanation
    assert surest.prediction.values.max() == max(e.prediction.values.max() for e in saved.explanations)
    best = saved.select(Filter(sort="best comprehensiveness first"))[0].explanation
    assert np.mean(list(best.measures["comprehensiveness"].values())) == max(
        np.mean(list(e.measures["comprehensiveness"].values()))
        for e in saved.explanations
        if e.method == "shapley"
    )


def test_a_feature_sorts_by_its_score(saved):
    wanted = Filter(feature="good", sort="lowest score first")
    assert wanted.sort in saved.list_view(wanted)["orders"]
    scores = [row.score("good") for row in saved.select(wanted)]
    assert scores == sorted(scores) and len(scores) == 30
    e = saved.select(wanted)[0].explanation
    assert scores[0] == e.scores[e.features.index("good")]


def test_the_address_keeps_what_is_wanted():
    wanted = Filter.from_query({"q": "a b&c", "page": "2"})
    assert (wanted.q, wanted.page) == ("a b&c", 2)
    assert wanted.url(feature="x=y") == "/browse?q=a+b%26c&feature=x%3Dy"
    for page in ("-1", "x", "9" * 20):
        with pytest.raises(InputError, match="`page` must be"):
            Filter.from_query({"page": page})


def test_an_empty_file(tmp_path):
    with pytest.raises(FileError, match="no explanations"):
        ExplanationBrowser(pertinent.Explanations([]), "empty.parquet")


@pytest.fixture(scope="module")
def address(saved, model):
    site = Site(served_models({"words": model}, Limits()), AdmissionQueue(2, 2), saved)
    with serving(site.app(TOKEN)) as found:
        yield found


def test_the_pages(address):
    with httpx.Client(base_url=address, cookies={COOKIE: TOKEN}) as client:
        page = client.get("/browse", params={"q": "<script>"}).text
        assert "<script>" not in page and "No explanation matches" in page
        page = client.get("/browse", params={"page": 1, "predicted": "bad"}).text
        assert "26–30 of 30" in page and "bad &lt;i&gt; film" in page
        assert client.get("/browse", params={"page": "x"}).status_code == 422
        one = client.get("/browse/3").text
        assert "leave-one-out" in one and "shapley" in one and "bad &lt;i&gt; film number 1" not in one
        assert client.get("/browse/999").status_code == 422
        assert '<a href="/browse">Browse</a>' in client.get("/").text


def test_rows_and_images_can_be_browsed(tmp_path):
    table, digits = pertinent.load("table"), pertinent.load("digits")
    rows = ExplanationBrowser(pertinent.explain(table, table.background.values[:5], "leave-one-out"), "rows")
    view = rows.list_view(Filter(feature="alcohol"))
    assert view["n"] == 5 and 'href="/browse?feature=proline#list"' in view["importance"]
    from pertinent.models.embedded.digits import example_digit

    images = ExplanationBrowser(pertinent.explain(digits, [example_digit()] * 2, "leave-one-out"), "images")
    assert images.list_view(Filter())["importance"] is None
    assert images.one_view(1)["number"] == 1


def test_cohorts_are_compared(tmp_path):
    table = pertinent.load("table")
    rows = table.background.values[:40]
    es = pertinent.explain(table, rows, "shapley", budget=60)
    answers = [e.target_name for e in es]
    answers[0] = next(name for name in table.classes if name != answers[0])
    saved = ExplanationBrowser(es, "rows", answers)
    names = saved.groupings("shapley")
    assert names[:3] == ["predicted class", "every class", "right or wrong"] and "alcohol" in names
    found = saved._importance("shapley", "", "right or wrong")
    assert found.sizes == {"wrong": 1, "right": 39}
    found = saved._importance("shapley", "", "alcohol")
    low, high = sorted(found.groups, key=lambda name: float(name.split()[0]))
    place = es[0].features.index("alcohol")
    assert float(high.split()[0]) > np.median(rows[:, place]) >= float(low.split()[-1])
    assert sum(found.sizes.values()) == 40
    assert set(saved._importance("shapley", "", "every class").groups) == set(table.classes)
    mixed = saved.list_view(Filter(view="beeswarm", by="right or wrong"))["importance"]
    assert "<svg" not in mixed and "<table" in mixed  # of three classes: no beeswarm
    swarm = saved.list_view(Filter(view="beeswarm", by="predicted class"))["importance"]
    sizes = saved._importance("shapley", "", "predicted class").sizes
    assert swarm.count("<svg") == len(sizes) == 3
    assert all(f"<strong>{name}</strong> ({n})" in swarm for name, n in sizes.items())
    with pytest.raises(SettingError, match="by"):
        saved.list_view(Filter(by="nonsense"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_view_of_rows_fits_a_narrow_window(scheme):
    table = pertinent.load("table")
    found = pertinent.compare(table, table.background.values[:24], ["shapley", "random"], budget=100)
    es = pertinent.Explanations(found.explanations)
    site = Site(
        served_models(table, Limits()),
        AdmissionQueue(2, 2),
        ExplanationBrowser(es, "rows", ["cultivar 1"] * 24),
    )
    views = [
        "/browse/0",
        "/browse?view=beeswarm&by=predicted+class",
        "/browse?by=alcohol",
        "/model",
        "/compare",
    ]
    with (
        serving(site.app(TOKEN)) as address,
        chromium() as browser,
        new_page(browser, viewport={"width": 320, "height": 800}, color_scheme=scheme) as page,
    ):
        page.goto(f"{address}/?token={TOKEN}")
        for view in views:
            page.goto(address + view)
            page.wait_for_load_state()
            for each in page.locator("summary").all():
                each.click()
            assert page.evaluate("document.documentElement.scrollWidth") == 320, view


def test_from_a_bar_to_its_examples_in_a_browser(address):
    with chromium() as browser, new_page(browser, viewport={"width": 320, "height": 800}) as page:
        page.goto(f"{address}/browse?token={TOKEN}")
        assert page.evaluate("document.documentElement.scrollWidth") == 320
        page.click(".importance a >> text=good")
        page.wait_for_selector("#list:has-text('30 inputs with “good”')")
        page.select_option("[name=sort]", "least confident first")
        page.fill("[name=q]", "number 29")
        page.click("button >> text=Show")
        page.wait_for_selector("#list:has-text('1 input with “good”')")
        page.click(".listing a")
        page.click("text=Edit and explain again")
        page.wait_for_selector(".go:not([disabled])")
        assert page.input_value("[name=text]") == "good film number 29"
        assert re.search(r"saved=\d+", page.url)
