"""What faithfulness costs: which methods no other beats, in a figure and on the page."""

import httpx
import numpy as np
import pytest

import pertinent
from pertinent.app.admission_queue import AdmissionQueue
from pertinent.app.explain_form import Limits
from pertinent.app.explanation_browser import ExplanationBrowser
from pertinent.app.method_comparison import MethodComparison
from pertinent.app.serve import served_models
from pertinent.app.site import Site
from pertinent.app.token_auth import COOKIE
from pertinent.errors import SettingError
from pertinent.results.pareto import cost_points
from tests.app.browser import chromium, new_page
from tests.app.served import TOKEN, Counting, serving

TEXTS = [f"not good film number {i} but bad" for i in range(25)]


@pytest.fixture(scope="module")
def model():
    return pertinent.wrap(Counting(), kind="text", classes=["bad", "good"])


@pytest.fixture(scope="module")
def compared(model):
    return pertinent.compare(model, TEXTS, ["shapley", "leave-one-out", "random"], budget=60)


@pytest.mark.parametrize("metric", [None, "sufficiency", "comprehensiveness"])
def test_the_best_are_those_that_none_beats(compared, metric):
    points = cost_points(compared, metric, "evaluations")
    sign = -1 if metric != "comprehensiveness" else 1
    assert [p.cost for p in points] == sorted(p.cost for p in points)
    for p in points:
        beaten = any(
            q.cost <= p.cost and sign * q.interval.mean >= sign * p.interval.mean and q != p for q in points
        )
        assert p.is_best == (not beaten)
    costs = {p.method: p.cost for p in points}
    assert costs["leave-one-out"] == np.mean(
        [e.evaluations for e in compared.explanations if e.method[0] == "l"]
    )


def test_the_figure_and_bad_names(compared):
    (axes,) = compared.plot_pareto("comprehensiveness").axes
    assert {text.get_text() for text in axes.texts} == {"shapley", "leave-one-out", "random"}
    assert compared.plot_pareto(cost="seconds").axes[0].get_xlabel().startswith("seconds")
    with pytest.raises(SettingError, match="Unknown metric 'beauty'"):
        compared.plot_pareto("beauty")
    with pytest.raises(SettingError, match="Unknown cost 'euros'"):
        compared.plot_pareto(cost="euros")


def test_the_page_needs_two_methods_that_were_measured(compared, model):
    every = pertinent.Explanations(list(compared.explanations))
    assert MethodComparison(every).is_available
    alone = pertinent.Explanations([e for e in every if e.method == "shapley"])
    assert not MethodComparison(alone).is_available
    site = Site([], AdmissionQueue(1, 1), ExplanationBrowser(alone, "one"))
    assert "compare" not in [view.name for view in site.views]
    unmeasured = pertinent.explain(model, TEXTS[:3], "leave-one-out")
    assert not MethodComparison(unmeasured).is_available


def test_the_page(compared, model):
    saved = ExplanationBrowser(pertinent.Explanations(list(compared.explanations)), "run.parquet")
    site = Site(served_models({"words": model}, Limits()), AdmissionQueue(2, 2), saved)
    with serving(site.app(TOKEN)) as address:
        with httpx.Client(base_url=address, cookies={COOKIE: TOKEN}) as client:
            assert "<polyline" in client.get("/compare").text
            assert client.get("/compare", params={"metric": "<b>"}).status_code == 422
        with chromium() as browser, new_page(browser, viewport={"width": 320, "height": 800}) as page:
            page.goto(f"{address}/?token={TOKEN}")
            page.click("nav >> text=Compare")
            page.select_option("[name=metric]", "comprehensiveness")
            page.click("button >> text=Show")
            page.wait_for_selector("figcaption:has-text('comprehensiveness: higher is better')")
            assert page.locator("svg circle").count() == 3
            assert page.evaluate("document.documentElement.scrollWidth") == 320
