"""A served language model, by a small server that answers with a transformers model."""

import json
import pickle
import sys
from contextlib import suppress

import numpy as np
import pytest
import torch

import pertinent
from pertinent import Prompt
from pertinent.errors import InputError, MissingExtra, ModelError, SettingError
from pertinent.models import answer_spacing, endpoint_client

SOURCES = ["Ann keeps the key.", "Bob keeps the map.", "Cleo keeps the lamp."]
QUESTION = Prompt(
    "Who keeps the map?", sources=SOURCES, answer=" Bob keeps it", rather_than=" Ann", chat=False
)


def by_hand(server, text, answer):
    ids = server.tokenizer(text)["input_ids"]
    own = server.tokenizer(answer, add_special_tokens=False)["input_ids"]
    logs = server.logs([*ids, *own])
    return logs[torch.arange(len(ids) - 1, len(ids) + len(own) - 1), torch.tensor(own)].numpy()


def test_answers_are_scored_as_by_the_model(serve):
    server = serve()
    model = pertinent.wrap_endpoint(server.url, model="tiny")
    e = pertinent.explain(model, QUESTION, "leave-one-out")
    assert e.features == tuple(SOURCES)
    local = pertinent.wrap((server.model, server.tokenizer))
    np.testing.assert_allclose(
        e.prediction.values, pertinent.explain(local, QUESTION, "leave-one-out").prediction.values, atol=1e-4
    )
    assert "".join(e.input.text.answer_tokens) == QUESTION.answer
    whole = by_hand(server, "\n\n".join([*SOURCES, QUESTION.text]), QUESTION.answer)
    without = by_hand(server, "\n\n".join(["", *SOURCES[1:], QUESTION.text]), QUESTION.answer)
    np.testing.assert_allclose(
        e.class_scores[1:, 0], [(whole - without).sum(), *(whole - without)], atol=1e-4
    )
    path, asked = server.asked[-1]
    assert path == "/v1/completions"
    assert asked["model"] == "tiny"


def test_words_slots_and_metrics(serve):
    server = serve()
    model = pertinent.wrap_endpoint(server.url, model="tiny")
    e = pertinent.explain(model, QUESTION, "leave-one-out", features="words", metrics=["comprehensiveness"])
    assert len(e.features) == 15
    template = Prompt(
        "{who} keeps the {what}.",
        slots={"who": "Ann", "what": "key"},
        alternatives={"who": ["Bob"], "what": ["map"]},
    )
    e = pertinent.explain(model, Prompt(**vars(template) | {"answer": " Ann"}), "leave-one-out")
    assert e.removal == "alternatives"
    expected = (
        by_hand(server, "Ann keeps the key.", " Ann").sum()
        - by_hand(server, "Bob keeps the key.", " Ann").sum()
    )
    assert e.scores[0] == pytest.approx(expected, abs=1e-4)


def test_the_model_answers_itself(serve):
    server = serve()
    model = pertinent.wrap_endpoint(server.url, model="tiny", max_new_tokens=3)
    e = pertinent.explain(model, Prompt("Who keeps the map?", sources=SOURCES), "leave-one-out")
    assert e.details["generation"] == "greedy, at most 3 tokens"
    assert len(e.input.text.answer_tokens) >= 1


def test_a_note_tells_that_an_answer_is_more_likely_with_a_space(serve, monkeypatch):
    model = pertinent.wrap_endpoint(serve().url, model="tiny")
    prompt = Prompt("Ann keeps it. Who keeps it? Answer:", answer="Ann")
    monkeypatch.setattr(answer_spacing, "FAR", -1000.0)
    assert model.prepare(prompt).notes[-1].endswith("pass answer=' Ann'")
    monkeypatch.setattr(answer_spacing, "FAR", 1000.0)
    assert not [note for note in model.prepare(prompt).notes if "nats" in note]


def test_many_requests_are_in_flight_at_once_and_no_more(serve):
    server = serve(patience=2.0)
    model = pertinent.wrap_endpoint(server.url, model="tiny", in_flight=4)
    pertinent.explain(model, QUESTION, "leave-one-out", features="words")
    assert 1 < server.most_at_once <= 4


