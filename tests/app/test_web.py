"""The page's answers: explanations as they are refined, predictions, errors, and who is let in."""

import asyncio
import base64
import io
import json
from contextlib import suppress

import httpx
import numpy as np
import pytest

import pertinent
from pertinent.app.admission_queue import AdmissionQueue, QueueFull
from pertinent.app.token_auth import COOKIE
from tests.app.hostile import png_head
from tests.app.served import TOKEN, Counting, language_model, serving, site, until

TEXT = "not good at all but bad food"


@pytest.fixture(scope="module")
def writer():
    return language_model()


@pytest.fixture(scope="module")
def page(writer):
    models = {name: pertinent.load(name) for name in ("sentiment", "digits", "table")}
    models["texts"] = pertinent.wrap(Counting(), kind="text", classes=["bad", "good"])
    with serving(site({**models, "writer": writer}).app(TOKEN)) as address:
        yield address


@pytest.fixture
def client(page):
    with httpx.Client(base_url=page, cookies={COOKIE: TOKEN}, timeout=30) as found:
        yield found


def events(response):
    found = []
    for each in response.text.strip().split("\n\n"):
        name, data = each.split("\n", 1)
        found.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return found


def test_an_explanation_comes_while_it_is_refined_and_is_that_of_python(client):
    found = events(client.post("/api/explain", json={"model": "texts", "text": TEXT, "budget": 60}))
    names = [name for name, _ in found]
    assert names[:2] == ["input", "prediction"]
    assert names[-1] == "done" and set(names[2:-1]) == {"partial"}
    model = pertinent.wrap(Counting(), kind="text", classes=["bad", "good"])
    e = pertinent.compare(model, TEXT, "shapley", budget=60).explanations[0]
    done = found[-1][1]
    np.testing.assert_allclose(done["scores"], e.scores, atol=1e-12)
    np.testing.assert_allclose(found[1][1]["values"], e.prediction.values)
    assert done["target_name"] == e.target_name == "bad"
    assert [name for name, _, _ in done["measures"]] == ["sufficiency", "comprehensiveness"]
    assert "".join(piece[0] for piece in found[0][1]["pieces"]) == TEXT
    partial = next(data for name, data in found if name == "partial")
    assert len(partial["errors"]) == len(e.scores)


def test_a_search_publishes_sets_and_another_class_can_be_explained(client):
    asked = {
        "model": "texts",
        "text": TEXT,
        "method": "parallel-local-search",
        "target": "good",
        "budget": 40,
    }
    done = events(client.post("/api/explain", json=asked))[-1][1]
    assert done["target_name"] == "good" and done["sets"][0][0].startswith("5%")


def test_a_prediction_without_words(client):
    asked = {"model": "texts", "text": "good film", "without": [0]}
    whole = client.post("/api/predict", json={**asked, "without": []}).json()
    without = client.post("/api/predict", json=asked).json()
    assert whole["predicted"] == 1 and whole["values"][1] > 0.85
    np.testing.assert_allclose(without["values"][1], 1 / (1 + np.exp(-0.1)))
    assert without["amounts"][1] == "52.5%"


def test_a_row_and_an_image(client):
    choices = client.get("/api/choices", params={"model": "table"}).json()
    row = choices["examples"][0]["row"]
    done = events(client.post("/api/explain", json={"model": "table", "row": row, "budget": 60}))[-1][1]
    e = pertinent.explain(pertinent.load("table"), row, budget=60)
    np.testing.assert_allclose(done["scores"], e.scores, atol=1e-9)
    (example,) = client.get("/api/choices", params={"model": "digits"}).json()["examples"]
    image = example["image"]
    found = events(client.post("/api/explain", json={"model": "digits", "image": image, "budget": 70}))
    assert np.array(found[0][1]["grid"]).shape == (8, 8)
    assert found[-1][1]["heat"].startswith("data:image/png;base64,")


PROMPT = {
    "model": "writer",
    "text": "Who keeps the map?",
    "sources": ["Ann keeps the key.", "Bob keeps the map."],
}


