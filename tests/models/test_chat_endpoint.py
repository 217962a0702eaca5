"""Chat models behind an endpoint, explained by newly written answers."""

import json
import logging
import pickle
import time

import numpy as np
import pytest

import pertinent
from pertinent import Prompt
from pertinent.errors import BudgetError, InputError, ModelError, SettingError
from pertinent.models import endpoint_client

MESSAGES = [
    {"role": "system", "content": "Ann keeps the key. Bob keeps the map."},
    {"role": "user", "content": "Who keeps the map?"},
]
PROMPT = Prompt(messages=MESSAGES)
OPTIONS = {"model": "tiny", "max_new_tokens": 4}


def explain(model, prompt=PROMPT, method="leave-one-out", **options):
    return pertinent.explain(model, prompt, method, **{"features": "sentences", **options})


@pytest.fixture
def chat(serve):
    return serve(speaks=("chat",))


@pytest.mark.parametrize("protocol", ["chat", "ollama"])
def test_scores_are_those_of_the_same_model_on_this_machine(serve, protocol):
    server = serve(speaks=(protocol,))
    url = server.url if protocol == "chat" else server.url.removesuffix("/v1")
    model = pertinent.wrap_endpoint(url, **OPTIONS, value="overlap")
    e = explain(model)
    local = pertinent.wrap((server.model, server.tokenizer), value="overlap", max_new_tokens=4)
    np.testing.assert_allclose(e.scores, explain(local).scores)
    assert e.details["value"] == e.target_name == "overlap"
    path, asked = server.asked[-1]
    assert path == ("/v1/chat/completions" if protocol == "chat" else "/api/chat")
    assert [message["role"] for message in asked["messages"]] == ["system", "user"]


def test_a_server_with_chat_only_is_found_without_a_path_and_noted(chat):
    model = pertinent.wrap_endpoint(chat.url.removesuffix("/v1"), **OPTIONS)
    assert model.writer.speaker.address == f"{chat.url}/chat/completions"
    assert "returns no log-probabilities" in " ".join(explain(model).notes)


def test_a_text_is_one_message_of_the_user(chat):
    model = pertinent.wrap_endpoint(chat.url, **OPTIONS)
    e = explain(model, Prompt("Who keeps the map?", sources=["Ann has it.", "Bob has it."]), features=None)
    assert e.features == ("Ann has it.", "Bob has it.")
    sent = [asked.get("messages") for _, asked in chat.asked]
    assert [{"role": "user", "content": "Ann has it.\n\nBob has it.\n\nWho keeps the map?"}] in sent


def test_options_that_a_model_rejects_are_omitted(chat):
    chat.rejects = ("temperature", "max_tokens", "seed")
    model = pertinent.wrap_endpoint(chat.url, **OPTIONS, samples=2)
    explain(model)
    assert {"max_completion_tokens", "messages", "model"} == set(chat.asked[-1][1])


def test_tool_calls_and_parts_in_answers_become_text(chat):
    call = {"function": {"name": "search", "arguments": '{"who": "Bob"}'}}
    model = pertinent.wrap_endpoint(chat.url, **OPTIONS)
    chat.faults = [(200, {}, {"choices": [{"message": {"content": None, "tool_calls": [call]}}]})]
    assert model.writer.write([PROMPT.render_messages()]) == ['search({"who": "Bob"})']


# -- noise -----------------------------------------------------------------------------------------


def test_the_noise_of_sampled_answers_is_in_the_standard_errors(chat):
    model = pertinent.wrap_endpoint(
        chat.url, **OPTIONS, samples=8, value=lambda answer, new: float(len(new)), max_total_tokens=10**6
    )
    prompt = Prompt(messages=MESSAGES, answer="Bob")
    runs = [explain(model, prompt, seed=seed) for seed in range(6)]
    assert not runs[0].warnings
    assert not any("log-probabilities" in note for note in runs[0].notes)
    assert runs[0].details["answers"] == "8 to each prompt"
    errors = np.array([e.standard_errors for e in runs])
    spread = np.std([e.scores for e in runs], axis=0, ddof=1)
    assert (errors > 0).all()
    assert 0.4 < np.sqrt((errors**2).mean() / (spread**2).mean()) < 2.5
    np.testing.assert_array_equal(explain(model, prompt, seed=0).scores, runs[0].scores)