def test_requests_that_fail_are_sent_again(serve):
    server = serve()
    model = pertinent.wrap_endpoint(server.url, model="tiny")
    plain = pertinent.explain(model, QUESTION, "leave-one-out")
    server.faults = [(503, {}, {}), (429, {"Retry-After": "0"}, {"error": "busy"}), (500, {}, b"oops")]
    again = pertinent.explain(model, QUESTION, "leave-one-out")
    np.testing.assert_array_equal(plain.scores, again.scores)


BROKEN = [
    (200, {"Content-Length": "1000"}, b'{"choices": ['),  # the connection breaks in the middle of the body
    b"",
    b"HTTP/1.1 200 OK\r\nContent-Len",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
    b"HELLO\r\n\r\n",
    b"HTTP/1.1 9999 OK\r\n\r\n",
    b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 50_000 + b"\r\n",
    b"\x00\xff" * 1000,
    (429, {"Retry-After": "\u00b2"}, {}),
    (503, {"Retry-After": "9" * 400}, {}),
    (507, {}, {}),
]


@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_connection_is_retried(serve, fault, monkeypatch):
    monkeypatch.setattr(endpoint_client, "LONGEST_PAUSE", 0.02)
    server = serve()
    server.faults = [fault] * 2
    pertinent.wrap_endpoint(server.url, model="tiny")
    server.faults = [fault] * 2
    with pytest.raises(ModelError, match="did not answer after 2 tries"):
        pertinent.wrap_endpoint(server.url, model="tiny", retries=1)


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_the_key_is_not_sent_to_another_address(serve, code, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "secret-42")
    server, other = serve(), serve()
    server.faults = [(code, {"Location": f"{other.url}/completions"}, {})]
    with pytest.raises(ModelError, match=other.url):
        pertinent.wrap_endpoint(server.url, model="tiny")
    assert server.keys == ["Bearer secret-42"]
    assert other.keys == []


