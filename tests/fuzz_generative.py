"""Calls with prompts and with answers of a server, for the fuzz of calls."""

from __future__ import annotations

import json
import random
from functools import cache
from unittest.mock import patch

import httpx

import pertinent
from pertinent.models import endpoint_client
from tests import tiny_lm

TEXTS = [
    "Who keeps the map?",
    "Ann keeps the key.",
    " Bob",
    "{a} keeps {b}",
    "{a",
    "",
    "  ",
    "\ud800",
    "\x1b[2J",
    "日本",
]
SOURCES = [["Ann keeps the key.", "Bob keeps the map."], [], ["", "a"], "one text", [5], [None], ["a b"] * 40]
MESSAGES = [
    [{"role": "user", "content": "Who keeps the map?"}],
    [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Who?"}],
    [{"role": 5, "content": "a"}],
    [{"role": "user"}],
    [{"role": "user", "content": [{"type": "text", "text": "a"}]}],
    [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:"}}, {"type": "text"}]}],
    [{"role": "user", "content": "a"}, {"role": "assistant", "tool_calls": [{"function": {"name": "f"}}]}],
    [{"role": "assistant", "content": None, "tool_calls": 5}, {"role": "tool", "content": "b"}],
    ["a"],
    [],
]
SLOTS = [{"a": "Ann", "b": "the key"}, {"a": "Ann"}, {"a": 5}, {5: "Ann"}, {}, [("a", "b")]]
ALTERNATIVES = [{"a": ["Bob"], "b": ["it", "that"]}, {"a": "Bob"}, {"a": []}, {"a": [5]}, {"a": 5}, {}]
FEATURES = [
    None,
    None,
    "words",
    "tokens",
    "sentences",
    "sources",
    "messages",
    "coarse-to-fine",
    "columns",
    [(0, 3)],
]
METHODS = ["leave-one-out", "shapley", "context-cite", "single-effects", "gradient", "parallel-local-search"]
DEEP = "[" * 100_000


@cache
def _language_model():
    return pertinent.wrap((tiny_lm.model("llama"), tiny_lm.tokenizer()), max_new_tokens=3)


def explain_prompt(call):
    """Explain a prompt with some unusual fields."""
    draw = random.Random(call.size)
    texts = [*4 * TEXTS[:3], *TEXTS, call.odd]
    forms = [
        {"text": draw.choice(TEXTS[:3])},
        {"text": draw.choice(TEXTS[:3]), "sources": draw.choice([*4 * SOURCES[:1], *SOURCES, call.odd])},
        {"text": "{a} keeps {b}", "slots": draw.choice([*4 * SLOTS[:1], *SLOTS, call.odd])},
        {
            "text": "{a} keeps {b}",
            "slots": SLOTS[0],
            "alternatives": draw.choice([*4 * ALTERNATIVES[:1], *ALTERNATIVES, call.other]),
        },
        {"messages": draw.choice([*4 * MESSAGES[:2], *MESSAGES, call.odd])},
    ]
    fields = draw.choice([*4 * forms[:1], *forms])
    for name in ("answer", "rather_than", "span", "template", "separator"):
        if draw.random() < 0.25:
            fields[name] = draw.choice(texts)
    if draw.random() < 0.25:
        fields["fixed"] = draw.choice(["none", "Ann", ["Ann", "key"], (0, 3), [3, 5], (5, 3), call.odd])
    if draw.random() < 0.25:
        fields["chat"] = draw.choice([True, False, call.odd])
    prompt = pertinent.Prompt(**fields)
    prompt.render(lambda messages: "".join(m["content"] or "" for m in messages))
    _check(pertinent.explain(_language_model(), prompt, draw.choice(METHODS), **_options(draw, call)))


def explain_served(call):
    """Explain a prompt by a server that gives odd answers."""
    draw = random.Random(call.size)

    def respond(_, request):
        asked = json.loads(request.content)
        if draw.random() < 0.95:
            return _response(200, json.dumps(_answer(asked)).encode())
        return _odd_response(draw, call, asked)

    addresses = ["http://localhost:1/v1"] * 12 + ["http://[::1", "//x", "http://a b", "file:///x", call.odd]
    with (
        patch.object(httpx.HTTPTransport, "handle_request", respond),
        patch.object(endpoint_client, "FIRST_PAUSE", 0),
    ):
        options = {
            "value": draw.choice([None, None, None, "overlap", call.other]),
            "samples": draw.choice([1, 1, 1, 3]),
            "max_total_tokens": draw.choice([None, None, 1000]),
            "retries": draw.choice([0, 2]),
        }
        model = pertinent.wrap_endpoint(
            draw.choice(addresses), model=draw.choice(["tiny"] * 8 + [call.other]), **options
        )
        prompt = pertinent.Prompt(TEXTS[0], sources=SOURCES[0], answer=draw.choice([None, " Bob"]))
        _check(pertinent.explain(model, prompt, "leave-one-out", **_options(draw, call)))


def _options(draw, call):
    options = {"budget": 60, "features": draw.choice(FEATURES), "progress": False}
    if draw.random() < 0.2:
        options[draw.choice(["target", "scale", "removal", "features", "seed"])] = call.odd
    return options


def _answer(asked):
    """Answer as a server does whose tokens are characters."""
    if "messages" in asked:
        return {"choices": [{"message": {"content": "Bob"}}]}
    text = asked["prompt"] + " Bob"[: 4 * asked["max_tokens"]]
    if not asked.get("echo"):
        return {"choices": [{"text": " Bob"}]}
    logs = {
        "tokens": list(text),
        "token_logprobs": [None, *[-0.5] * (len(text) - 1)],
        "text_offset": list(range(len(text))),
    }
    return {"choices": [{"text": text, "logprobs": logs}]}


def _odd_response(draw, call, asked):
    """Return a response in which something is wrong."""
    good = _answer(asked)
    logs = good["choices"][0].setdefault("logprobs", {})
    name = draw.choice(["tokens", "token_logprobs", "text_offset"])
    logs[name] = draw.choice([[1.5], [None], [[]], "a", {}, [10**400], [float("nan")], None])
    bodies = [
        json.dumps(good),
        DEEP,
        "",
        "\ud800".encode("utf-16", "surrogatepass"),
        "null",
        '{"choices": [[]]}',
        "<html>",
    ]
    body = draw.choice(bodies)
    headers = {"Retry-After": draw.choice(["²", "-1", "0", "x"])} if draw.random() < 0.5 else {}
    status = draw.choice([200, 200, 200, 302, 400, 401, 404, 429, 500, 599])
    if draw.random() < 0.2:
        raise draw.choice([httpx.ReadError, httpx.RemoteProtocolError, httpx.ConnectTimeout])("broken")
    return _response(status, body if isinstance(body, bytes) else body.encode(), headers)


def _response(status, content, headers=()):
    raw = [(name.encode(), value.encode("latin-1")) for name, value in dict(headers).items()]
    return httpx.Response(status, headers=raw, stream=httpx.ByteStream(content))


def _check(explanation):
    several = [explanation] if isinstance(explanation, pertinent.Explanation) else explanation
    for e in several:
        assert len(e.scores) == len(e.features)
        e.to_html()
        assert pertinent.Explanation.from_dict(e.to_dict()).features == e.features