def test_random_answers_without_samples_get_a_warning(chat):
    chat.rejects = ("temperature",)
    model = pertinent.wrap_endpoint(chat.url, **OPTIONS)
    answers = iter(range(1000))
    chat.chat = lambda *_: ({"content": "map " * (1 + next(answers))}, 5, 5)
    assert any("random or drifts" in warning for warning in explain(model).warnings)


# -- cost, limits and failures -----------------------------------------------------------------------


def test_the_estimate_bounds_the_requests_and_tokens(chat):
    model = pertinent.wrap_endpoint(chat.url, **OPTIONS)
    before = len(chat.asked)
    estimate = pertinent.estimate_requests(model, PROMPT, "leave-one-out", features="sentences")
    assert len(chat.asked) == before
    used = model.usage.requests, model.usage.total_tokens
    explain(model)
    assert model.usage.requests - used[0] <= estimate.requests
    assert estimate.requests <= 2 * (model.usage.requests - used[0])
    assert model.usage.total_tokens - used[1] <= 1.5 * estimate.tokens
    assert "requests" in str(estimate)


def test_the_estimate_of_likelihoods_counts_both_answers(serve):
    model = pertinent.wrap_endpoint(serve().url, model="tiny")
    prompt = Prompt("Who keeps the map?", sources=["a b", "c d"], answer=" Bob", rather_than=" Ann")
    estimate = pertinent.estimate_requests(model, [prompt, prompt], "shapley", budget=16)
    assert estimate.evaluations == 2 * 4
    assert estimate.requests >= 2 * estimate.evaluations


def test_a_limit_on_tokens_keeps_what_was_answered(chat):
    model = pertinent.wrap_endpoint(chat.url, **OPTIONS, in_flight=1, max_total_tokens=100)
    with pytest.raises(BudgetError, match="`max_total_tokens` is 100"):
        explain(model)
    assert model.usage.total_tokens <= 110
    n = model.usage.requests
    assert n > 1
    model.usage.max_total_tokens = None
    e = explain(model)
    before = len(chat.asked)
    assert before > n
    fresh = pertinent.wrap_endpoint(chat.url, **OPTIONS)
    np.testing.assert_array_equal(explain(fresh).scores, e.scores)


def test_a_server_that_drops_loses_no_answers(chat, tmp_path, monkeypatch):
    options = OPTIONS | {"in_flight": 1, "answers": tmp_path / "answers.jsonl", "retries": 1}
    model = pertinent.wrap_endpoint(chat.url, **options)
    whole = chat.reply
    n = len(chat.asked)
    chat.reply = lambda path, asked: whole(path, asked) if len(chat.asked) < n + 3 else (503, {})
    with pytest.raises(ModelError, match=r"answers are kept: repeat the call"):
        explain(model)
    chat.reply = whole
    again = pertinent.wrap_endpoint(chat.url, **options)
    before = [json.dumps(asked) for _, asked in chat.asked]
    e = explain(again)
    sent = [json.dumps(asked) for _, asked in chat.asked[len(before) :]]
    answered = set(before[: n + 2])
    repeats = 4  # the check for random answers
    assert sum(each in answered for each in sent) <= repeats
    assert len(e.scores) == 2
    assert "Bob" not in (tmp_path / "answers.jsonl").read_text().replace(e.details["answer"], "")


def test_damaged_lines_of_an_answers_file_are_ignored(chat, tmp_path, caplog):
    file = tmp_path / "answers.jsonl"
    explain(pertinent.wrap_endpoint(chat.url, **OPTIONS, answers=file))
    lines = file.read_text().splitlines()
    file.write_text("\n".join([*lines[:2], lines[2][:20], "[]", "{}"]))
    explain(pertinent.wrap_endpoint(chat.url, **OPTIONS, answers=file))
    assert "3 damaged lines" in caplog.text
    with pytest.raises(pertinent.PertinentError, match="cannot be read"):
        pertinent.wrap_endpoint(chat.url, **OPTIONS, answers=tmp_path)