@pytest.mark.parametrize("key", ["se\ncret", "se\u20accret", "se cret\x00"])
def test_a_key_that_no_header_can_hold_is_not_shown(serve, key, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", key.replace("\x00", "\x01"))
    with pytest.raises(SettingError, match="OPENAI_API_KEY") as caught:
        pertinent.wrap_endpoint(serve().url, model="tiny", retries=0)
    assert "cret" not in str(caught.value)


def test_large_answers_are_refused(serve, monkeypatch):
    monkeypatch.setattr(endpoint_client, "LARGEST_ANSWER", 1000)
    server = serve()
    server.faults = [(200, {}, b" " * 1001)]
    with pytest.raises(ModelError, match="more than 1000 bytes"):
        pertinent.wrap_endpoint(server.url, model="tiny")


def choice(**logprobs):
    """An answer to the first request, which asks for the probability of " c" after "a b"."""
    plain = {"tokens": ["a", " b", " c", "!"], "token_logprobs": [None, -1.0, -2.0, -1.0]}
    return {"choices": [{"text": "a b c!", "logprobs": plain | logprobs}]}


HOSTILE = [
    b"[" * 100_000,
    b'{"choices": ' + b"[" * 990 + b"]" * 990 + b"}",
    b'{"choices": [' + b"1" * 5000 + b"]}",
    b"\xff\xfe",
    b"",
    [],
    None,
    "choices",
    {"choices": "abc"},
    {"choices": [["a", 1]]},
    {"choices": [None]},
    {"choices": []},
    {"choices": [{"logprobs": [1, 2]}]},
    {"choices": [{"logprobs": "ab"}]},
    choice(tokens="a b!", token_logprobs=[-1.0] * 4),
    choice(tokens=["a", " b", " c", 5]),
    choice(tokens={"a": 1, " b": 2, " c": 3, "!": 4}),
    choice(token_logprobs="abcd"),
    choice(token_logprobs=[None, -1.0, "-2.0", -1.0]),
    choice(token_logprobs=[None, -1.0, "x", -1.0]),
    choice(token_logprobs=[None, -1.0, [], -1.0]),
    choice(token_logprobs=[None, -1.0, {}, -1.0]),
    choice(token_logprobs=[None, -1.0, True, -1.0]),
    choice(token_logprobs=[None, -1.0, float("nan"), -1.0]),
    choice(token_logprobs=[None, -1.0, float("inf"), -1.0]),
    choice(token_logprobs=[None, -1.0, float("-inf"), -1.0]),
    choice(token_logprobs=[None, -1.0, 10**400, -1.0]),
    choice(token_logprobs=[None, -1.0, 0.5, -1.0]),
    choice(token_logprobs=[None, -1.0, -2.0]),
    choice(token_logprobs=[None, -1.0, -2.0, -1.0, -1.0]),
    choice(tokens=["?"] * 4, text_offset="0123"),
    choice(tokens=["?"] * 4, text_offset=[0, "1", 3, 5]),
    choice(tokens=["?"] * 4, text_offset=[None] * 4),
    choice(tokens=["?"] * 4, text_offset=[9, 9, 9, 9]),
    choice(tokens=["?"] * 4, text_offset={"0": 1, "1": 2, "2": 3, "3": 4}),
    choice(tokens=["?"] * 4, text_offset=5),
]


@pytest.mark.parametrize("body", HOSTILE)
@pytest.mark.parametrize("status", [200, 400])
def test_odd_answers_are_no_scores(serve, body, status, caplog):
    server = serve()
    server.faults = [(status, {}, body)]
    with suppress(ModelError):
        model = pertinent.wrap_endpoint(server.url, model="tiny")
        assert model.output.kind == "value"
        assert "returns no log-probabilities" in caplog.text


@pytest.mark.parametrize("body", HOSTILE[:13])
def test_a_server_that_always_gives_odd_answers_is_refused(serve, body):
    server = serve()
    server.faults = [(200, {}, body)] * 9
    with pytest.raises(ModelError, match="speaks no known protocol"):
        pertinent.wrap_endpoint(server.url, model="tiny")


@pytest.mark.parametrize("text", [None, 5, ["a"], {"a": 1}])
def test_an_answer_that_is_no_text_is_refused(serve, text):
    server = serve()
    model = pertinent.wrap_endpoint(server.url, model="tiny")
    server.faults = [(200, {}, {"choices": [{"text": text}]})]
    with pytest.raises(ModelError, match="not return a completion"):
        pertinent.explain(model, Prompt("Who keeps the map?", sources=SOURCES), "leave-one-out")


ADDRESSES = ["http://[::1", "http://a:99999", "http://a:x/v1", "http://", "http://a..b/v1", "http://\x00/v1"]
ADDRESSES += ["http://" + "a" * 300 + "/v1", "http://a b/v1", "ftp://a/v1", "http://a/v1\n", "//a", ""]


@pytest.mark.parametrize("url", ADDRESSES)
def test_malformed_addresses_are_refused(url):
    with pytest.raises(SettingError, match="`url` must be"):
        pertinent.wrap_endpoint(url, model="tiny", retries=0)


def test_httpx_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(MissingExtra, match=r"pip install 'pertinent\[endpoint\]'"):
        pertinent.wrap_endpoint("http://127.0.0.1:9", model="tiny")


def test_a_server_that_stays_busy_is_given_up(serve):
    server = serve()
    server.faults = [(503, {}, {"error": {"message": "overloaded"}})] * 3
    with pytest.raises(ModelError, match="did not answer after 3 tries: 503 overloaded"):
        pertinent.wrap_endpoint(server.url, model="tiny", retries=2)
    with pytest.raises(ModelError, match="did not answer after 1 tries"):
        pertinent.wrap_endpoint("http://127.0.0.1:9", model="tiny", retries=0)


def test_keys_are_read_from_the_environment_and_never_kept(serve, monkeypatch):
    server = serve(key="secret-42")
    with pytest.raises(ModelError, match="OPENAI_API_KEY is not set"):
        pertinent.wrap_endpoint(server.url, model="tiny")
    monkeypatch.setenv("MY_KEY", "wrong")
    with pytest.raises(ModelError, match="MY_KEY is set but was rejected"):
        pertinent.wrap_endpoint(server.url, model="tiny", key_variable="MY_KEY")
    monkeypatch.setenv("MY_KEY", "secret-42")
    model = pertinent.wrap_endpoint(server.url, model="tiny", key_variable="MY_KEY")
    e = pertinent.explain(model, QUESTION, "leave-one-out")
    assert b"secret-42" not in pickle.dumps(model)
    assert "secret-42" not in json.dumps(e.to_dict()) + repr(model)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ((400, {}, {"error": {"message": "echo is not supported"}}), "no log-probabilities for the prompt"),
        ((404, {}, {"message": "unknown model"}), "no model 'tiny'"),
        ((400, {}, {"error": "too warm"}), "refused the request: 400 too warm"),
        ((501, {}, {"error": "not here"}), "refused the request: 501 not here"),
        ((200, {}, b"<html>"), "did not return JSON"),
        ((200, {}, {"text": "hello"}), "not return a completion"),
    ],
)
def test_servers_that_do_something_else(serve, fault, said):
    server = serve()
    server.faults = [fault] * 9
    with pytest.raises(ModelError, match=said):
        pertinent.wrap_endpoint(server.url, model="tiny")


