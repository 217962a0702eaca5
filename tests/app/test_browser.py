"""The page in a real browser: the main path of each view."""

import pytest

import pertinent
from tests.app.browser import chromium, new_page
from tests.app.served import TOKEN, Counting, language_model, serving, site, until

DONE = ".status:has-text('Done:')"


@pytest.fixture(scope="module")
def browser():
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def counting():
    return Counting()


@pytest.fixture(scope="module")
def served(counting):
    models = {name: pertinent.load(name) for name in ("sentiment", "digits", "table")}
    models["counting"] = pertinent.wrap(counting, kind="text", classes=["bad", "good"])
    models["writer"] = language_model()
    return site(models)


@pytest.fixture(scope="module")
def address(served):
    with serving(served.app(TOKEN)) as found:
        yield f"{found}/?token={TOKEN}"


@pytest.fixture
def page(browser, address):
    with new_page(browser, viewport={"width": 1200, "height": 900}) as found:
        found.goto(address)
        found.wait_for_selector(".go:not([disabled])")
        yield found


def choose(page, model, example):
    page.select_option("[name=model]", model)
    page.wait_for_selector(example, state="attached")
    page.wait_for_selector(".go:not([disabled])")


def test_a_wrong_prediction_is_understood_without_reading_docs(page):
    page.click("text=The best part was when it ended.")
    page.wait_for_selector(DONE)
    assert page.inner_text("[data-part=heading]").startswith("positive 99")
    best = page.locator(".text .w", has_text="best")
    assert "against" not in best.get_attribute("class") and best.get_attribute("title").startswith("+0.4")
    assert page.locator(".bars button").first.inner_text() == "best"
    best.click()  # removed
    page.wait_for_selector("text=The prediction becomes negative.")
    assert "99.4% → " in page.inner_text("[data-part=prediction]")
    page.click("text=Put back")
    page.wait_for_selector("text=The prediction becomes", state="detached")
    assert "→" not in page.inner_text("[data-part=prediction]")


def test_what_if_another_text_stands_beside_it(page):
    page.fill("[name=text]", "The best part was when it ended.")
    page.click(".go")
    page.wait_for_selector(DONE)
    page.click("text=Compare with another version")
    page.locator(".go:not([disabled])").nth(1).wait_for()
    page.locator("[name=text]").nth(1).fill("The worst part was when it ended.")
    page.locator("[name=method]").nth(1).select_option("lime")
    page.locator(".go").nth(1).click()
    page.wait_for_selector("text=Beside it positive has 99.4%, here 0.2%.")
    assert page.locator("[data-part=heading]").all_inner_texts()[1].startswith("negative 99.8%")
    assert "according to lime" in page.locator("[data-part=subheading]").nth(1).inner_text()
    page.locator("[data-do=close]").nth(1).click()
    assert page.locator(".panel").count() == 1


def test_stop_and_leaving_end_the_work(page, counting, served):
    choose(page, "counting", "[name=target] option[value=good]")
    service = served.hosted["counting"].service
    for leave in (lambda: page.click("text=Stop"), lambda: page.goto("about:blank")):
        counting.gate.clear()
        page.fill("[name=text]", "not good at all but bad food for you")
        page.click(".go")
        until(lambda: service._orders)
        leave()
        counting.gate.set()
        until(lambda: not service._orders and not served.desk._served)


def test_an_error_is_said_and_can_be_corrected(page):
    page.fill("[name=text]", "  ")
    page.click(".go")
    page.wait_for_selector(".status.error:has-text('The text is empty')")
    page.fill("[name=text]", "A <b onclick=alert(1)>delight</b>.")
    page.click(".go")
    page.wait_for_selector(DONE)
    assert page.inner_text(".text") == "A <b onclick=alert(1)>delight</b>."


def test_methods_that_the_model_cannot_answer_are_disabled(page):
    gradient = page.locator("[name=method] option[value=gradient]")
    page.select_option("[name=method]", "gradient")
    assert gradient.is_enabled()
    choose(page, "counting", "[name=target] option[value=good]")
    assert gradient.is_disabled() and "needs gradients" in gradient.get_attribute("title")
    assert page.input_value("[name=method]") == "shapley"


def test_by_keyboard_alone(page):
    page.keyboard.press("Tab")
    page.locator("[name=text]").focus()
    page.keyboard.press("Control+Enter")
    page.wait_for_selector(DONE)
    page.locator(".text .w").first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Space")
    page.wait_for_selector("text=Without “first”")
    assert page.locator(".text .w").nth(1).get_attribute("aria-pressed") == "true"


def test_a_row_is_edited(page):
    choose(page, "table", "[data-column=alcohol]")
    page.fill("[data-column=alcohol]", "12.1")
    page.click(".go")
    page.wait_for_selector(DONE)
    row = {**page_row(page), "alcohol": 12.1}
    e = pertinent.explain(pertinent.load("table"), row, budget=500)
    assert page.inner_text("[data-part=heading]").startswith(e.target_name)
    assert page.locator(".bars button").count() == 13
    page.fill("[data-column=alcohol]", "much")
    page.click(".go")
    page.wait_for_selector("text=alcohol must be a number, but is “much”.")