def test_all_requests_wait_as_long_as_the_server_asks(chat, caplog):
    model = pertinent.wrap_endpoint(chat.url, **OPTIONS)
    chat.faults = [(429, {"Retry-After": "1"}, {"error": "slow down"})]
    start = time.monotonic()
    with caplog.at_level(logging.INFO):
        explain(model)
    assert time.monotonic() - start >= 1
    assert "slow down" in caplog.text
    chat.faults = [(429, {"Retry-After": "3600"}, {"error": "out of quota"})]
    with pytest.raises(ModelError, match=r"out of quota; it asks to wait for 3,600 s"):
        explain(model, Prompt("Another one?"))


def test_retry_after_may_be_a_date():
    wait = endpoint_client._seconds_to_wait
    assert wait("Wed, 21 Oct 2015 07:28:00 GMT") == 0
    assert wait("7") == 7
    assert [wait(text) for text in ("soon", "", "-1", "9" * 400)] == [None] * 4


def test_a_server_that_is_down_is_not_retried_by_every_request(chat, monkeypatch):
    model = pertinent.wrap_endpoint(chat.url, **OPTIONS, retries=2, in_flight=1)
    chat.reply = lambda *_: (503, {})
    n = len(chat.asked)
    for prompt in ("One?", "Two?", "Three?"):
        with pytest.raises(ModelError, match="did not answer"):
            explain(model, Prompt(prompt))
    assert len(chat.asked) - n == 3 + 1 + 1


def test_keys_in_messages_of_the_server_are_not_shown(chat, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-42")
    chat.faults = [(401, {}, {"error": {"message": "Incorrect key: sk-secret-42"}})] * 2
    with pytest.raises(ModelError, match="is set but was rejected") as caught:
        pertinent.wrap_endpoint(chat.url, model="tiny")
    assert "secret" not in str(caught.value)
    model = pertinent.wrap_endpoint(chat.url, **OPTIONS)
    chat.faults = [(400, {}, {"error": "x" * 295 + "sk-secret-42"})]
    with pytest.raises(ModelError) as caught:
        explain(model)
    assert "sk-" not in str(caught.value)
    assert b"secret" not in pickle.dumps(model)


def test_empty_answers_are_refused(chat):
    model = pertinent.wrap_endpoint(chat.url, **OPTIONS)
    chat.faults = [(200, {}, {"choices": [{"message": {"content": ""}}]})]
    with pytest.raises(InputError, match="answer to the prompt is empty"):
        explain(model)


def test_a_server_that_speaks_nothing_known(serve):
    with pytest.raises(ModelError, match="speaks no known protocol") as caught:
        pertinent.wrap_endpoint(serve(speaks=()).url, model="tiny")
    for path in ("/v1/completions", "/v1/chat/completions", "/api/chat"):
        assert path in str(caught.value)


def test_a_gateway_may_allow_the_key_only_chat(chat):
    whole = chat.reply
    refusal = 403, {"error": {"message": "not for you"}}
    chat.reply = lambda path, asked: refusal if path == "/v1/completions" else whole(path, asked)
    model = pertinent.wrap_endpoint(chat.url, **OPTIONS)
    assert model.writer.speaker.address.endswith("/chat/completions")
    chat.reply = lambda *_: refusal
    with pytest.raises(ModelError, match="OPENAI_API_KEY is not set"):
        pertinent.wrap_endpoint(chat.url, **OPTIONS)


def test_another_process_gets_no_answers_in_memory(chat):
    model = pertinent.wrap_endpoint(chat.url, **OPTIONS)
    explain(model)
    other = pickle.loads(pickle.dumps(model))
    assert len(model.writer.speaker.client.kept) > 0
    assert len(other.writer.speaker.client.kept) == 0
    np.testing.assert_array_equal(explain(other).scores, explain(model).scores)


def test_endpoints_by_name(chat):
    e = explain(f"{chat.url}#tiny")
    assert chat.asked[-1][1]["model"] == "tiny"
    assert len(e.scores) == 2
    with pytest.raises(SettingError, match="ADDRESS#NAME"):
        explain(chat.url)
