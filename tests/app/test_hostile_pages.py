"""Pages under requests that are cut off, too large, too slow or never finished."""

import asyncio
import json
import socket
import threading
from contextlib import ExitStack

import numpy as np
import pytest

import pertinent
from pertinent.app import site as pages
from pertinent.app import timed_connection, token_auth
from pertinent.app.admission_queue import AdmissionQueue
from pertinent.app.explanation_browser import ExplanationBrowser
from pertinent.app.site import Site
from pertinent.app.views import explain
from tests.app.hostile import COOKIES, call, cut_off, png_head, whole
from tests.app.served import TOKEN, Counting, serving, site


def text_site(model=None, **limits):
    return site(pertinent.wrap(model or Counting(), kind="text", classes=["bad", "good"]), **limits)


BODY = json.dumps({"model": "model", "input": {"text": "good film"}, "budget": 4}).encode()


def post(app, path="/api/methods", body=BODY, **fields):
    if fields:
        body = json.dumps(json.loads(BODY) | fields).encode()
    return asyncio.run(call(app, "POST", path, whole(body)))


def last_event(sent, name):
    events = [event.split("\n") for event in sent.body.decode().strip().split("\n\n")]
    return json.loads(
        [data for event, data in events if event == f"event: {name}"][-1].removeprefix("data: ")
    )


def test_a_body_without_its_end_is_not_read():
    app = text_site().app(TOKEN)
    assert asyncio.run(call(app, "POST", "/api/methods", cut_off(BODY))).status is None
    longer = (*COOKIES, (b"content-length", str(len(BODY) + 1).encode()))
    assert asyncio.run(call(app, "POST", "/api/methods", whole(BODY), headers=longer)).status == 400
    exact = (*COOKIES, (b"content-length", str(len(BODY)).encode()))
    assert asyncio.run(call(app, "POST", "/api/methods", whole(BODY), headers=exact)).status == 200


@pytest.mark.parametrize(
    ("fields", "limit"),
    [
        ({"input": {str(i): 0 for i in range(100_000)}}, "4,096"),
        ({"method": "a" * 100_000}, "1,000"),
    ],
)
def test_long_fields_are_refused_by_name(fields, limit):
    answer = post(text_site().app(TOKEN), **fields)
    assert answer.status == 422
    assert f"`{next(iter(fields))}`" in answer.body.decode() and limit in answer.body.decode()


def test_a_row_of_too_many_columns_is_refused():
    served = site({"model": pertinent.load("table")})
    row = {"row": {str(i): 0 for i in range(5000)}}
    assert (
        "at most 4,096 columns"
        in last_event(post(served.app(TOKEN), "/api/explain", input=row), "failed")["reason"]
    )


@pytest.mark.parametrize("path", ["/api/methods", "/api/form", "/api/explain"])
def test_a_request_is_decoded_outside_of_the_event_loop(monkeypatch, path):
    threads = []

    class Recording:
        dumps = staticmethod(json.dumps)

        @staticmethod
        def loads(data):
            threads.append(threading.current_thread())
            return json.loads(data)

    monkeypatch.setattr(explain, "json", Recording)
    assert post(text_site().app(TOKEN), path).status == 200
    assert len(threads) == 1 and threads[0] is not threading.current_thread()


def test_a_request_ends_after_its_time(monkeypatch):
    monkeypatch.setattr(pages, "_GRACE", 0.1)
    model = Counting()
    served = text_site(model, seconds=0.4)
    app = served.app(TOKEN)
    result = last_event(post(app, "/api/explain"), "result")
    model.gate.clear()
    try:
        assert (
            post(app, "/api/without", json.dumps({"id": result["id"], "features": [0]}).encode()).status
            == 503
        )
        answer = post(app, "/api/explain", input={"text": "bad film"})
        assert answer.status == 200
        assert answer.body.decode().strip().rpartition("\n\n")[2].startswith("event: failed")
        assert not served.queue.running
    finally:
        model.gate.set()


@pytest.mark.parametrize("query", [b"method=x", b"method=lime&predicted=x", b"by=x", b"page=-1", b"page=9"])
def test_browsing_what_is_not_there(query):
    model = pertinent.wrap(Counting(), kind="text", classes=["bad", "good"])
    explanations = pertinent.explain(model, ["good film", "bad film"], "leave-one-out", progress=False)
    app = Site([], AdmissionQueue(1, 1), ExplanationBrowser(explanations, "saved.parquet")).app(TOKEN)
    answer = asyncio.run(call(app, "GET", "/browse", query=query))
    assert answer.status == (200 if query == b"page=9" else 422)


def test_a_file_of_too_many_pixels_is_refused(tmp_path):
    path = tmp_path / "large.png"
    path.write_bytes(png_head(40_000, 40_000))
    model = pertinent.wrap(lambda images: np.zeros((len(images), 2)), kind="image")
    with pytest.raises(pertinent.PertinentError, match=r"large\.png"):
        pertinent.explain(model, path)
    image = pytest.importorskip("PIL.Image")
    path.write_bytes(png_head(300, 300))
    with image.open(path) as opened, pytest.raises(pertinent.PertinentError, match="image"):
        pertinent.explain(model, opened)


HEAD = f"GET /static/app.css HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: {token_auth.COOKIE}={TOKEN}\r\n".encode()
POST = HEAD.replace(b"GET /static/app.css", b"POST /api/explain")


def test_requests_that_are_never_finished_lose_their_connection(monkeypatch):
    monkeypatch.setattr(timed_connection, "HEAD_SECONDS", 0.3)
    monkeypatch.setattr(token_auth, "BODY_SECONDS", 0.3)
    starts = [b"", b"GET", HEAD, HEAD + b"\r\n" + HEAD, POST + b"Content-Length: 50\r\n\r\n{"]
    with serving(text_site().app(TOKEN)) as address, ExitStack() as stack:
        port = int(address.rpartition(":")[2])
        clients = [stack.enter_context(socket.create_connection(("127.0.0.1", port), 20)) for _ in starts]
        for client, start in zip(clients, starts, strict=True):
            client.sendall(start)
        answers = [read_to_end(client) for client in clients]
    assert [answer[9:12] for answer in answers] == [b"", b"", b"", b"200", b"408"]


def read_to_end(client):
    """Return what the server sends until it closes the connection; a server that does not raises an error."""
    parts = [client.recv(65_536)]
    while parts[-1]:
        parts.append(client.recv(65_536))
    return b"".join(parts)


def test_a_slow_answer_keeps_its_connection(monkeypatch):
    monkeypatch.setattr(timed_connection, "HEAD_SECONDS", 0.2)
    model = Counting()
    with serving(text_site(model).app(TOKEN)) as address:
        port = int(address.rpartition(":")[2])
        model.gate.clear()
        with socket.create_connection(("127.0.0.1", port), 20) as client:
            client.sendall(POST + b"Connection: close\r\nContent-Length: %d\r\n\r\n%b" % (len(BODY), BODY))
            threading.Timer(0.8, model.gate.set).start()
            assert read_to_end(client)[9:12] == b"200"
