"""The page's answers: explanations as they are refined, predictions, errors, and who is let in."""

import asyncio
import base64
import io
import json
import re
import time
from contextlib import suppress

import httpx
import numpy as np
import pytest

import pertinent
import pertinent.models.embedded.tables
from pertinent.app.admission_queue import AdmissionQueue, QueueFull
from pertinent.app.token_auth import COOKIE
from pertinent.app.views import View, views
from pertinent.models.tokens.generation import TransformerWriter
from tests.app.hostile import png_head
from tests.app.served import TOKEN, Counting, language_model, serving, site, until

TEXT = "not good at all but bad food"


@pytest.fixture(scope="module")
def writer():
    return language_model()


@pytest.fixture(scope="module")
def served(writer):
    models = {name: pertinent.load(name) for name in ("sentiment", "digits", "table")}
    models["texts"] = pertinent.wrap(Counting(), kind="text", classes=["bad", "good"])
    models["chat"] = pertinent.wrap(keeper, value="exact-match")
    return site({**models, "writer": writer})


def keeper(messages):
    """Answer a chat with the name before "has the map"."""
    return "Bob" if "Bob has the map" in messages[-1]["content"] else "nobody"


@pytest.fixture(scope="module")
def page(served):
    with serving(served.app(TOKEN)) as address:
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


def words_of(html):
    """The features of a text in HTML, by number."""
    found = re.findall(r'<span class="w[^"]*" title="([^"]*)"[^>]* data-features="(\d+)">([^<]*)', html)
    return {int(number): (word, title) for title, number, word in found}


def explained(client, served, **form):
    """The events of an explanation, and the explanation itself."""
    found = events(client.post("/api/explain", json=form))
    name, last = [(name, data) for name, data in found if name in ("result", "failed")][-1]
    assert name == "result" and last["done"], last
    return found, served.views[0].results.get(last["id"]).explanation


def test_an_explanation_comes_while_it_is_refined_and_is_that_of_python(client, served):
    found, done = explained(client, served, model="texts", input={"text": TEXT}, budget=60)
    results = [data for name, data in found if name == "result"]
    assert found[0] == ("status", {"text": "Reading the input …", "share": None})
    assert [data["done"] for data in results] == [False] * (len(results) - 1) + [True]
    assert found[-1][1]["text"].startswith("Done: 60 evaluations,")
    model = pertinent.wrap(Counting(), kind="text", classes=["bad", "good"])
    e = pertinent.compare(model, TEXT, "shapley", budget=60).explanations[0]
    np.testing.assert_allclose(done.scores, e.scores, atol=1e-12)
    np.testing.assert_allclose(done.prediction.values, e.prediction.values)
    assert done.target_name == e.target_name == "bad"
    assert list(done.measures) == ["sufficiency", "comprehensiveness"]
    words = words_of(results[-1]["html"])
    assert [word for word, _ in words.values()] == list(e.features)
    assert words[1][1].startswith(f"{e.scores[1]:+.3f} ± ")
    assert "Strongest features" not in results[0]["html"] and ">bad <span>" in results[0]["html"]


def test_progress_is_shown_before_the_first_partial_result():
    class Slow(Counting):
        def __call__(self, texts):
            time.sleep(0.02 * len(texts))
            return super().__call__(texts)

    served = site(pertinent.wrap(Slow(), kind="text", classes=["bad", "good"]))
    with (
        serving(served.app(TOKEN)) as address,
        httpx.Client(base_url=address, cookies={COOKIE: TOKEN}, timeout=30) as client,
    ):
        client.post("/api/form", json={"model": "model"})
        form = {"model": "model", "input": {"text": "a b c d e f g"}, "method": "kernel-shap", "budget": 150}
        start = time.perf_counter()
        with client.stream("POST", "/api/explain", json=form) as response:
            seen = [
                (time.perf_counter() - start, json.loads(line.removeprefix("data: ")))
                for line in response.iter_lines()
                if line.startswith("data: ")
            ]
    shares = [(at, data["share"]) for at, data in seen if data.get("share")]
    assert seen[0][0] < 0.5 and shares[0][0] < 2.0
    assert [share for _, share in shares] == sorted(share for _, share in shares) and shares[0][1] < 0.9


