"""The page in a real browser: the main path of each view."""

from contextlib import nullcontext

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
        found.wait_for_selector(".go")
        yield found


def choose(page, model):
    with page.expect_response("**/api/form"):
        page.select_option("[name=model]", model)
    page.wait_for_selector(f"[name=model] option[selected]:text-is('{model}')", state="attached")


def test_a_wrong_prediction_is_understood_without_reading_docs(page):
    page.click("text=The best part was when it ended.")
    page.wait_for_selector(DONE)
    assert page.inner_text("[data-part=result] h3").startswith("positive 99")
    best = page.locator(".text .w", has_text="best")
    assert "against" not in best.get_attribute("class") and best.get_attribute("title").startswith("+0.4")
    assert page.locator(".bars button").first.inner_text() == "best"
    best.click()  # removed
    page.wait_for_selector("text=The prediction changes to negative.")
    assert "was 99.4%" in page.inner_text("[data-part=prediction]")
    page.click("text=Put back")
    page.wait_for_selector("text=The prediction changes to", state="detached")
    assert best.get_attribute("aria-pressed") == "false"


def test_what_if_another_text_stands_beside_it(page):
    page.fill("[name=text]", "The best part was when it ended.")
    page.click(".go")
    page.wait_for_selector(DONE)
    page.click("text=Compare with another version")
    page.locator(".go").nth(1).wait_for()
    page.locator("[name=text]").nth(1).fill("The worst part was when it ended.")
    page.locator("[name=method]").nth(1).select_option("lime")
    page.locator(".go").nth(1).click()
    page.wait_for_selector("text=positive: 99.4% in the other version, 0.2% in this one.")
    assert page.locator("[data-part=result] h3").all_inner_texts()[1].startswith("negative 99.8%")
    assert "according to lime" in page.locator("[data-part=result] header p").nth(1).inner_text()
    page.locator("[data-do=close]").nth(1).click()
    assert page.locator(".panel").count() == 1


def test_stop_and_leaving_end_the_work(page, counting, served):
    choose(page, "counting")
    service = served.models["counting"].service
    for leave in (lambda: page.click("text=Stop"), lambda: page.goto("about:blank")):
        counting.gate.clear()
        page.fill("[name=text]", "not good at all but bad food for you")
        page.click(".go")
        until(lambda: service._orders)
        leave()
        counting.gate.set()
        until(lambda: not service._orders and not served.queue.running)


def test_an_error_is_said_and_can_be_corrected(page):
    page.click(".go")
    page.wait_for_selector(DONE)
    page.fill("[name=text]", "  ")
    page.click(".go")
    page.wait_for_selector(".status.error:has-text('The text is empty')")
    assert page.inner_text("[data-part=result]") == ""
    page.fill("[name=text]", "A <b onclick=alert(1)>delight</b>.")
    page.click(".go")
    page.wait_for_selector(DONE)
    assert page.inner_text("[data-part=result] .text") == "A <b onclick=alert(1)>delight</b>."


def test_methods_that_the_model_cannot_answer_are_disabled(page):
    gradient = page.locator("[name=method] option[value=gradient]")
    page.select_option("[name=method]", "gradient")
    assert gradient.is_enabled()
    choose(page, "counting")
    assert gradient.is_disabled() and "needs gradients" in gradient.get_attribute("title")
    assert page.input_value("[name=method]") == "shapley"


def test_methods_that_the_removal_rules_out_are_disabled(page):
    search = page.locator("[name=method] option[value=gradient-search]")
    assert search.is_enabled()
    page.click("summary >> text=More settings")
    with page.expect_response("**/api/methods"):
        page.select_option("[name=removal]", "slice-out")
    page.locator("option[value=gradient-search][disabled]").wait_for(state="attached")
    assert "attention-mask" in search.get_attribute("title")


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
    assert page.evaluate("document.activeElement.textContent") == "first"


def test_the_form_is_kept_in_the_address(page, browser, address):
    page.fill("[name=text]", "A bad film, but “not” too bad & 100% fun.")
    page.select_option("[name=method]", "lime")
    page.fill("[name=budget]", "77")
    page.click(".go")
    page.wait_for_selector(DONE)
    page.reload()
    page.wait_for_selector(".go")
    for visited in (page, None):
        with new_page(browser) if visited is None else nullcontext(visited) as other:
            if visited is None:  # somebody with whom the address is shared
                other.goto(address)
                other.wait_for_selector(".go")
                other.goto(page.url)
                other.reload()
                other.wait_for_selector(".go")
            assert other.input_value("[name=text]") == "A bad film, but “not” too bad & 100% fun."
            assert other.input_value("[name=method]") == "lime" and other.input_value("[name=budget]") == "77"
    page.fill("[name=text]", "long " * 1000)
    page.locator("[name=text]").dispatch_event("change")
    assert page.url.endswith("#session")
    page.reload()
    page.wait_for_selector(".go")
    assert page.input_value("[name=text]") == "long " * 1000


