"""Hostile requests to the pages, in this process: any method, path, query, header and body, whole or cut off.

``python -m tests.fuzz_pages --requests 20000`` sends many; `test_fuzz.py` sends a few. Nothing may raise an
error, and no status may be 500 or above; a study's answers must be readable afterwards.
"""

from __future__ import annotations

import asyncio
import base64
import json
import random
import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote_plus, urlencode

import numpy as np

import pertinent
from pertinent.app.admission_queue import AdmissionQueue
from pertinent.app.explain_form import Limits
from pertinent.app.explanation_browser import ExplanationBrowser
from pertinent.app.serve import served_models
from pertinent.app.site import Site
from pertinent.app.study_site import COOKIE as PERSON
from pertinent.app.study_site import StudySite
from pertinent.app.token_auth import COOKIE
from pertinent.study.answers import Answers
from tests.app.hostile import call, cut_off, png_head, whole
from tests.app.served import TOKEN, Counting
from tests.fuzz import main
from tests.study.people import explained

METHODS = ("GET", "POST", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "get", "", "G\0T", "*")
PATHS = (
    (
        *("/", "/browse", "/browse", "/browse/0", "/browse/1", "/model", "/compare", "/static/app.css"),
        *["/api/explain"] * 8,
        *("/api/form", "/api/form", "/api/methods", "/api/methods", "/api/without", "/api/without"),
        *("/api/results/{id}/0", "/api/results/{id}/1", "/api/difference/{id}/{id}"),
    ),
    ("/", "/begin", "/begin", "/leave", "/static/study.css", *["/answer"] * 6),
)
"""The paths of the page of explanations, and of the page of a study."""

ODD_PATHS = (
    *("", "//", "//elsewhere.example", "/..", "/../../etc/passwd", "/browse/-1", "/browse/" + "9" * 30),
    *(
        "/browse/x",
        "/browse/0/",
        "/browse/²",
        "/api/results/x/0",
        "/api/results/{id}/-1",
        "/api/results/{id}/1e3",
        "/api/difference/{id}/x",
        "/static/",
        "/static/../web.py",
    ),
    *("/\\elsewhere.example", "/\0", "/\r\nSet-Cookie: a=b", "/ä%zz", "/" + "a" * 20_000, "*", "http://a/"),
)
NAMES = (
    *("method", "q", "predicted", "right", "feature", "sort", "by", "view", "page", "column", "target"),
    *("metric", "model", "token", "name", "number", "answer", "code"),
)
ODD_TEXTS = (
    *(
        "",
        " ",
        "0",
        "1",
        "-1",
        "1e9",
        "nan",
        "9" * 40,
        "²",
        "x",
        "none",
        "first",
        "lime",
        "shapley",
        "good",
        "a",
    ),
    *("every class", "predicted class", "right or wrong", "beeswarm", "sufficiency", "sex", "age", "texts"),
    *(
        "\0",
        "\r\n",
        "ä",
        "🙂",
        "\ud800",
        "<script>alert(1)</script>",
        "../../etc/passwd",
        "%00",
        "&",
        ";",
        TOKEN,
    ),
    *(
        "a" * 5_000,
        "." * 5_000 + "x",
        " " * 5_000,
        "a b " * 1_000,
        "Ada",
        "Ada ",
        "O'Neill",
        "1,2,3",
        ",",
        "1,,2",
    ),
)
FIELDS = {
    "model": ("texts", "people", "images", "other", "", None, 5),
    "method": (
        "leave-one-out",
        "shapley",
        "lime",
        "tree-shap",
        "gradient",
        "/etc",
        "lime:samples=5",
        "",
        None,
        1,
    ),
    "target": (None, "good", "yes", "ugly", "", 0, []),
    "budget": (8, 16, 1, 0, -1, 10**30, 1.5, "8", None, True),
    "removal": (None, "background", "attention-mask", "mean", "constant", "slice-out", "x", "", 3),
    "features": (
        None,
        "words",
        "sentences",
        "passages",
        "passages:3",
        "tokens",
        "patches",
        "pixels",
        "columns",
        4,
    ),
    "seed": (0, 1, -1, 2**70, "0", 0.5, None),
}
WITHOUT = ([], [0], [1, 1], [99], [-1], [0] * 5_000, "0", [None], [2**70], [1.0], [True], None)
INPUTS = {
    "text": (
        "good film",
        "not bad at all. A second one.",
        "",
        " ",
        None,
        3,
        "\0",
        "." * 3_000 + "x",
        "x" * 30_000,
    ),
    "second": (None, "a delight", "", 7),
    "fixed": ("none", "first", "second", "third", None),
    "sources": ("", "a\n\nb", "\n \n", ["a", "b"], 1, {}),
    "values": ("1 2 3", "[1, 2]", "", "x", 5, "9" * 400),
    "answer": (None, "yes", "", []),
    "chat": (True, False, "yes", 1),
}
CELLS = (30, 0, -1.5, 1e308, 10**400, "Male", "Femle", "", None, True, [], {}, "9" * 400, "\0", "a" * 30_000)