def test_a_search_publishes_sets_and_another_class_can_be_explained(client, served):
    form = {"input": {"text": TEXT}, "method": "parallel-local-search", "target": "good", "budget": 40}
    found, done = explained(client, served, model="texts", **form)
    assert done.target_name == "good"
    html = [data["html"] for name, data in found if name == "result"][-1]
    assert "What supports <strong>good</strong>" in html and "Best set at each sparsity" in html


def test_pairs_of_features_are_drawn(client, served):
    form = {"input": {"text": "not good at all"}, "method": "shapley-interactions", "budget": 60}
    found, _ = explained(client, served, model="texts", **form)
    html = [data["html"] for name, data in found if name == "result"][-1]
    assert "Acting together" in html and 'class="arcs"' in html and "not × good" in html


def test_one_evaluation_is_not_plural(client, served):
    form = {"input": {"text": "good"}, "method": "parallel-local-search"}
    found, _ = explained(client, served, model="texts", **form)
    texts = [data["text"] for name, data in found if name == "status"]
    assert texts[-1].startswith("Done: 1 evaluation,")
    assert any("1 feature " in text for text in texts) and not any("1 features" in text for text in texts)


def test_a_prediction_without_words(client, served):
    found, _ = explained(client, served, model="texts", input={"text": "good film"}, budget=4)
    id = found[-2][1]["id"]
    fragment = client.post("/api/without", json={"id": id, "features": [0]}).text
    assert "Without “good”" in fragment and "52.5%<br>" in fragment and "was 89.1%" in fragment
    assert "The prediction changes to" not in fragment
    assert client.post("/api/without", json={"id": id, "features": [9]}).status_code == 422
    answer = client.post("/api/without", json={"id": "other", "features": [0]})
    assert answer.status_code == 422 and "no longer in memory" in answer.text


def test_a_row_and_an_image(client, served):
    row = pertinent.models.embedded.tables.example_row()
    _, done = explained(client, served, model="table", input={"row": row}, budget=60)
    e = pertinent.explain(pertinent.load("table"), row, budget=60)
    np.testing.assert_allclose(done.scores, e.scores, atol=1e-9)
    form = client.post("/api/form", json={"model": "digits"}).text
    image = re.search(r'name="image" value="([^"]*)"', form)[1]
    found, _ = explained(client, served, model="digits", input={"image": image}, budget=70)
    html = found[-2][1]["html"]
    assert html.count("<path data-features=") == 64
    assert 'class="over" src="data:image/png;base64,' in html


PROMPT = {
    "model": "writer",
    "input": {"text": "Who keeps the map?", "sources": "Ann keeps the key.\n\nBob keeps the map."},
}


def test_an_answer_of_a_language_model_has_scores_for_every_token(client, served):
    found, done = explained(client, served, **PROMPT, budget=50)
    prompt = pertinent.Prompt(PROMPT["input"]["text"], sources=["Ann keeps the key.", "Bob keeps the map."])
    e = pertinent.explain(language_model(), prompt, budget=50)
    assert done.details["answer"] == e.details["answer"]
    assert done.features == e.features and done.classes == e.classes
    np.testing.assert_allclose(done.class_scores, e.class_scores, atol=1e-4)
    result = found[-2][1]
    for column in range(len(e.classes)):
        html = client.get(f"/api/results/{result['id']}/{column}").text
        assert float(words_of(html)[0][1].split()[0]) == pytest.approx(e.class_scores[column, 0], abs=0.01)
    assert client.get(f"/api/results/{result['id']}/99").status_code == 422
    answers = {"answer": " Bob", "rather_than": " Ann"}
    _, given = explained(client, served, model="writer", input={**PROMPT["input"], **answers})
    assert given.target_name == "contrast" and "generation" not in given.details


@pytest.mark.parametrize(
    ("fields", "features"),
    [
        ({}, ("Ann won.", "Bob lost.")),
        ({"fixed": "none"}, ("Ann", "won", ".", "Bob", "lost", ".", "Who", "won", "?")),
        ({"fixed": "Ann won.\n\nWho won?"}, ("Bob", "lost", ".")),
        ({"chat": True}, ("Ann won.", "Bob lost.")),
    ],
)
def test_a_form_says_what_is_fixed(client, served, fields, features):
    asked = {"text": "Ann won. Bob lost. Who won?", "answer": " Ann", **fields}
    _, done = explained(client, served, model="writer", input=asked, method="leave-one-out")
    assert done.features == features


