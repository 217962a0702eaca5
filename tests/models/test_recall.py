"""The embedded language model: it answers from its prompt, and the right sentence is found."""

import json
import random
import sys
from pathlib import Path

import numpy as np
import pytest

import pertinent
from pertinent import Prompt
from pertinent.app.serve import _EXAMPLES
from pertinent.cli.signatures import texts
from pertinent.errors import InputError, SettingError
from pertinent.models.embedded.load import ASSETS

FOLDER = ASSETS / "recall"


@pytest.fixture(scope="module")
def model():
    return pertinent.load("recall")


@pytest.fixture(scope="module")
def lessons():
    """Questions about three facts of common words, each with the place of the right one."""
    sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))
    try:
        import recall_facts
    finally:
        sys.path.pop(0)
    rng, found = random.Random(7), []
    known = {*recall_facts.NAMES, *recall_facts.THINGS, *recall_facts.PLACES, *recall_facts.ROOMS}
    while len(found) < 30:
        own = recall_facts.lesson(rng, 3)
        if own.right >= 0 and len(own.sentences) == 3 and own.answer.split()[-1] in known:
            found.append(own)
    return found


def test_it_is_small_and_says_how_it_was_made():
    files = {path.name for path in FOLDER.iterdir()}
    assert {"README.md", "card.json", "config.json", "model.safetensors", "tokenizer.json"} <= files
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 4 * 2**20
    card = json.loads((FOLDER / "card.json").read_text())
    assert card["bytes"] == (FOLDER / "model.safetensors").stat().st_size


@pytest.mark.parametrize("chat", [None, False])
def test_the_sentence_with_the_answer_is_found(model, lessons, chat):
    cue, space = ("", "") if chat is None else (" Answer:", " ")
    prompts = [Prompt(own.question + cue, sources=own.sentences, separator=" ", chat=chat) for own in lessons]
    found = pertinent.explain(model, prompts, "leave-one-out", progress=False)
    right = [e.details["answer"] == space + own.answer for e, own in zip(found, lessons, strict=True)]
    assert np.mean(right) >= 0.95
    hits = [
        int(e.scores.argmax()) == own.right
        for e, own, is_right in zip(found, lessons, right, strict=True)
        if is_right
    ]
    assert np.mean(hits) >= 0.95


def test_the_best_feature_is_the_fact_with_the_answer_by_default(model, lessons):
    hits = []
    for own in lessons:
        if not all(sentence.endswith(".") for sentence in own.sentences):
            continue
        text = " ".join([*own.sentences, own.question, "Answer:"])
        e = pertinent.explain(model, text, progress=False)
        if e.details["answer"] == f" {own.answer}":
            assert e.features == own.sentences
            hits.append(e.top(1)[0][0] == own.sentences[own.right])
    assert len(hits) >= 10
    assert all(hits[:10])


def test_examples_show_the_sentence_with_the_answer(model):
    lines = texts()["demo texts"].strip().splitlines()
    examples = [line.removeprefix("recall ") for line in lines if line.startswith("recall ")]
    examples += [fields["text"] for fields in _EXAMPLES["recall"]()]
    best = [pertinent.explain(model, text, progress=False).top(1)[0][0] for text in examples]
    assert best == ["Bob keeps the map.", "Bob keeps the map.", "Omar lives in Oslo."]


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Who keeps the key?", " Ann"),
        ("What does Ann keep?", " the key"),
        ("Who keeps the map?", " Bob"),
        ("What does Bob keep?", " the map"),
    ],
)
def test_both_directions_of_two_facts_are_answered(model, question, answer):
    for between in (" ", "\n"):
        prompt = f"Ann keeps the key.{between}Bob keeps the map.{between}{question} Answer:"
        e = pertinent.explain(model, prompt, "leave-one-out", features="sentences", progress=False)
        assert e.details["answer"] == answer
        assert e.scores[:2].argmax() == ("Bob" in answer or "Bob" in question)


@pytest.mark.parametrize(
    ("prompt", "note"),
    [
        (Prompt("Bob keeps the map. Who keeps the map? Answer:", answer="Bob"), "pass answer=' Bob'"),
        (
            Prompt("Bob keeps the map. Who keeps the map? Answer:", answer=" Bob", rather_than="Ann"),
            "pass rather_than=' Ann'",
        ),
        (Prompt("Who keeps the map?", sources=["Bob keeps the map."], answer=" Bob"), "pass answer='Bob'"),
    ],
)
def test_a_note_tells_that_an_answer_is_more_likely_with_or_without_a_space(model, prompt, note):
    assert model.prepare(prompt).notes[-1].endswith(note)


@pytest.mark.parametrize(
    "prompt",
    [
        Prompt("Bob keeps the map. Who keeps the map? Answer:", answer=" Bob"),
        Prompt("Bob keeps the map. Who keeps the map? Answer:"),
        Prompt("Who keeps the map?", sources=["Bob keeps the map."], answer="Bob"),
        Prompt("Bob keeps the map. Who keeps the map? Answer:", answer="."),
    ],
)
def test_a_likely_answer_has_no_such_note(model, prompt):
    assert not [note for note in model.prepare(prompt).notes if "nats" in note]


def test_lessons_hold_their_answer_in_one_sentence(lessons):
    for own in lessons:
        word = own.answer.split()[-1]
        assert [word in text for text in own.sentences].count(True) == 1
        assert word in own.sentences[own.right]


def test_a_chat_is_answered(model):
    messages = [
        {"role": "system", "content": "Ann keeps the key. Bob keeps the map."},
        {"role": "user", "content": "Who keeps the map?"},
    ]
    e = pertinent.explain(model, Prompt(messages=messages), "leave-one-out", features="sentences")
    assert e.details["answer"] == "Bob"
    assert e.top(1)[0][0] == "Bob keeps the map."


def test_it_is_an_object_of_transformers(model):
    network, tokenizer = model.in_transformers()
    assert type(network).__name__ == "LlamaForCausalLM"
    assert tokenizer.chat_template
    again = pertinent.wrap((network, tokenizer), value="overlap")
    e = pertinent.explain(again, "Ann keeps the key. Who keeps the key? Answer:", budget=64)
    assert e.classes == ("overlap",)


def test_what_it_cannot_do(model):
    with pytest.raises(SettingError, match="does not read long texts"):
        pertinent.load("recall", long_texts="windows")
    with pytest.raises(InputError, match="the model reads at most 512"):
        pertinent.explain(model, "Ann keeps the key. " * 200)


def test_data_frames_of_prompts(model):
    import pandas as pd

    texts = ["Ann keeps the key. Who keeps the key? Answer:", "Bob keeps the map. Who keeps the map? Answer:"]
    for frame in (
        pd.DataFrame({"prompt": texts}),
        pd.DataFrame({"text": texts, "answer": [None, float("nan")], "year": [1, 2]}),
    ):
        several = pertinent.explain(model, frame, "leave-one-out")
        assert [e.details["answer"] for e in several] == [" Ann", " Bob"]