def plain_png(size):
    from io import BytesIO

    from PIL import Image

    file = BytesIO()
    Image.fromarray(np.arange(size * size, dtype=np.uint8).reshape(size, size)).save(file, "PNG")
    return file.getvalue()


def uri(data):
    return "data:image/png;base64," + base64.b64encode(data).decode()


IMAGES = (
    *(
        uri(plain_png(8)),
        uri(plain_png(8)[:-20]),
        uri(png_head(40_000, 40_000)),
        uri(png_head(11_000, 10_000)),
    ),
    *(uri(png_head(0, 0)), uri(b""), "data:,", "/etc/passwd", "", "a" * 3_000, None, 5, {}),
)


def predict_people(rows):
    return [[1 - p, p] for p in (0.5 + 0.001 * np.tanh(float(age)) * (sex == "Female") for age, sex in rows)]


def predict_images(images):
    means = np.asarray(images, dtype=np.float64).reshape(len(images), -1).mean(axis=1)
    return np.stack([1 - means, means], axis=1)


def make_apps(folder):
    """The two pages: explanations and a study, with a study of five inputs."""
    texts = pertinent.wrap(Counting(), kind="text", classes=["bad", "good"])
    rows = [[30, "Male"], [40, "Female"], [50, "Male"]]
    people = pertinent.wrap(predict_people, background=rows, columns=["age", "sex"], classes=["no", "yes"])
    images = pertinent.wrap(predict_images, kind="image", classes=["dark", "light"])
    models = {"texts": texts, "people": people, "images": images}
    compared = pertinent.compare(people, rows, ["leave-one-out", "shapley"], progress=False)
    saved = ExplanationBrowser(
        pertinent.Explanations(compared.explanations), "saved.parquet", ["no", "yes", "no"]
    )
    limits = Limits(budget=64, features=512)
    site = Site(served_models(models, limits), AdmissionQueue(8, 128), saved)
    study = pertinent.create_study(explained(5), folder / "study", top=3, checks=1)
    return site.app(TOKEN), StudySite(study).app(TOKEN), study