def test_a_model_writes_its_answer_once_for_a_prompt(client, served, monkeypatch):
    written = []
    generate = TransformerWriter.generate
    monkeypatch.setattr(
        TransformerWriter, "generate", lambda *prompts: written.append(prompts) or generate(*prompts)
    )
    form = {**PROMPT, "input": {**PROMPT["input"], "text": "Who keeps the key?"}}
    found, _ = explained(client, served, **form)
    client.post("/api/methods", json=form)
    explained(client, served, **form, method="parallel-local-search")
    client.post("/api/without", json={"id": found[-2][1]["id"], "features": [0]})
    assert len(written) == 1


def test_a_chat_and_a_pair(client, served):
    form = {"text": "Who keeps the map?", "chat": True, "answer": "Bob"}
    _, e = explained(client, served, model="writer", input=form)
    assert [part for i, part in enumerate(e.input.text.segments) if not e.input.text.removable(i)] == [
        "<user>",
        "<model>",
    ]
    pair = {"text": "Is it good?", "second": "A delight.", "fixed": "first"}
    _, done = explained(client, served, model="sentiment", input=pair, budget=30)
    e = pertinent.explain(
        pertinent.load("sentiment"), {"query": "Is it good?", "document": "A delight."}, budget=30
    )
    np.testing.assert_allclose(done.scores, e.scores, atol=1e-6)


def test_a_chat_function(client, served):
    form = {"text": "Ann has the key. Bob has the map. Who has the map?", "chat": True}
    _, e = explained(client, served, model="chat", input=form, method="leave-one-out")
    assert e.features == ("Ann has the key.", "Bob has the map.")
    assert e.scores.tolist() == [0.0, 1.0]
    assert e.details["answer"] == "Bob"


def options(html, name):
    """The options of a select, and the reasons why some are disabled."""
    inside = html.partition(f'<select name="{name}">')[2].partition("</select>")[0] or html
    found = re.findall(r"<option([^>]*)>([^<]*)</option>", inside)
    reasons = {text: re.search('disabled title="([^"]*)"', attributes) for attributes, text in found}
    return {text: match and match[1] for text, match in reasons.items()}


def test_the_form_of_a_model(client):
    form = client.post("/api/form", json={"model": "texts", "input": {"text": "a <b> c"}}).text
    methods = options(form, "method")
    assert next(iter(methods)) == "shapley" and methods["lime"] is methods["parallel-local-search"] is None
    assert "needs gradients" in methods["integrated-gradients"]
    assert "needs a forest" in methods["tree-shap"]
    assert list(options(form, "features"))[1:] == ["words", "sentences", "lines", "paragraphs", "passages"]
    assert "attention-mask" in options(form, "removal") and "good" in options(form, "target")
    assert "a &lt;b&gt; c</textarea>" in form


def test_the_default_method_follows_the_kind_of_input(client):
    sent = {"model": "writer", "kind": "text", "input": {"text": "x"}}
    assert "selected" not in _method_options(client, sent | {"method": "shapley"})
    assert next(iter(options(_method_options(client, sent), ""))) == "bayesian-regression"
    assert 'value="lime"' in _selected(_method_options(client, sent | {"method": "lime"}))


def _method_options(client, sent):
    form = client.post("/api/form", json=sent).text
    return form.partition('<select name="method">')[2].partition("</select>")[0]


def _selected(listed):
    return next(option for option in listed.split("<option ") if " selected" in option)


def test_methods_that_cannot_explain_the_input_within_the_budget_are_disabled(client, served):
    form = {"model": "sentiment", "input": {"text": "word " * 18}, "budget": 500}
    methods = options(client.post("/api/methods", json=form).text, "")
    assert "at most 16 features" in methods["exact-shapley"]
    assert "must be at least" in methods["counterfactual"]
    for name, reason in methods.items():
        found = events(client.post("/api/explain", json={**form, "method": name}))
        failed = [data["reason"] for event, data in found if event == "failed"]
        assert bool(failed) == bool(reason), (name, failed, reason)
    methods = options(client.post("/api/methods", json={**form, "budget": 5000}).text, "")
    assert methods["counterfactual"] is None and methods["exact-shapley"]