def test_an_answer_of_a_language_model_has_scores_for_every_token(client):
    found = dict(events(client.post("/api/explain", json={**PROMPT, "budget": 50})))
    prompt = pertinent.Prompt(PROMPT["text"], sources=PROMPT["sources"])
    e = pertinent.explain(language_model(), prompt, budget=50)
    assert found["input"]["answer"]["text"] == e.details["answer"]
    assert found["input"]["features"] == list(e.features)
    assert found["prediction"]["classes"] == list(e.classes)
    for column, scores in enumerate(e.class_scores):
        np.testing.assert_allclose(found["done"]["columns"][str(column)]["scores"], scores, atol=1e-4)
    given = dict(
        events(client.post("/api/explain", json={**PROMPT, "answer": " Bob", "rather_than": " Ann"}))
    )
    assert given["done"]["target_name"] == "contrast" and not given["input"]["answer"]["generation"]


def test_a_model_writes_its_answer_once_for_a_prompt(client, writer, monkeypatch):
    written = []
    own = writer.head._answered
    monkeypatch.setattr(writer.head, "_answered", lambda *given: written.append(given) or own(*given))
    asked = {**PROMPT, "text": "Who keeps the key?"}
    whole = client.post("/api/predict", json=asked).json()
    without = client.post("/api/predict", json={**asked, "without": [0]}).json()
    assert len(written) == 1 and whole["classes"] == without["classes"]
    assert whole["values"] != without["values"]


def test_a_chat_and_a_pair(client):
    asked = {"model": "writer", "text": "Who keeps the map?", "chat": True, "answer": "Bob"}
    found = dict(events(client.post("/api/explain", json=asked)))
    assert [piece[0] for piece in found["input"]["pieces"] if not piece[3]] == ["<user>", "<model>"]
    pair = {
        "model": "sentiment",
        "text": "Is it good?",
        "second": "A delight.",
        "fixed": "first",
        "budget": 30,
    }
    found = dict(events(client.post("/api/explain", json=pair)))
    e = pertinent.explain(
        pertinent.load("sentiment"), {"query": "Is it good?", "document": "A delight."}, budget=30
    )
    np.testing.assert_allclose(found["done"]["scores"], e.scores, atol=1e-6)


def test_what_can_be_chosen(client):
    found = client.get("/api/choices", params={"model": "texts"}).json()
    assert found["methods"][0][0] == "shapley" and found["classes"] == ["bad", "good"]
    refusals = {name: refusal for name, _, refusal in found["methods"]}
    assert refusals["lime"] == refusals["parallel-local-search"] == ""
    assert "needs gradients" in refusals["integrated-gradients"]
    assert "needs the trees" in refusals["tree-shap"]
    assert found["features"] == ["words", "sentences", "passages"]
    assert "attention-mask" in client.get("/api/choices", params={"model": "texts"}).json()["removals"]


def test_the_page_and_its_files_load_nothing_from_elsewhere(client):
    page = client.get("/")
    assert '<script type="module" src="/static/explain.js">' in page.text
    assert "//" not in page.text.replace("http://127.0.0.1", "")
    for name in ("explain.js", "inputs.js", "drawings.js", "page.js", "app.css", "report.css"):
        assert client.get(f"/static/{name}").status_code == 200
    assert client.get("/static/..%2fserve.py").status_code == 404
    assert client.get("/docs").status_code == client.get("/openapi.json").status_code == 404


# -- bad input ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"text": None}, "reads text: send that"),
        ({"text": " "}, "The text is empty"),
        ({"text": "a" * 20_001}, "20,001 characters, but this page explains at most 20,000"),
        ({"budget": 10_001}, "`budget` must be at most 10,000 on this page, but got 10001"),
        ({"method": "exact-shapley", "budget": None, "text": "a b c d e f g h i j k l m n"}, "at most 10"),
        ({"method": "lime:samples=5"}, "Unknown method 'lime:samples=5'"),
        ({"method": "/etc"}, "Unknown method"),
        ({"removal": "background:rows=5"}, "Unknown removal"),
        ({"features": "patches"}, "Unknown feature"),
        ({"target": "ugly"}, "ugly"),
    ],
)  # fmt: skip
def test_what_cannot_be_explained_is_said(client, changes, message):
    asked = {"model": "texts", "text": TEXT, "budget": 60, **changes}
    name, data = events(client.post("/api/explain", json=asked))[-1]
    assert name == "failed" and message in data["reason"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"{", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "`ExplainForm` must be an object with named fields"),
        (b'{"model": "texts", "row": {"\\ud800": []}}', "lone surrogate"),
        (b'{"model": "texts", "budget": "x"}', "`budget` must be a whole number"),
        (b'{"model": "texts", "without": [-1]}', "at least 0"),
        (b'{"model": "other"}', "Unknown model 'other'"),
    ],
)
def test_malformed_questions(client, body, message):
    for path in ("/api/explain", "/api/predict"):
        answer = client.post(path, content=body)
        assert (answer.status_code, message in answer.text) == (422, True), answer.text


