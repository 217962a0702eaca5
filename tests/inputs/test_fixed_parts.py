"""The parts of a prompt that are held fixed by default, and by `Prompt.fixed`."""

import numpy as np
import pytest

from pertinent import Prompt
from pertinent.errors import InputError
from pertinent.inputs.annotations import mark_features
from pertinent.inputs.fixed_parts import divide
from pertinent.inputs.modality import InputLimits, modality_named
from pertinent.inputs.prompt_request import request_spans
from pertinent.inputs.rendered_prompt import cut_prompt, prompt_input
from pertinent.removals.base import removals

FACTS = "Ann keeps the key. Bob keeps the map."
TEXT = f"{FACTS} Who keeps the map? Answer:"


def chat(messages):
    return "".join(f"<{each['role']}>{each['content']}" for each in messages) + "<assistant>"


def prepared(prompt, features=None, template=chat):
    rendered = prompt.render(template)
    granularity, spans, notes = cut_prompt(rendered, features)
    return prompt_input(rendered, granularity, spans, None, notes)


def message(role, content):
    return {"role": role, "content": content}


@pytest.mark.parametrize(
    ("text", "held"),
    [
        (f"{FACTS} Who keeps the map?", ["Who keeps the map?"]),
        (TEXT, ["Who keeps the map? Answer:"]),
        (
            f"{FACTS}\n\nQuestion:\nWho keeps the map?\n\nAnswer:",
            ["Question:\nWho keeps the map?\n\nAnswer:"],
        ),
        (f"{FACTS} Is it old? Who keeps it?", ["Is it old? Who keeps it?"]),
        (f"{FACTS} Who keeps the map? Answer in one word.", ["Who keeps the map? Answer in one word."]),
        (f"{FACTS} Who keeps it? Let’s think step by step.", ["Who keeps it? Let’s think step by step."]),
        ("It rains. Paris is big. The capital of France is", ["The capital of France is"]),
        (f"Summarise the text:\n{FACTS}\nSummary:", ["Summarise the text:", "Summary:"]),
        (f"Please summarise the article.\n\n{FACTS}", ["Please summarise the article."]),
        (f"{FACTS} Summarise the article.", ["Summarise the article."]),
        ("Who keeps the key?\n- Ann: key\n- Bob: map", ["Who keeps the key?"]),
        ("Translate to French:\nsea => mer\ncheese =>", ["Translate to French:", "cheese =>"]),
        ("Q: a? A: x.\nQ: b? A: y.\nQ: c?\nA:", ["Q: c?\nA:"]),
        ("Review: bad. Sentiment: sad.\nReview: good. Sentiment:", ["Sentiment:"]),
        ("User: hi. Assistant: hello.\nUser: a joke.\nAssistant:", ["User: a joke.\nAssistant:"]),
        ("安有钥匙。鲍勃有地图。谁有地图？回答：", ["谁有地图？回答："]),
        ("آن لديها المفتاح. من لديه الخريطة؟", ["من لديه الخريطة؟"]),
        (FACTS, []),
        ("Answer: Bob. Name: Ann.", []),
        ("", []),
    ],
)
def test_the_request_of_a_text(text, held):
    assert [text[start:end] for start, end in request_spans(text)] == held
    strings = divide(text, request_spans(text))
    assert "".join(string for string, _ in strings) == text
    assert [string.strip() for string, free in strings if not free] == held


@pytest.mark.parametrize(
    ("text", "features", "granularity"),
    [
        (TEXT, ("Ann keeps the key.", "Bob keeps the map."), "sentences"),
        ("Ann keeps it. Who keeps it?", ("Ann", "keeps", "it", "."), "words"),
        ("The capital of France is", ("The", "capital", "of", "France", "is"), "words"),
        ("Who? Why?", ("Who", "?", "Why", "?"), "words"),
        ("Ann won. Bob lost.", ("Ann", "won", ".", "Bob", "lost", "."), "words"),
    ],
)
def test_default_features(text, features, granularity):
    input = prepared(Prompt(text))
    assert (input.features, input.granularity) == (features, granularity)


def test_long_prompts_are_explained_by_passages():
    input = prepared(Prompt("Ann keeps the old key. " * 250 + "Who keeps it?"))
    assert input.granularity.startswith("passages")
    assert 50 <= input.n_features <= 200
    assert any("passages" in note for note in input.notes)