class Attacker:
    """Draws requests at random.

    `cookies` are those of participants who have entered, `number` is the last question that a page showed,
    and `id` is that of the last result.
    """

    def __init__(self, number):
        self.draw = random.Random(number)
        self.cookies = ["", "0", "0.", "\xff", "study-0", "0." + "0" * 64]
        self.number, self.id = "0", "none"

    def chance(self, share):
        return self.draw.random() < share

    def text(self):
        value = self.draw.choice(ODD_TEXTS)
        return value + self.draw.choice(ODD_TEXTS) if self.chance(0.1) else value

    def noise(self, most):
        return self.draw.randbytes(self.draw.randrange(most))

    def path(self, known):
        if self.chance(0.85):
            return self.draw.choice(known)
        if self.chance(0.7):
            return self.draw.choice(ODD_PATHS)
        return self.draw.choice(known) + "/" + self.text().encode("utf-8", "replace").decode()

    def pairs(self):
        names = [
            self.draw.choice(NAMES) if self.chance(0.9) else self.text()
            for _ in range(self.draw.choice((1, 2, 5)))
        ]
        return urlencode([(name, self.text()) for name in names], errors="replace").encode()

    def query(self):
        return self.draw.choice(
            (b"", self.pairs(), self.pairs(), self.noise(60), b"&=&;%zz=%" + self.noise(5))
        )

    def headers(self):
        draw = self.draw
        person = f"; {PERSON}={draw.choice(self.cookies[-1:] if self.chance(0.5) else self.cookies)}"
        cookie = f"{COOKIE}={TOKEN}{person if self.chance(0.9) else ''}".encode("latin-1", "replace")
        if self.chance(0.05):
            cookie = draw.choice(
                (b"", b"=;=;", self.noise(40), f"{COOKIE}=x".encode(), f'{COOKIE}="{TOKEN}'.encode())
            )
        hosts = (
            b"localhost:80",
            b"[::1]:1",
            b"",
            b"127.0.0.1:1@evil.example",
            b"evil.example",
            self.noise(20),
        )
        host = draw.choice(hosts) if self.chance(0.05) else b"127.0.0.1"
        headers = [(b"host", host), (b"cookie", cookie)]
        if self.chance(0.1):
            headers.append((b"content-length", draw.choice((b"0", b"5", b"-1", b"x", b"9" * 30, b"\xb2"))))
        if self.chance(0.1):
            headers.append((draw.choice((b"origin", b"range", b"accept", b"cookie", b"x")), self.noise(60)))
        return headers

    def question(self):
        draw, plain = self.draw, {"model": self.draw.choice(("texts", "people", "images")), "budget": 8}
        plain["method"] = draw.choice(("leave-one-out", "shapley"))
        given = {"text": "not good at all", "row": {"age": 30, "sex": "Male"}, "image": draw.choice(IMAGES)}
        for values, fields in ((plain, FIELDS), (given, INPUTS)):
            for name in draw.sample(sorted(fields), draw.choice((0, 1, 1, 2))):
                values[name] = draw.choice(fields[name])
        if self.chance(0.3):
            cells = {"age": draw.choice(CELLS), "sex": draw.choice(CELLS), self.text(): draw.choice(CELLS)}
            given["row"] = draw.choice((cells, {}, None, [], 5, [30, "Male"], {"age": 1}))
        plain["input"] = draw.choice((None, [], "x", 5)) if self.chance(0.05) else given
        if self.chance(0.2):
            plain["kind"] = draw.choice(("text", "image", "x", None, 5))
        if self.chance(0.05):
            plain.pop("model", None)
        return json.dumps(plain).encode()

    def removal(self):
        id = self.id if self.chance(0.8) else self.draw.choice(("", "x", None, 5, []))
        return json.dumps({"id": id, "features": self.draw.choice(WITHOUT)}).encode()

    def form(self):
        number = self.number if self.chance(0.7) else str(self.draw.randrange(8))
        fields = {"name": self.text(), "number": number, "code": self.text()}
        answers = [
            str(self.draw.randrange(7)) if self.chance(0.7) else self.text()
            for _ in range(self.draw.choice((0, 1, 3)))
        ]
        pairs = [f"{key}={quote_plus(value, errors='replace')}" for key, value in fields.items()]
        return "&".join(
            [*pairs, *(f"answer={quote_plus(each, errors='replace')}" for each in answers)]
        ).encode()

    def body(self, path):
        data = self.question() if path.startswith("/api") else self.form()
        data = self.removal() if path == "/api/without" else data
        if self.chance(0.15):
            data = self.draw.choice(
                (
                    b"",
                    b"[]",
                    b"null",
                    b"[" * 50_000,
                    b'{"a":' * 5_000,
                    self.noise(200),
                    b"\xff\xfe",
                    b"&" * 5_000,
                )
            )
        if data and self.chance(0.1):
            changed = bytearray(data)
            changed[self.draw.randrange(len(data))] = self.draw.randrange(256)
            data = bytes(changed)
        return data

    def messages(self, path):
        """The messages of a body, and whether the client stays for the answer."""
        data = self.body(path)
        at = self.draw.randrange(len(data) + 1)
        if self.chance(0.1):
            return cut_off(data[:at]), False
        if self.chance(0.02):
            return [{"type": "http.disconnect"}], False
        if self.chance(0.2):
            return [{"type": "http.request", "body": data[:at], "more_body": True}, *whole(data[at:])], True
        return whole(data), True


async def send(attacker, apps, counts):
    """Send one request to each page and note errors."""
    for app, known in zip(apps, PATHS, strict=True):
        path = attacker.path(known).replace("{id}", attacker.id)
        posted = ("/api/e", "/api/f", "/api/m", "/api/w")
        method = "POST" if path.startswith((*posted, "/begin", "/answer", "/leave")) else "GET"
        if attacker.chance(0.15):
            method = attacker.draw.choice(METHODS)
        messages, stays = attacker.messages(path)
        query, headers = attacker.query(), attacker.headers()
        counts["requests"] += 1
        try:
            sent = await call(app, method, path, messages, query=query, headers=headers)
            counts[sent.status] += 1
            assert sent.status is None or 200 <= sent.status < 500, f"status {sent.status}"
            assert sent.status is not None or not stays, "there was no answer"
            if cookie := (sent.cookie(PERSON) or "").strip('"'):
                attacker.cookies = [*attacker.cookies[-20:], cookie]
            if shown := re.search(rb'name="number" value="(\d+)"', sent.body):
                attacker.number = shown[1].decode()
            if sent.status == 200 and path == "/api/explain":
                events = sent.body.decode().strip().split("\n\n")
                assert events[-1].startswith(("event: status", "event: failed")), events[-1][:100]
                if result := re.findall(rb'"id": "([^"]*)"', sent.body):
                    attacker.id = result[-1].decode()
        except Exception as error:  # noqa: BLE001
            counts.note(error, (method, path, query, headers, [str(each)[:1500] for each in messages]))


def fuzz_pages(n_requests, number, counts):
    """Send requests to both pages; `counts` counts the statuses and collects errors."""

    async def send_all():
        attacker = Attacker(number)
        while counts["requests"] < n_requests:
            await send(attacker, apps, counts)

    with TemporaryDirectory() as name:
        *apps, study = make_apps(Path(name))
        asyncio.run(send_all())
        people = Answers(study).people  # raises an error if a file is damaged
        counts["people"], counts["answers"] = len(people), sum(len(each.answers) for each in people.values())


if __name__ == "__main__":
    sys.exit(main(__doc__, 20_000, requests=fuzz_pages))
