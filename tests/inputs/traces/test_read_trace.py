"""Traces in the forms of different libraries, and files of them."""

import json

import pytest

from pertinent import Prompt
from pertinent.errors import FileError, InputError
from pertinent.inputs.prompt_parts import PromptPart
from pertinent.inputs.traces.read_trace import read_trace
from tests.inputs.traces.examples import (
    CALL,
    CHUNKS,
    MESSAGES,
    NAMES,
    RAG,
    generative_ai,
    langfuse,
    openinference,
    otlp,
)

RETRIEVED = ["retrieved chunk 1", "retrieved chunk 2", "retrieved chunk 3"]


def names(trace):
    return [part.name for part in read_trace(trace).parts]


def test_messages_are_divided_into_parts_that_people_recognise():
    trace = read_trace(MESSAGES)
    assert [part.name for part in trace.parts if "answer" not in part.name] == NAMES
    chunks = [part for part in trace.parts if part.name.startswith("search result")]
    assert [part.text for part in chunks] == CHUNKS
    assert {part.call for part in chunks} == {"call of search"}
    assert [step.name for step in trace.steps] == [
        "reasoning 1",
        "call of search",
        "reasoning 2",
        "reasoning 3",
        "answer",
    ]
    assert trace.step("call of search").text == 'search({"what": "map"})'


@pytest.mark.parametrize("spans", [openinference(), openinference(nested=True), otlp(openinference())])
def test_openinference_spans(spans):
    prompt = Prompt.from_trace(spans)
    assert [part.name for part in prompt.parts] == [
        "system prompt",
        "user turn, part 1",
        *RETRIEVED,
        "user turn, part 2",
    ]
    assert [part.text for part in prompt.parts if part.name in RETRIEVED] == CHUNKS
    assert prompt.answer == "Bob"
    assert prompt.messages[1]["content"] == RAG
    assert [part.text for part in prompt.parts if part.held] == ["Context:", "Who keeps the map?"]


def test_conventions_for_generative_ai():
    prompt = Prompt.from_trace(generative_ai())
    assert [message["role"] for message in prompt.messages] == ["system", "user", "assistant", "tool"]
    results = [part.text for part in prompt.parts if part.name.startswith("search result")]
    assert [json.loads(text.strip(", "))["text"] for text in results] == CHUNKS
    assert prompt.answer == "Bob"


def test_langfuse_observations_of_unknown_type_are_skipped_with_a_note():
    prompt = Prompt.from_trace(langfuse())
    assert [part.text for part in prompt.parts if part.name in RETRIEVED] == CHUNKS
    (note,) = prompt.notes
    assert "WEATHER 'storm'" in note


def test_texts_of_a_run_suffice():
    spans = openinference()[1:]
    spans[1]["attributes"]["output.value"] = "Bob"
    prompt = Prompt.from_trace(spans)
    assert [part.text for part in prompt.parts if part.name in RETRIEVED] == CHUNKS
    assert prompt.answer == "Bob"


def test_a_logged_request_and_other_libraries_blocks():
    request = {
        "messages": MESSAGES[:2],
        "response": {"choices": [{"message": {"role": "assistant", "content": "Bob"}}]},
    }
    assert Prompt.from_trace(request).answer == "Bob"
    blocks = [
        {"role": "user", "content": [{"type": "text", "text": "Who keeps the map?"}]},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "1", "name": "search", "input": {"a": 1}}],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "1", "content": "Bob keeps it."}],
        },
        {"role": "assistant", "content": [{"type": "text", "text": "Bob"}]},
    ]
    trace = read_trace(blocks)
    assert names(blocks) == ["user turn", "search result", "answer"]
    assert trace.messages[1]["tool_calls"][0]["function"] == {"name": "search", "arguments": '{"a": 1}'}


@pytest.mark.parametrize("as_lines", [False, True])
def test_files(tmp_path, as_lines):
    path = tmp_path / "run.json"
    path.write_text("\n".join(map(json.dumps, MESSAGES)) if as_lines else json.dumps({"messages": MESSAGES}))
    assert names(path) == names(str(path)) == names(MESSAGES)