@pytest.mark.parametrize(
    ("fixed", "features"),
    [
        ("Bob keeps the map.", ("Ann keeps the key.", "Who keeps the map?", "Answer:")),
        (["Ann keeps the key.", "Answer:"], ("Bob keeps the map.", "Who keeps the map?")),
        ((0, 18), ("Bob keeps the map.", "Who keeps the map?", "Answer:")),
        ([19, 38], ("Ann keeps the key.", "Who keeps the map?", "Answer:")),
    ],
)
def test_parts_are_fixed(fixed, features):
    assert prepared(Prompt(TEXT, fixed=fixed)).features == features


def test_nothing_is_fixed():
    input = prepared(Prompt(TEXT, fixed="none"))
    assert input.granularity == "words"
    assert input.features[-2:] == ("Answer", ":")
    assert not input.notes + input.remarks
    assert prepared(Prompt(TEXT, fixed="none"), "sentences").n_features == 4


def test_explicit_features_divide_what_is_not_fixed():
    words = ["Ann", "keeps", "the", "key", ".", "Bob", "keeps", "the", "map", "."]
    assert list(prepared(Prompt(TEXT), "words").features) == words
    assert prepared(Prompt(TEXT), "paragraphs").features == (FACTS,)


def test_notes_tell_what_is_fixed():
    (note,) = prepared(Prompt(TEXT)).remarks
    assert "Who keeps the map? Answer:" in note
    assert "fixed='none'" in note
    (note,) = prepared(Prompt(f"{FACTS} {'Who or what ' * 40} keeps it?")).remarks
    assert len(note) < 160


def test_custom_spans_count_the_characters_of_the_prompt():
    input = prepared(Prompt(TEXT), [(0, 3), (19, 38)])
    assert input.features == ("Ann", "Bob keeps the map.")
    again = prepared(Prompt(TEXT), input.features_argument)
    assert again.fingerprint == input.fingerprint
    for span in [(38, 41), (30, 45)]:
        with pytest.raises(InputError, match="fixed='none'"):
            prepared(Prompt(TEXT), [span])
    assert prepared(Prompt(TEXT, fixed="none"), [(38, 41)]).features == ("Who",)
    with pytest.raises(InputError, match="does not lie in the text"):
        prepared(Prompt(TEXT), [(0, 1000)])


def test_annotations_count_the_characters_of_the_prompt():
    input = prepared(Prompt(TEXT))
    assert mark_features([(20, 25)], input).tolist() == [False, True]
    assert mark_features([(5, 60)], input).tolist() == [True, True]
    with pytest.raises(InputError, match="No feature"):
        mark_features([(40, 44)], input)


def test_removed_sentences_leave_one_space_before_the_question():
    input = prepared(Prompt(TEXT))
    rows = removals.make("slice-out")(input, np.array([[1, 0], [0, 1], [0, 0], [1, 1]], dtype=bool), 0)
    assert ["".join(row.segments) for row in rows] == [
        "Ann keeps the key. Who keeps the map? Answer:",
        "Bob keeps the map. Who keeps the map? Answer:",
        " Who keeps the map? Answer:",
        TEXT,
    ]


def test_system_messages_and_the_question_of_a_chat_are_fixed():
    messages = [
        message("system", "Be brief."),
        message("user", "Ann won."),
        message("assistant", "Good. Indeed."),
        message("user", "Bob lost. Who won?"),
    ]
    input = prepared(Prompt(messages=messages))
    assert input.features == ("Ann won.", "Good.", "Indeed.", "Bob lost.")
    assert input.text.held_texts == ["Be brief.", "Who won?"]
    assert prepared(Prompt(messages=messages), "messages").features == (
        "Ann won.",
        "Good. Indeed.",
        "Bob lost.",
    )
    assert prepared(Prompt(messages=messages, fixed="Good."), "messages").features == (
        "Be brief.",
        "Ann won.",
        "Indeed.",
        "Bob lost. Who won?",
    )


