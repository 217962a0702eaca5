"""A model beside the right answers: known accuracies, cohorts, and the column that a score interacts with."""

import httpx
import numpy as np
import pytest

import pertinent
from pertinent.app.admission_queue import AdmissionQueue
from pertinent.app.explanation_browser import WORST, ExplanationBrowser, Filter
from pertinent.app.model_report import ModelReport, right_answers
from pertinent.app.site import Site
from pertinent.app.token_auth import COOKIE
from pertinent.cli.input_files import read_answers
from pertinent.errors import InputError, SettingError
from pertinent.rendering.html import from_template
from tests.app.browser import chromium, new_page
from tests.app.served import TOKEN, serving

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(60, 4))


@pytest.fixture(scope="module")
def classes():
    """Says "high" where the first column is above 0; the product of two columns matters, too."""

    def predict(rows):
        p = 1 / (1 + np.exp(-4 * rows[:, 0] - 1e-3 * rows[:, 1]))
        return np.stack([1 - p, p], axis=1)

    model = pertinent.wrap(
        predict, kind="table", background=ROWS, columns=list("abcd"), classes=["low", "high"]
    )
    return pertinent.compare(model, ROWS, "exact-shapley", removal="mean").explanations


@pytest.fixture(scope="module")
def values():
    model = pertinent.wrap(
        lambda rows: rows[:, 0] * rows[:, 1] + 0.1 * rows[:, 2],
        kind="table",
        output="value",
        background=ROWS,
        columns=list("abcd"),
    )
    return pertinent.explain(model, ROWS, "exact-shapley", removal="mean")


def answers(wrong):
    """The right classes, but for those that the model gets wrong."""
    names = np.where(ROWS[:, 0] > 0, "high", "low")
    other = np.where(ROWS[:, 0] > 0, "low", "high")
    return [str(b if i in wrong else a) for i, (a, b) in enumerate(zip(names, other, strict=True))]


def test_accuracy_confusion_and_cohorts(classes):
    wrong = {0, 1, 2, 30}
    report = ModelReport(classes, right_answers(classes, answers(wrong)))
    assert report.overall().interval.mean == 56 / 60 and report.overall().n == 60
    table = np.array([counts for _, counts in report.confusion()])
    assert table.sum() == 60 and np.trace(table) == 56
    for place, (recall, precision) in enumerate(report.by_class()):
        np.testing.assert_allclose(recall.interval.mean, table[place, place] / table[place].sum())
        np.testing.assert_allclose(precision.interval.mean, table[place, place] / table[:, place].sum())
    assert report.columns()[0] == "a"
    cohorts = report.cohorts("b")
    assert [each.n for each in cohorts] == [15] * 4
    np.testing.assert_allclose(sum(each.n * each.interval.mean for each in cohorts), 56)


def test_errors_of_values_and_the_column_that_interacts(values):
    right = [float(row[0] * row[1] + 0.1 * row[2]) + 1 for row in ROWS]
    report = ModelReport(values, right_answers(values, right))
    np.testing.assert_allclose(report.overall().interval.mean, 1)
    assert report.measure == "mean absolute error"
    for column, other in (("a", "b"), ("b", "a")):
        found = report.dependence(column, report.explanations[0].target_name)
        assert found["other"] == other and len(found["points"]) == 60
    assert (
        report.dependence("d", report.explanations[0].target_name)["other"] is None
    )  # nothing depends on it


def test_categories_and_missing_answers():
    rows = [{"job": job, "age": age} for age in range(6) for job in ("clerk", "cook")]
    model = pertinent.wrap(
        lambda frame: [[0.2, 0.8] if job == "cook" else [0.7, 0.3] for job in frame[:, 0]],
        kind="table",
        background=rows,
        columns=["job", "age"],
    )
    es = pertinent.explain(model, rows, "leave-one-out")
    right = [None, *["1"] * 11]
    report = ModelReport(es, right_answers(es, right))
    assert {each.name: each.n for each in report.cohorts("job")} == {"cook": 6, "clerk": 5}
    assert report.dependence("job", es[0].classes[0]) is None
    with pytest.raises(SettingError, match="Unknown column 'pay'"):
        report.cohorts("pay")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["high"] * 3, "`answers` .* input 3, got 3"),
        (["tall"] * 60, "must be one of low, high, got 'tall'"),
    ],
)
def test_answers_that_do_not_fit(classes, given, message):
    with pytest.raises(InputError, match=message):
        right_answers(classes, given)
    with pytest.raises(InputError, match="None of the inputs"):
        ModelReport(classes, [None] * len(classes))


def test_answers_from_a_file(tmp_path):
    (tmp_path / "rows.csv").write_text("a,label\n1,low\n2,high\n")
    assert read_answers(f"{tmp_path / 'rows.csv'}:label") == ["low", "high"]
    with pytest.raises(SettingError, match="must be FILE:COLUMN"):
        read_answers("rows.csv")
    with pytest.raises(SettingError, match="`answers` requires `browse`"):
        pertinent.serve(answers=["low"])


def test_mistakes_come_first_and_can_be_chosen(classes):
    saved = ExplanationBrowser(pertinent.Explanations(list(classes)), "rows", answers({5, 17}))
    first = saved.select(Filter(sort=WORST[0]))
    assert {row.number for row in first[:2]} == {5, 17} and first[0].confidence >= first[1].confidence
    own = saved.select(Filter(predicted=first[0].predicted, right=first[0].right))
    assert {row.number for row in own} <= {5, 17}


def test_the_page(classes):
    saved = ExplanationBrowser(pertinent.Explanations(list(classes)), "rows", answers({5, 17, 40}))
    site = Site([], AdmissionQueue(1, 1), saved)
    assert [view.title for view in site.views] == ["Explain", "Browse", "Model"]
    with serving(site.app(TOKEN)) as address:
        with httpx.Client(base_url=address, cookies={COOKIE: TOKEN}) as client:
            assert client.get("/model", params={"column": "<b>"}).status_code == 422
            assert client.get("/model", params={"target": "tall"}).status_code == 422
        with chromium() as browser, new_page(browser, viewport={"width": 320, "height": 800}) as page:
            page.goto(f"{address}/model?token={TOKEN}")
            assert "Accuracy 95.0%" in page.inner_text(".lead")
            assert page.locator("svg circle").count() == 60
            assert page.evaluate("document.documentElement.scrollWidth") == 320
            page.select_option("[name=column]", "c")
            page.click("button >> text=Show")
            page.wait_for_selector("figcaption:has-text('The score of c')")
            page.click("text=wrong predictions first")
            page.wait_for_selector(".listing")
            assert page.locator(".listing strong").count() == 3
            page.click(".listing a >> nth=0")
            page.wait_for_selector("article")


def test_the_page_of_one_input_says_what_is_right():
    table = pertinent.load("table")
    es = pertinent.explain(table, table.background.values[:3], "leave-one-out")
    answers = [e.target_name for e in es]
    answers[1] = next(name for name in table.classes if name != answers[1])
    saved = ExplanationBrowser(es, "wines", answers)
    pages = [
        from_template("pertinent.app:one.html", views=[], view=None, **saved.one_view(i)) for i in range(3)
    ]
    assert "Correct: the model predicts" in pages[0] and "Wrong: the model predicts" in pages[1]
    assert f"the true class is <strong>{answers[1]}</strong>" in pages[1]