def png(width, height):
    from PIL import Image

    data = io.BytesIO()
    Image.new("1", (width, height)).save(data, "PNG")
    return "data:image/png;base64," + base64.b64encode(data.getvalue()).decode()


def bomb(width, height):
    """The head of a PNG file of many pixels, without the pixels."""
    return "data:image/png;base64," + base64.b64encode(png_head(width, height)).decode()


@pytest.mark.parametrize(
    ("image", "message"),
    [
        ("/etc/passwd", "cannot be read"),
        ("data:image/png;base64,AAAA", "cannot be read"),
        ("data:image/svg+xml;base64," + base64.b64encode(b"<svg/>").decode(), "cannot be read"),
        (png(3000, 3000), "9,000,000|3,000 × 3,000 pixels"),
        (bomb(11_000, 10_000), "more than 4,194,304 pixels|11,000"),  # PIL warns
        (bomb(40_000, 40_000), "more than 4,194,304 pixels"),  # PIL refuses
        (png(300, 300)[:-200] + "AAAA", "cannot be read"),
    ],
)
def test_images_that_are_not_read(client, image, message):
    answer = client.post("/api/predict", json={"model": "digits", "image": image})
    assert answer.status_code == 422 and any(each in answer.text for each in message.split("|")), answer.text


def test_a_text_is_never_the_name_of_a_file(client, tmp_path):
    path = tmp_path / "secret.png"
    path.write_bytes(base64.b64decode(png(8, 8).partition(",")[2]))
    found = events(client.post("/api/explain", json={"model": "texts", "text": str(path), "budget": 60}))
    assert found[0][1]["kind"] == "text"
    assert client.post("/api/predict", json={"model": "digits", "text": str(path)}).status_code == 422


def test_markup_stays_text(client):
    text = "<img src=x onerror=alert(1)> good"
    found = events(client.post("/api/explain", json={"model": "texts", "text": text, "budget": 60}))
    assert "".join(piece[0] for piece in found[0][1]["pieces"]) == text  # the page sets it as textContent


# -- who is let in -----------------------------------------------------------------------------


def test_the_token_is_needed_once_and_then_a_cookie(page):
    with httpx.Client(base_url=page) as client:
        assert client.get("/").status_code == 403
        assert client.get("/", params={"token": "guessed"}).status_code == 403
        assert client.get("/static/app.css").status_code == client.post("/api/explain").status_code == 403
        first = client.get("/", params={"token": TOKEN, "q": "kept"})
        assert (first.status_code, first.headers["location"]) == (303, "/?q=kept")
        cookie = first.headers["set-cookie"].lower()
        assert "httponly" in cookie and "samesite=lax" in cookie
        assert client.get("/").status_code == 200
        away = client.get(f"{page}//elsewhere.example", params={"token": TOKEN})
        assert away.headers["location"] == "/elsewhere.example"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"host": "localhost:1234"}, 200),
        ({"host": "[::1]"}, 200),
        ({"host": "evil.example"}, 403),
        ({"host": "127.0.0.1.evil.example"}, 403),
        ({"host": "127.0.0.1:8901@evil.example"}, 403),
        ({"host": "[::1]:8901@evil.example"}, 403),
        ({"host": "localhost:"}, 403),
        ({"host": "localhost:80:80"}, 403),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"host": "localhost:1234", "origin": "http://localhost:1234"}, 200),
        ({"host": "localhost:1234", "origin": "http://localhost:4321"}, 403),
    ],
)
def test_other_names_and_other_pages_are_refused(client, headers, status):
    assert client.get("/", headers=headers).status_code == status
    answer = client.post("/api/predict", json={"model": "texts", "text": "good"}, headers=headers)
    assert answer.status_code == status