def test_the_difference_between_two_versions(client, served):
    ids = []
    for text in ("good film", "bad film", "bad film"):
        found, _ = explained(client, served, model="texts", input={"text": text}, budget=4)
        ids.append(found[-2][1]["id"])
    difference = client.get(f"/api/difference/{ids[1]}/{ids[0]}").text
    assert difference == "good: 89.1% in the other version, 13.0% in this one."
    assert client.get(f"/api/difference/{ids[2]}/{ids[1]}").text == (
        "The other version has the same prediction."
    )


def test_the_page_and_its_files_load_nothing_from_elsewhere(client):
    page = client.get("/")
    assert '<script type="module" src="/static/explain.js">' in page.text
    assert "//" not in page.text.replace("http://127.0.0.1", "")
    for name in ("explain.js", "overlay.js", "app.css", "report.css"):
        assert client.get(f"/static/{name}").status_code == 200
    assert client.get("/static/..%2fserve.py").status_code == 404
    assert client.get("/docs").status_code == client.get("/openapi.json").status_code == 404


def test_a_view_from_another_package_is_one_class(monkeypatch, tmp_path):
    kept = dict(views.all())

    @views.register("hello")
    class HelloView(View):
        title, path, order = "Hello", "/hello", 9

        def routes(self):
            return {("GET", self.path): self.page}

        async def page(self, name: str = "you"):
            return self.render("pertinent.app:site.html", name=name)

    try:
        served = site(pertinent.wrap(Counting(), kind="text"))
    finally:
        views._classes = kept
    with (
        serving(served.app(TOKEN)) as address,
        httpx.Client(base_url=address, cookies={COOKIE: TOKEN}) as client,
    ):
        assert '<a href="/hello" aria-current="page">Hello</a>' in client.get("/hello").text
        assert '<a href="/hello">Hello</a>' in client.get("/").text


# -- bad input ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"input": {}}, "`text` is missing"),
        ({"input": {"text": " "}}, "The text is empty"),
        ({"input": {"text": "a" * 20_001}}, "at most 20,000 characters on this page, got 20,001"),
        ({"budget": 10_001}, "`budget` must be at most 10,000 on this page, but got 10001"),
        ({"method": "exact-shapley", "budget": None, "input": {"text": "a " * 14}}, "at most 10"),
        ({"method": "lime:samples=5"}, "Unknown method 'lime:samples=5'"),
        ({"method": "/etc"}, "Unknown method"),
        ({"removal": "background:rows=5"}, "Unknown removal"),
        ({"features": "patches"}, "Unknown feature"),
        ({"target": "ugly"}, "ugly"),
    ],
)  # fmt: skip
def test_what_cannot_be_explained_is_said(client, changes, message):
    asked = {"model": "texts", "input": {"text": TEXT}, "budget": 60, **changes}
    name, data = events(client.post("/api/explain", json=asked))[-1]
    assert name == "failed" and message in data["reason"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"{", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "must be a JSON object"),
        (b'{"model": "texts", "input": {"\\ud800": []}}', "lone surrogate"),
        (b'{"model": "texts", "budget": "x"}', "`budget` must be a whole number"),
        (b'{"model": "texts", "input": 5}', "`input` must be an object"),
        (b'{"model": "other"}', "Unknown model 'other'"),
    ],
)
def test_malformed_requests(client, body, message):
    for path in ("/api/explain", "/api/form", "/api/methods"):
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
    (_, (name, data)) = events(
        client.post("/api/explain", json={"model": "digits", "input": {"image": image}})
    )
    assert name == "failed" and any(each in data["reason"] for each in message.split("|")), data


def test_a_text_is_never_the_name_of_a_file(client, served, tmp_path):
    path = tmp_path / "secret.png"
    path.write_bytes(base64.b64decode(png(8, 8).partition(",")[2]))
    _, e = explained(client, served, model="texts", input={"text": str(path)}, budget=60)
    assert e.input.kind == "text"
    found = events(client.post("/api/explain", json={"model": "digits", "input": {"image": str(path)}}))
    assert found[-1][0] == "failed"