def test_prompts_longer_than_the_context_are_refused(serve):
    server = serve()
    model = pertinent.wrap_endpoint(server.url, model="tiny")
    server.faults = [(400, {}, {"error": {"message": "maximum context length is 128 tokens"}})]
    with pytest.raises(InputError, match="longer than the context of the model 'tiny'"):
        pertinent.explain(model, QUESTION, "leave-one-out")


def test_a_server_without_log_probabilities_is_asked_for_new_answers(serve, caplog):
    server = serve(echoes=False)
    model = pertinent.wrap_endpoint(server.url, model="tiny", max_new_tokens=4)
    assert "returns no log-probabilities" in caplog.text
    prompt = Prompt(QUESTION.text, sources=SOURCES, chat=False)
    e = pertinent.explain(model, prompt, "leave-one-out")
    local = pertinent.wrap((server.model, server.tokenizer), value="overlap", max_new_tokens=4)
    np.testing.assert_allclose(e.scores, pertinent.explain(local, prompt, "leave-one-out").scores)
    assert "no log-probabilities" in " ".join(e.notes)
    with pytest.raises(SettingError, match="`length_normalised`"):
        pertinent.wrap_endpoint(server.url, model="tiny", length_normalised=True)


def test_a_server_without_log_probabilities_can_be_asked_for_new_answers(serve):
    server = serve(echoes=False, patience=2.0)
    model = pertinent.wrap_endpoint(server.url, model="tiny", value="overlap", max_new_tokens=4)
    prompt = Prompt(QUESTION.text, sources=SOURCES, chat=False)
    e = pertinent.explain(model, prompt, "leave-one-out")
    local = pertinent.wrap((server.model, server.tokenizer), value="overlap", max_new_tokens=4)
    np.testing.assert_allclose(e.scores, pertinent.explain(local, prompt, "leave-one-out").scores)
    assert e.prediction.values.tolist() == [1.0]
    assert server.most_at_once > 1


def test_what_cannot_be(serve):
    with pytest.raises(SettingError, match="`url` must be an http address"):
        pertinent.wrap_endpoint("localhost:8000", model="tiny")
    with pytest.raises(SettingError, match="must not contain a user name or password"):
        pertinent.wrap_endpoint("http://me:secret@localhost/v1", model="tiny")
    model = pertinent.wrap_endpoint(serve(bos=False).url, model="tiny")
    with pytest.raises(InputError, match="no probability, and no text remains"):
        pertinent.explain(model, Prompt("Ann", answer=" Bob"), "leave-one-out")
    with pytest.raises(InputError, match="choose features='words'"):
        pertinent.explain(model, QUESTION, features="tokens")
    with pytest.raises(InputError, match="no chat template"):
        pertinent.explain(model, Prompt(messages=[{"role": "user", "content": "Who?"}]))
    with pytest.raises(ModelError, match="let the answer begin with a space"):
        pertinent.explain(model, Prompt("Ann keeps it: A", answer="nn", sources=()), "leave-one-out")