def test_a_browser_may_do_little_with_it(client):
    for path in ("/", "/static/explain.js", "/nothing"):
        headers = client.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
        assert "script-src 'self';" in policy
        assert headers["x-content-type-options"] == "nosniff" and headers["cache-control"] == "no-store"


def test_large_bodies_are_refused(client):
    answer = client.post("/api/predict", content=b" " * (2**23 + 1))
    assert answer.status_code == 413

    def endless():
        while True:
            yield b" " * 2**20

    with suppress(httpx.TransportError):  # the server may have closed the connection
        assert client.post("/api/predict", content=endless()).status_code == 413


# -- many at once ------------------------------------------------------------------------------


def test_who_goes_away_cancels_the_work():
    model = Counting()
    served = site(pertinent.wrap(model, kind="text"), at_once=1)
    with (
        serving(served.app(TOKEN)) as address,
        httpx.Client(base_url=address, cookies={COOKIE: TOKEN}) as client,
    ):
        client.get("/api/choices", params={"model": "model"})
        service = served.hosted["model"].service
        model.gate.clear()
        asked = {
            "model": "model",
            "text": " ".join("abcdefghijklmn"),
            "method": "shapley-sampling",
            "budget": 5000,
        }
        with client.stream("POST", "/api/explain", json=asked) as response:
            lines = response.iter_lines()  # kept: where it is forgotten, the connection is closed
            assert next(lines) == "event: input"
            until(lambda: service._orders)
        until(lambda: not served.desk._served)  # the server has noticed
        model.gate.set()
        until(lambda: not service._orders)
        assert model.rows < 500
        assert (
            events(client.post("/api/explain", json={**asked, "text": "good", "budget": 5}))[-1][0] == "done"
        )


def test_others_wait_in_line_and_the_line_has_an_end():
    model = Counting()
    served = site(pertinent.wrap(model, kind="text"), at_once=1, most_waiting=2)

    async def ask(client, text):
        found = await client.post(
            "/api/explain", json={"model": "model", "text": text, "method": "leave-one-out"}
        )
        return found.status_code, found

    async def several(address):
        async with httpx.AsyncClient(base_url=address, cookies={COOKIE: TOKEN}, timeout=30) as client:
            await client.get("/api/choices", params={"model": "model"})
            model.gate.clear()
            asked = [asyncio.create_task(ask(client, f"good number {i}")) for i in range(3)]
            await asyncio.to_thread(until, lambda: len(served.desk.line) == 2)
            refused = await client.post("/api/explain", json={"model": "model", "text": "good"})
            also = await client.post("/api/predict", json={"model": "model", "text": "good"})
            model.gate.set()
            return [refused, also], await asyncio.gather(*asked)

    with serving(served.app(TOKEN)) as address:
        refused, answered = asyncio.run(several(address))
    for each in refused:
        assert each.status_code == 429 and "try again" in each.text and each.headers["retry-after"] == "5"
    assert [status for status, _ in answered] == [200] * 3
    for i, (_, answer) in enumerate(answered):
        found = dict(events(answer))
        assert found["input"]["features"] == ["good", "number", str(i)]
    assert sum("queued" in dict(events(answer)) for _, answer in answered) == 2


def test_the_desk_serves_in_order_and_forgets_who_leaves():
    async def at_the_desk():
        desk = AdmissionQueue(2, 2)
        a, b, c, d = (desk.enter() for _ in range(4))
        with pytest.raises(QueueFull, match="2 explanations are under way and 2 are waiting"):
            desk.enter()
        assert a.called.is_set() and b.called.is_set() and not c.called.is_set()
        c.leave()  # while waiting
        assert await anext(d.positions()) == 1
        a.leave()
        a.leave()
        assert d.called.is_set() and [position async for position in d.positions()] == []
        b.leave(), d.leave()
        assert not desk.line and not desk._served

    asyncio.run(at_the_desk())
