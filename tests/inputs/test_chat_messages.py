"""Messages with content parts, tool calls, results of tools and images."""

import json

import pytest

import pertinent
from pertinent import Prompt
from pertinent.errors import InputError
from pertinent.models.chat import OllamaChat
from tests import tiny_lm

CALL = {"id": "1", "type": "function", "function": {"name": "find", "arguments": '{"what": "map"}'}}
AGENT = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Who keeps the map?"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "1", "content": "Bob keeps the map. Ann keeps the key."},
]
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
PARTS = [
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "Bob keeps the map."},
            IMAGE,
            {"type": "text", "text": "Ann keeps the key."},
        ],
    },
    {"role": "user", "content": "Who keeps the map?"},
]


class Keeper:
    """Chat function that remembers its messages and looks for a name."""

    def __init__(self):
        self.seen = []

    def __call__(self, messages):
        self.seen.append(messages)
        return "Bob" if "Bob keeps the map." in json.dumps(messages) else "nobody"


def explain(prompt, **options):
    keeper = Keeper()
    model = pertinent.wrap(keeper, value="exact-match")
    return pertinent.explain(model, prompt, "leave-one-out", **options), keeper.seen


def test_results_of_tools_can_be_removed_and_calls_cannot():
    e, seen = explain(Prompt(messages=AGENT))
    assert e.features == ("Bob keeps the map.", "Ann keeps the key.")
    assert e.scores.tolist() == [1.0, 0.0]
    assert seen[0] == AGENT
    without = [{**AGENT[3], "content": "Ann keeps the key."}]
    assert AGENT[:3] + without in seen
    assert all(messages[2] == AGENT[2] for messages in seen)
    assert 'find({"what": "map"})' in "".join(e.input.text.segments)
    again = pertinent.Explanation.from_dict(e.to_dict())
    assert again.input.text.messages == AGENT
    assert "find(" in e.to_html()


def test_parts_are_divided_and_images_held_fixed():
    e, seen = explain(Prompt(messages=PARTS))
    assert e.features == ("Bob keeps the map.", "Ann keeps the key.")
    assert seen[0] == PARTS
    assert any("Images" in note for note in e.notes)
    assert all(messages[0]["content"][1] == IMAGE for messages in seen)


def test_whole_messages_can_be_features():
    e, seen = explain(Prompt(messages=AGENT, fixed="none"), features="messages")
    assert e.features == ("Be brief.", "Who keeps the map?", AGENT[3]["content"])
    assert e.scores.tolist() == [0.0, 0.0, 1.0]
    assert [*AGENT[:3], {**AGENT[3], "content": ""}] in seen


def test_ollama_gets_its_own_form():
    class Client:
        def ask_text(self, address, request, read, max_answer, *, fresh):
            self.request = request
            return ""

    client = Client()
    OllamaChat(client, "http://localhost").write(Prompt(messages=[*PARTS, *AGENT]).render_messages(), 5)
    first, _, _, _, call, _ = client.request["messages"]
    assert first["content"] == "Bob keeps the map.\nAnn keeps the key."
    assert first["images"] == ["aGk="]
    assert call["content"] == ""
    assert call["tool_calls"][0]["function"]["arguments"] == {"what": "map"}


def test_chat_templates_read_parts_and_calls():
    template = (
        "{% for m in messages %}<{{ m.role }}>{% if m.content %}{{ m.content }}{% endif %}"
        "{% for c in m.tool_calls or [] %}{{ c.function.name }}:{{ c.function.arguments.what }}{% endfor %}"
        "{% endfor %}<model>"
    )
    tokenizer = tiny_lm.tokenizer()
    tokenizer.chat_template = template
    model = pertinent.wrap((tiny_lm.model("llama"), tokenizer))
    e = pertinent.explain(model, Prompt(messages=AGENT, answer="Bob"), "leave-one-out")
    assert e.features == ("Bob keeps the map.", "Ann keeps the key.")
    assert "<assistant>find:map<tool>" in "".join(e.input.text.segments)
    texts = [{"role": "user", "content": [part for part in PARTS[0]["content"] if part is not IMAGE]}]
    e = pertinent.explain(model, Prompt(messages=[*texts, PARTS[1]], answer="Bob"), "leave-one-out")
    assert e.features == ("Bob keeps the map.", "Ann keeps the key.")
    with pytest.raises(InputError, match="has images"):
        pertinent.explain(model, Prompt(messages=PARTS))


@pytest.mark.parametrize(
    "message",
    [
        "a",
        {"role": "user"},
        {"role": "user", "content": None},
        {"role": 5, "content": "a"},
        {"role": "user", "content": 5},
        {"role": "user", "content": ["a"]},
        {"role": "user", "content": [{"type": "text"}]},
        {"role": "user", "content": [{"type": "text", "text": 5}]},
        {"role": "user", "content": [{"text": "a"}]},
        {"role": "user", "content": "a", "name": {1, 2}},
        {"role": "assistant", "tool_calls": 5},
        {"role": "assistant", "content": "a", "tool_calls": "find"},
    ],
)
def test_malformed_messages_are_refused(message):
    with pytest.raises(InputError, match=r"message|content part"):
        Prompt(messages=[message])


def test_messages_without_text_are_refused():
    with pytest.raises(InputError, match=r"no text|nothing"):
        Prompt(messages=[{"role": "user", "content": [IMAGE]}]).render_messages()