def page_row(page):
    boxes = page.locator("[data-column]")
    return {box.get_attribute("data-column"): float(box.input_value()) for box in boxes.all()}


def test_an_image_is_dropped_and_a_patch_removed(page, tmp_path):
    from PIL import Image

    choose(page, "digits", ".drop img")
    picture = tmp_path / "digit.png"
    from pertinent.models.embedded.digits import example_digit

    Image.fromarray((255 * example_digit().squeeze()).astype("uint8")).save(picture)
    page.set_input_files("input[type=file]", picture)
    page.click(".go")
    page.wait_for_selector(DONE)
    assert page.locator(".overlay .heat").get_attribute("src").startswith("data:image/png")
    page.click(".overlay", position={"x": 5, "y": 5})
    page.wait_for_selector("text=Without “patch at row 0, column 0”")
    page.fill(".slider input", "30")
    assert page.locator(".overlay .heat").evaluate("image => image.style.opacity") == "0.3"


def test_an_answer_is_explained_and_a_click_on_a_token_moves_the_colours(page):
    choose(page, "writer", "[name=rather_than]")
    page.fill("[name=text]", "Who keeps the map? Answer:")
    page.click("summary >> text=Sources")
    page.fill("[name=sources]", "Ann keeps the key.\n\nBob keeps the map.")
    page.fill("[name=answer]", " Bob the key")
    page.click(".go")
    page.wait_for_selector(DONE)
    assert page.inner_text("[data-part=heading]").startswith("“Bob the key” ")
    assert page.locator(".text .w").all_inner_texts() == ["Ann keeps the key.", "Bob keeps the map."]
    assert "".join(page.locator(".answer .token").all_inner_texts()) == " Bob the key"
    e = pertinent.explain(
        language_model(),
        pertinent.Prompt(
            "Who keeps the map? Answer:",
            sources=["Ann keeps the key.", "Bob keeps the map."],
            answer=" Bob the key",
        ),
        budget=500,
    )
    shown = lambda: page.locator(".text .w").first.get_attribute("title")  # noqa: E731
    assert float(shown().split()[0]) == pytest.approx(e.scores[0], abs=0.01)
    token = page.locator(".answer .token").nth(2)
    token.click()
    assert float(shown().split()[0]) == pytest.approx(e.class_scores[3, 0], abs=0.01)
    assert token.get_attribute("aria-pressed") == "true"
    page.locator(".text .w").nth(1).click()
    page.wait_for_selector("text=Without “Bob keeps the map.”")
    assert " → " in page.inner_text("[data-part=prediction]")


def test_a_long_text_is_folded_to_where_the_scores_are(page):
    choose(page, "counting", "[name=target] option[value=good]")
    page.fill(
        "[name=text]", " ".join([f"x{i}" for i in range(150)] + ["bad"] + [f"x{i}" for i in range(150)])
    )
    page.select_option("[name=method]", "leave-one-out")
    page.click(".go")
    page.wait_for_selector(DONE)
    assert page.locator(".unfold").all_inner_texts() == ["… 144 more …", "… 144 more …"]
    assert page.locator(".text .w:visible").count() == 13
    page.locator(".unfold").first.click()
    assert page.locator(".text .w:visible").count() == 157


def test_two_texts_that_are_read_together(page):
    page.click("[data-do=pair]")
    page.fill("[name=text]", "Was it good?")
    page.fill("[name=second]", "A delight.")
    page.select_option("[name=fixed]", "first")
    page.click(".go")
    page.wait_for_selector(DONE)
    assert page.locator("[data-part=drawn] .text").all_inner_texts() == ["Was it good?", "A delight."]
    assert page.locator(".text .w").all_inner_texts() == ["A", "delight", "."]


def test_a_click_on_a_class_shows_what_speaks_for_it(page):
    page.click(".go")
    page.wait_for_selector(DONE)
    superb = page.locator(".text .w", has_text="superb")
    assert "against" not in superb.get_attribute("class")
    page.click(".predictions button >> text=negative")
    assert "against" in superb.get_attribute("class")
    assert "What speaks for negative" in page.inner_text("[data-part=subheading]")
    assert page.evaluate("document.activeElement.textContent") == "negative"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_narrow_window(browser, address, scheme):
    with new_page(browser, viewport={"width": 320, "height": 700}, color_scheme=scheme) as page:
        page.goto(address)
        for model, example in (
            ("sentiment", "[name=text]"),
            ("table", "[data-column=hue]"),
            ("digits", ".drop"),
            ("writer", "[name=rather_than]"),
        ):
            choose(page, model, example)
            if model == "writer":
                page.fill("[name=text]", "Ann keeps the key. Bob keeps the map. Who keeps the map?")
            page.click(".go")
            page.wait_for_selector(DONE)
            assert page.evaluate("document.documentElement.scrollWidth") == 320
            wide = "all => all.filter(e => e.getBoundingClientRect().right > 321).map(e => e.outerHTML)"
            assert page.locator(".panel *:visible").evaluate_all(wide) == []