@pytest.mark.parametrize(
    ("messages", "features"),
    [
        ([message("user", "Who won?")], ("Who", "won", "?")),
        ([message("system", "Be brief."), message("user", "Who won?")], ("Who", "won", "?")),
        ([message("system", "Ann won. Bob lost."), message("user", "Who won?")], ("Ann won.", "Bob lost.")),
        ([message("user", "Ann won."), message("user", "I see")], ("Ann", "won", ".")),
        ([message("user", "Who won?"), message("tool", "Ann won. Bob lost.")], ("Ann won.", "Bob lost.")),
        ([message("system", "Be brief.")], ("Be", "brief", ".")),
    ],
)
def test_something_of_a_chat_remains(messages, features):
    assert prepared(Prompt(messages=messages)).features == features


def test_sources_are_sent_in_a_chat_message():
    prompt = Prompt("Who won?", sources=["Ann won.", "Bob lost."])
    input = prepared(prompt)
    assert input.features == ("Ann won.", "Bob lost.")
    assert "".join(input.text.segments) == "<user>Ann won.\n\nBob lost.\n\nWho won?<assistant>"
    assert not input.text.adds_special
    assert not input.notes + input.remarks
    for plain in (prompt.render(), Prompt("Who won?", sources=prompt.sources, chat=False).render(chat)):
        assert "".join(plain.segments) == "Ann won.\n\nBob lost.\n\nWho won?"
        assert plain.adds_special


def test_texts_and_slots_are_sent_in_a_chat_message_on_request():
    assert "".join(Prompt(TEXT).render(chat).segments) == TEXT
    input = prepared(Prompt(TEXT, chat=True))
    assert input.features == ("Ann keeps the key.", "Bob keeps the map.")
    assert "".join(input.text.segments) == f"<user>{TEXT}<assistant>"
    slots = Prompt("{a} won.", slots={"a": "Ann"}, alternatives={"a": ["Bob"]}, chat=True).render(chat)
    assert slots.segments == ("<user>", "Ann", " won.", "<assistant>")
    assert slots.alternatives == (("Bob",),)


def test_templates_that_strip_contents():
    def stripping(messages):
        return chat([message(each["role"], each["content"].strip()) for each in messages])

    rendered = Prompt(" Who? ", sources=[" Ann won."], chat=True).render(stripping)
    assert "".join(rendered.segments) == "<user>Ann won.\n\n Who?<assistant>"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"text": TEXT, "fixed": "Cleo"}, "part of the prompt"),
        ({"text": TEXT, "fixed": (0, 1000)}, "does not lie"),
        ({"text": TEXT, "fixed": TEXT}, "holds the whole prompt"),
        ({"text": TEXT, "fixed": ""}, "`fixed` is empty"),
        ({"text": TEXT, "fixed": []}, "at least one part"),
        ({"text": TEXT, "fixed": 3}, "`fixed` must be a list"),
        ({"text": TEXT, "fixed": [3, "a"]}, "`fixed` must be text"),
        ({"text": "Who?", "sources": ["Ann."], "fixed": (0, 3)}, "requires a text"),
        ({"text": "{a} won.", "slots": {"a": "Ann"}, "fixed": "won"}, "does not apply to `slots`"),
        ({"messages": [{"role": "user", "content": "Who?"}], "chat": False}, "`chat` must be"),
    ],
)
def test_what_cannot_be_fixed(fields, message):
    with pytest.raises(InputError, match=message):
        Prompt(**fields).render(chat)


def test_a_chat_needs_a_template():
    with pytest.raises(InputError, match="chat template"):
        Prompt("Who?", chat=True).render()


@pytest.mark.parametrize("fixed", [None, "none", "Bob keeps the map.", ["Ann", "Answer:"]])
@pytest.mark.parametrize("is_chat", [None, True])
def test_a_form_shows_what_is_fixed(fixed, is_chat):
    modality, prompt = modality_named("prompt"), Prompt(TEXT, answer=" Bob", fixed=fixed, chat=is_chat)
    input = prepared(prompt)
    fields = modality.to_fields(input)
    assert (fields["fixed"] is None) == (fixed is None)
    if is_chat is None:
        again = prepared(modality.from_fields(fields, InputLimits()))
        np.testing.assert_array_equal(again.spans, input.spans)
        assert again.text == input.text


def test_forms_of_chats_hold_the_question():
    modality = modality_named("prompt")
    for prompt in (
        Prompt(TEXT, answer="Bob", chat=True),
        Prompt("Who?", sources=["Ann.", "Bob."], answer="x"),
    ):
        input = prepared(prompt)
        assert prepared(modality.from_fields(modality.to_fields(input), InputLimits())).text == input.text