@pytest.mark.parametrize(
    ("trace", "named"),
    [
        ([], "an empty list"),
        ({"weather": 1}, "'weather'"),
        ([{"weather": 1}], "'weather'"),
        (3, "int"),
        ([{"name": "a", "attributes": {"openinference.span.kind": "EMBEDDING"}}], "EMBEDDING 'a'"),
        ([{"role": "user", "content": "hello"}], "assistant"),
        ([{"type": "GENERATION", "name": "g", "input": 3, "output": None}], "GENERATION 'g'"),
    ],
)
def test_what_is_no_trace_is_named(trace, named):
    with pytest.raises(InputError, match=named):
        Prompt.from_trace(trace)


def test_files_that_are_no_traces(tmp_path):
    with pytest.raises(FileError, match=r"missing\.json"):
        Prompt.from_trace(tmp_path / "missing.json")
    path = tmp_path / "text.json"
    path.write_text("not JSON")
    with pytest.raises(FileError, match="JSON lines"):
        Prompt.from_trace(path)
    path.write_text('"text"')
    with pytest.raises(InputError, match="but got str"):
        Prompt.from_trace(path)


def test_chunks_that_are_not_in_the_prompt_are_noted():
    spans = openinference()
    spans[1]["attributes"]["retrieval.documents.3.document.content"] = "Dora keeps the ring."
    prompt = Prompt.from_trace(spans)
    assert any("1 of 4" in note for note in prompt.notes)


def test_tags_mark_memory_and_documents():
    system = "Be brief.\n<memory>Ann is a friend.</memory>\n<document id='1'>Bob keeps the map.</document>"
    messages = [
        {"role": "system", "content": system},
        *MESSAGES[1:2],
        {"role": "assistant", "content": "Bob"},
    ]
    assert names(messages) == ["system prompt", "memory", "retrieved chunk", "user turn", "answer"]


def test_json_results_are_divided_into_their_entries():
    content = json.dumps({"took": 3, "hits": [{"text": chunk} for chunk in CHUNKS]})
    messages = [*MESSAGES[:3], {"role": "tool", "tool_call_id": CALL["id"], "content": content}, MESSAGES[4]]
    prompt = Prompt.from_trace(messages)
    texts = [part.text for part in prompt.parts if part.name.startswith("search result")]
    assert texts == [
        '{"text": "Ann keeps the key."}, ',
        '{"text": "Bob keeps the map."}, ',
        '{"text": "Carl keeps the lamp."}',
    ]


def test_turns_and_memory_are_numbered():
    call = {"id": "m", "function": {"name": "load_memory", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "Hello, I am Ann."},
        {"role": "assistant", "content": "Hello, Ann."},
        {"role": "user", "content": "I lost the key. Who keeps the map?"},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "m", "content": "Bob keeps the map."},
        {"role": "assistant", "content": "Bob"},
    ]
    prompt = Prompt.from_trace(messages)
    assert [(part.name, part.held) for part in prompt.parts] == [
        ("user turn 1", False),
        ("answer 1", False),
        ("user turn 2, part 1", False),
        ("user turn 2, part 2", True),
        ("memory", False),
    ]


def test_parts_lie_in_their_messages():
    messages = [{"role": "user", "content": "Who keeps the map?"}]
    for part in (PromptPart(0, 3, 99, "a"), PromptPart(1, 0, 3, "a"), PromptPart(0, 3, 3, "a")):
        with pytest.raises(InputError, match="part"):
            Prompt(messages=messages, parts=[part]).render_messages()
    with pytest.raises(InputError, match="`parts` require"):
        Prompt("Who keeps the map?", parts=[PromptPart(0, 0, 3, "a")])
    with pytest.raises(InputError, match="`continues` requires"):
        Prompt(messages=messages, continues=True)