def test_an_input_that_is_being_typed_survives_a_reload(page):
    page.locator("[name=text]").fill("")
    page.locator("[name=text]").press_sequentially("half a sent")
    page.wait_for_url("**half*")
    page.reload()
    page.wait_for_selector(".go")
    assert page.input_value("[name=text]") == "half a sent"


def test_an_image_survives_a_reload(page, tmp_path):
    from PIL import Image

    choose(page, "digits")
    Image.new("L", (8, 8), 200).save(tmp_path / "grey.png")
    with page.expect_response("**/api/methods"):
        page.set_input_files("input[type=file]", tmp_path / "grey.png")
    picture = page.input_value("[name=image]")
    page.reload()
    page.wait_for_selector(".go")
    assert page.input_value("[name=model]") == "digits" and page.input_value("[name=image]") == picture
    assert page.locator(".drop img").get_attribute("src") == picture


def test_a_remembered_model_that_is_no_longer_served_is_replaced(browser, address):
    page = browser.new_page()
    page.goto(address)
    page.wait_for_selector(".go")
    page.evaluate("location.hash = encodeURIComponent(JSON.stringify({model: 'gone'}))")
    page.reload()
    page.wait_for_selector(".go")
    assert page.input_value("[name=model]") == "sentiment"
    page.context.close()


def test_a_method_chosen_while_the_list_is_updated_stays_chosen(page):
    page.click("summary >> text=More settings")
    page.route("**/api/methods", lambda route: (page.wait_for_timeout(300), route.continue_()))
    with page.expect_response("**/api/methods"):
        page.select_option("[name=features]", "words")
        page.select_option("[name=method]", "lime")
    page.wait_for_timeout(100)
    assert page.input_value("[name=method]") == "lime"


def test_progress_is_shown_at_the_first_evaluations(page, counting):
    choose(page, "counting")
    counting.gate.clear()
    page.fill("[name=text]", "good " * 3000)
    page.click(".go")
    page.wait_for_selector(".answer-side progress:visible", timeout=1000)
    counting.gate.set()
    page.wait_for_selector(DONE)
    assert page.locator(".answer-side progress:visible").count() == 0


def test_a_difference_ends_with_the_result_that_it_is_about(page):
    page.click(".go")
    page.wait_for_selector(DONE)
    page.click("text=Compare with another version")
    page.locator(".go").nth(1).click()
    page.wait_for_selector("[data-part=difference]:has-text('the same prediction')")
    page.locator("[name=text]").first.fill("  ")
    page.locator(".go").first.click()
    page.wait_for_selector(".status.error")
    assert page.locator("[data-part=difference]").all_inner_texts() == ["", ""]


def test_a_method_is_disabled_once_the_text_is_too_long_for_it(page):
    exact = page.locator("[name=method] option[value=exact-shapley]")
    assert exact.is_disabled() and "at most 16 features" in exact.get_attribute("title")
    page.fill("[name=text]", "A delight.")
    with page.expect_response("**/api/methods"):
        page.locator("[name=text]").dispatch_event("change")
    exact.and_(page.locator(":enabled")).wait_for(state="attached")


def test_the_result_is_beside_the_form_in_a_wide_window(browser, address):
    with new_page(browser, viewport={"width": 1280, "height": 800}) as page:
        page.goto(address)
        page.click(".go")
        page.wait_for_selector(DONE)
        form, result = page.locator("form").bounding_box(), page.locator("[data-part=result]").bounding_box()
        assert result["x"] > form["x"] + form["width"] and abs(result["y"] - form["y"]) < 80
        assert result["x"] + result["width"] > 1200


def test_the_arcs_of_pairs_and_the_labels_of_axes_are_not_cut(browser, address):
    with new_page(browser, viewport={"width": 1280, "height": 800}) as page:
        page.goto(address)
        page.wait_for_selector(".go")
        page.select_option("[name=method]", "shapley-interactions")
        page.click(".go")
        page.wait_for_selector(DONE)
        scroll = page.locator(".scroll:has(.arcs)")
        assert scroll.evaluate("box => box.scrollWidth - box.clientWidth") == 0
        page.click("text=Curves")
        for picture in page.locator("[data-part=result] svg:has(.axis)").all():
            left = picture.bounding_box()["x"]
            labels = picture.locator(".axis text").all()
            assert labels and all(label.bounding_box()["x"] >= left for label in labels)


def test_a_row_is_edited(page):
    choose(page, "table")
    page.fill("[name=alcohol]", "12.1")
    page.click(".go")
    page.wait_for_selector(DONE)
    row = {**page_row(page), "alcohol": 12.1}
    e = pertinent.explain(pertinent.load("table"), row, budget=500)
    assert page.inner_text("[data-part=result] h3").startswith(e.target_name)
    assert page.locator(".bars button").count() == 13
    page.fill("[name=alcohol]", "")
    page.click(".go")
    page.wait_for_selector(".status.error:has-text('NaN')")


