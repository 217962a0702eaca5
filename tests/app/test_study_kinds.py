"""Studies of images and of table rows: what is shown, what is marked, and what is measured of it."""

import numpy as np
import pytest

import pertinent
from pertinent.app.study_site import StudySite, question_view
from pertinent.study.answers import Answers
from pertinent.study.design import StudyQuestion
from tests.app.browser import chromium, new_page
from tests.app.served import TOKEN, serving
from tests.study.people import take_part

METHODS = ["leave-one-out", "random"]


def one_bright_patch(images):
    """The class is the half of the image that is brighter."""
    images = np.asarray(images)
    left, right = images[..., :8].sum(axis=(1, 2, 3)), images[..., 8:].sum(axis=(1, 2, 3))
    p = 1 / (1 + np.exp(left - right))
    return np.stack([1 - p, p], axis=1)


@pytest.fixture(scope="module")
def images():
    """Explanations of black images with one bright patch each."""
    pictures = np.zeros((8, 1, 16, 16))
    for i in range(8):
        pictures[i, 0, 4 * (i % 4) : 4 * (i % 4) + 4, 4 * (i // 2) : 4 * (i // 2) + 4] = 1.0
    model = pertinent.wrap(one_bright_patch, kind="image", classes=["left", "right"])
    found = pertinent.compare(model, pictures, METHODS, features="patches:4", removal="constant")
    return pertinent.Explanations(found.explanations)


@pytest.fixture(scope="module")
def rows():
    model = pertinent.load("table")
    found = pertinent.compare(model, model.background.values[::6][:12], METHODS)
    return pertinent.Explanations(found.explanations)


def honest(study, question, rng):
    """Somebody who marks the patch that is bright, and knows the class if it is highlighted."""
    (bright,) = [i for i, score in enumerate(study.explanations[question.input][0].scores) if score > 0.01]
    shows = [bright in study.highlighted(question.input, method) for method in question.methods]
    if question.kind == "guess":
        return study.explanations[question.input][0].target_name if shows[0] else None
    if question.kind == "prefer":
        return None if shows[0] == shows[1] else question.methods[shows.index(True)]
    return [bright] if question.kind == "mark" else 5 if shows[0] else 1


def test_the_measures_of_an_image_study_are_known(images, tmp_path):
    study = pertinent.create_study(images, tmp_path / "study", top=1, checks=1)
    assert study.nouns == ("image", "part")
    take_part(study, 8, honest)
    report = pertinent.report_study(study.folder)
    assert report.mean("leave-one-out", "accuracy") == report.mean("leave-one-out", "precision at k") == 1
    assert report.mean("leave-one-out", "rating") == 5 > report.mean("random", "rating")
    assert report.mean("leave-one-out", "average precision") == 1


def test_what_an_image_shows(images, tmp_path):
    study = pertinent.create_study(images, tmp_path / "study", top=2)
    marks = question_view(study, StudyQuestion("mark", 0))["markable"]
    assert marks.count("<label") == 16 and "left:25.00%;top:0.00%;width:25.00%;height:25.00%" in marks
    alone = question_view(study, StudyQuestion("guess", 0, (0,)))["shown"][0]
    beside = question_view(study, StudyQuestion("rate", 0, (0,)))["shown"][0]
    assert alone.count("<img") == beside.count("<img") == 1 and alone != beside


def test_a_part_of_any_shape_is_pressed_inside(tmp_path):
    labels = np.zeros((20, 20), dtype=int)
    labels[5:, 3:] = 1  # an L around it
    model = pertinent.wrap(lambda images: [[0.3, 0.7]] * len(images), kind="image")
    e = pertinent.explain(model, np.zeros((1, 20, 20)), "random", features=labels)
    study = pertinent.create_study(pertinent.Explanations([e]), tmp_path / "study", kinds=["mark"], top=1)
    marks = question_view(study, StudyQuestion("mark", 0))["markable"]
    left, top, width, height = (
        float(part.split(":")[1].rstrip("%")) / 5
        for part in marks.split('style="')[1].split('"')[0].split(";")
    )
    assert labels[int(top + height / 2), int(left + width / 2)] == 0  # in the L, not in its box


def test_a_row_shows_columns(rows, tmp_path):
    study = pertinent.create_study(rows, tmp_path / "study", top=3)
    alone = question_view(study, StudyQuestion("guess", 2, (0,)))["shown"][0]
    assert alone.count("<tr>") == 3 and "10 other columns are not shown." in alone
    names = [study.explanations[2][0].features[i] for i in study.highlighted(2, 0)]
    assert all(f"<mark>{name}</mark>" in alone for name in names)
    assert question_view(study, StudyQuestion("mark", 2))["markable"].count('type="checkbox"') == 13


@pytest.mark.parametrize("kind", ["images", "rows"])
def test_a_person_answers_everything_in_a_browser(kind, request, tmp_path):
    study = pertinent.create_study(request.getfixturevalue(kind), tmp_path / "study", top=2, checks=0)
    thing = {"images": "part", "rows": "column"}[kind]
    size = {"width": 320, "height": 700}
    with (
        serving(StudySite(study).app(TOKEN)) as address,
        chromium() as browser,
        new_page(browser, viewport=size, color_scheme="dark") as page,
    ):
        page.goto(f"{address}/?token={TOKEN}")
        page.fill("[name=name]", "Ada")
        page.click("text=Begin")
        said = ""
        for i in range(study.description.inputs):
            page.wait_for_selector(f"text=Question {i + 1} of")
            page.wait_for_load_state()
            said += page.inner_text("main")
            assert page.evaluate("document.documentElement.scrollWidth") == 320
            if page.locator(f"text=No {thing} matters").count():
                page.locator("label:not(.choice):has([name=answer])").nth(4).click()
            else:
                page.locator("[name=answer]").first.check()
            page.click("text=Next")
        page.wait_for_selector("text=Thank you, Ada!")
    assert f"The {thing}s do not show it" in said and "{{" not in said
    person = Answers(study).person("Ada")
    marked = [a for q, a in zip(person.questions, person.answers, strict=True) if q.kind == "mark"]
    assert marked == [[4]] * len(marked) and marked