def test_markup_stays_text(client, served):
    text = "<img src=x onerror=alert(1)> good"
    found, _ = explained(client, served, model="texts", input={"text": text}, budget=60)
    html = found[-2][1]["html"]
    assert "<img" not in html and "&lt;" in html


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
    answer = client.post("/api/form", json={"model": "texts"}, headers=headers)
    assert answer.status_code == status


def test_a_browser_may_do_little_with_it(client):
    for path in ("/", "/static/explain.js", "/nothing"):
        headers = client.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
        assert "script-src 'self';" in policy
        assert headers["x-content-type-options"] == "nosniff" and headers["cache-control"] == "no-store"


def test_large_bodies_are_refused(client):
    answer = client.post("/api/form", content=b" " * (2**23 + 1))
    assert answer.status_code == 413

    def endless():
        while True:
            yield b" " * 2**20

    with suppress(httpx.TransportError):  # the server may have closed the connection
        assert client.post("/api/form", content=endless()).status_code == 413


# -- many at once ------------------------------------------------------------------------------


def test_who_goes_away_cancels_the_work():
    model = Counting()
    served = site(pertinent.wrap(model, kind="text"), max_concurrent=1)
    with (
        serving(served.app(TOKEN)) as address,
        httpx.Client(base_url=address, cookies={COOKIE: TOKEN}) as client,
    ):
        client.post("/api/form", json={"model": "model"})
        service = served.models["model"].service
        model.gate.clear()
        asked = {
            "model": "model",
            "input": {"text": " ".join("abcdefghijklmn")},
            "method": "shapley-sampling",
            "budget": 5000,
        }
        with client.stream("POST", "/api/explain", json=asked) as response:
            lines = response.iter_lines()  # kept: where it is forgotten, the connection is closed
            assert next(lines) == "event: status"
            until(lambda: service._orders)
        until(lambda: not served.queue.running)  # the server has noticed
        model.gate.set()
        until(lambda: not service._orders)
        assert model.rows < 500
        assert (
            events(client.post("/api/explain", json={**asked, "input": {"text": "good"}, "budget": 5}))[-2][0]
            == "result"
        )


def test_others_wait_in_line_and_the_line_has_an_end():
    model = Counting()
    served = site(pertinent.wrap(model, kind="text"), max_concurrent=1, max_waiting=2)

    async def ask(client, text):
        found = await client.post(
            "/api/explain", json={"model": "model", "input": {"text": text}, "method": "leave-one-out"}
        )
        return found.status_code, found

    async def several(address):
        async with httpx.AsyncClient(base_url=address, cookies={COOKIE: TOKEN}, timeout=30) as client:
            await client.post("/api/form", json={"model": "model"})
            model.gate.clear()
            asked = [asyncio.create_task(ask(client, f"good number {i}")) for i in range(3)]
            await asyncio.to_thread(until, lambda: len(served.queue.waiting) == 2)
            refused = await client.post("/api/explain", json={"model": "model", "input": {"text": "good"}})
            model.gate.set()
            return [refused], await asyncio.gather(*asked)

    with serving(served.app(TOKEN)) as address:
        refused, answered = asyncio.run(several(address))
    for each in refused:
        assert each.status_code == 429 and "try again" in each.text and each.headers["retry-after"] == "5"
    assert [status for status, _ in answered] == [200] * 3
    for i, (_, answer) in enumerate(answered):
        found = [data["html"] for name, data in events(answer) if name == "result"][-1]
        assert [word for word, _ in words_of(found).values()] == ["good", "number", str(i)]
    assert sum("Waiting: number" in answer.text for _, answer in answered) == 2


def test_the_queue_admits_in_order_and_drops_those_who_leave():
    async def use_the_queue():
        queue = AdmissionQueue(2, 2)
        a, b, c, d = (queue.enter() for _ in range(4))
        with pytest.raises(QueueFull, match="2 explanations are running and 2 are waiting"):
            queue.enter()
        assert a.admitted.is_set() and b.admitted.is_set() and not c.admitted.is_set()
        c.leave()  # while waiting
        assert await anext(d.positions()) == 1
        a.leave()
        a.leave()
        assert d.admitted.is_set() and [position async for position in d.positions()] == []
        b.leave(), d.leave()
        assert not queue.waiting and not queue.running

    asyncio.run(use_the_queue())