def page_row(page):
    boxes = page.locator("fieldset[name=row] input")
    return {box.get_attribute("name"): float(box.input_value()) for box in boxes.all()}


def test_an_image_is_dropped_and_a_patch_removed(page, tmp_path):
    from PIL import Image

    choose(page, "digits")
    picture = tmp_path / "digit.png"
    from pertinent.models.embedded.digits import example_digit

    Image.fromarray((255 * example_digit().squeeze()).astype("uint8")).save(picture)
    page.set_input_files("input[type=file]", picture)
    page.click(".go")
    page.wait_for_selector(DONE)
    assert page.locator(".overlay .over").get_attribute("src").startswith("data:image/png")
    page.click(".overlay", position={"x": 5, "y": 5})
    page.wait_for_selector("text=Without “patch at row 0, column 0”")
    assert "gone" in page.locator(".areas path").first.get_attribute("class")
    page.fill("figure input[type=range]", "30")
    assert page.locator(".overlay .over").evaluate("image => image.style.opacity") == "0.3"


def test_an_answer_is_explained_and_a_click_on_a_token_moves_the_colours(page):
    choose(page, "writer")
    page.fill("[name=text]", "Who keeps the map? Answer:")
    page.click("summary >> text=Sources")
    page.fill("[name=sources]", "Ann keeps the key.\n\nBob keeps the map.")
    page.fill("[name=answer]", " Bob the key")
    page.click(".go")
    page.wait_for_selector(DONE)
    assert page.inner_text("[data-part=result] h3").startswith("“Bob the key” ")
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
    with page.expect_response("**/api/results/**"):
        token.click()
    page.wait_for_selector(".answer .token:nth-of-type(4)[aria-pressed=true]")
    assert float(shown().split()[0]) == pytest.approx(e.class_scores[3, 0], abs=0.01)
    assert token.get_attribute("aria-pressed") == "true"
    page.locator(".text .w").nth(1).click()
    page.wait_for_selector("text=Without “Bob keeps the map.”")
    assert "was " in page.inner_text("[data-part=prediction]")


def test_a_long_text_is_folded_to_where_the_scores_are(page):
    choose(page, "counting")
    page.fill(
        "[name=text]", " ".join([f"x{i}" for i in range(150)] + ["bad"] + [f"x{i}" for i in range(150)])
    )
    page.select_option("[name=method]", "leave-one-out")
    page.click(".go")
    page.wait_for_selector(DONE)
    folds = page.locator("[data-part=result] .fold summary")
    assert folds.all_inner_texts() == ["… 144 features …", "… 144 features …"]
    assert page.locator(".text .w:visible").count() == 13
    folds.first.click()
    assert page.locator(".text .w:visible").count() == 157


def test_two_texts_that_are_read_together(page):
    page.click("text=Add a second text")
    page.fill("[name=text]", "Was it good?")
    page.fill("[name=second]", "A delight.")
    page.select_option("[name=fixed]", "first")
    page.click(".go")
    page.wait_for_selector(DONE)
    assert page.locator("[data-part=result] .text").all_inner_texts() == ["Was it good?", "A delight."]
    assert page.locator(".text .w").all_inner_texts() == ["A", "delight", "."]


def test_a_click_on_a_class_shows_what_speaks_for_it(page):
    page.click(".go")
    page.wait_for_selector(DONE)
    superb = page.locator(".text .w", has_text="superb")
    assert "against" not in superb.get_attribute("class")
    page.click(".predictions button >> text=negative")
    page.wait_for_selector("header:has-text('What supports negative')")
    assert "against" in superb.get_attribute("class")
    assert page.evaluate("document.activeElement.textContent") == "negative"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_narrow_window(browser, address, scheme):
    with new_page(browser, viewport={"width": 320, "height": 700}, color_scheme=scheme) as page:
        page.goto(address)
        page.wait_for_selector(".go")
        for model in ("table", "digits", "writer", "sentiment"):
            choose(page, model)
            if model == "writer":
                page.fill("[name=text]", "Ann keeps the key. Bob keeps the map. Who keeps the map?")
            page.click(".go")
            page.wait_for_selector(DONE)
            assert page.evaluate("document.documentElement.scrollWidth") == 320
            wide = "all => all.filter(e => e.getBoundingClientRect().right > 321).map(e => e.outerHTML)"
            assert page.locator(".panel *:not(.scroll *):visible").evaluate_all(wide) == []


def test_numbers_and_names_are_not_cut_on_a_phone(browser, address):
    with new_page(browser, viewport={"width": 390, "height": 800}) as page:
        page.goto(address)
        page.wait_for_selector(".go")
        page.select_option("[name=method]", "shapley-interactions")
        page.click(".go")
        page.wait_for_selector(DONE)
        cut = "all => all.filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.textContent)"
        assert page.locator(".scroll:has(table.rows), .bars th").evaluate_all(cut) == []
