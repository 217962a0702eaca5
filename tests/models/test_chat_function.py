"""A function from messages to a text, explained by newly written answers."""

import random
import threading

import numpy as np
import pytest

import pertinent
from pertinent import Prompt
from pertinent.errors import InputError, ModelError, SettingError

MESSAGES = [
    {"role": "system", "content": "Ann keeps the key. Bob keeps the map."},
    {"role": "user", "content": "Who keeps the map?"},
]
PROMPT = Prompt(messages=MESSAGES)


def keeper(messages):
    """Answer with the last name before "keeps the map"."""
    text = " ".join(message["content"] for message in messages)
    return text.partition(" keeps the map")[0].split()[-1] if " keeps the map" in text else "nobody"


def explain(model, prompt=PROMPT, **options):
    return pertinent.explain(model, prompt, "leave-one-out", **{"features": "sentences", **options})


@pytest.mark.parametrize("value", ["overlap", "exact-match", lambda answer, new: float(answer == new)])
def test_the_sentence_that_the_answer_is_in(value):
    e = explain(pertinent.wrap(keeper, value=value))
    assert e.details["answer"] == "Bob"
    assert e.details["generation"] == "by keeper"
    scores = dict(zip(e.features, e.scores.tolist(), strict=True))
    assert scores["Bob keeps the map."] == 1.0
    assert scores["Ann keeps the key."] == 0.0


def test_texts_and_sources_are_one_message():
    seen = []
    model = pertinent.wrap(lambda messages: seen.append(messages) or "Bob", value="overlap")
    explain(model, Prompt("Who?", sources=["Ann has it.", "Bob has it."]), features=None)
    assert [{"role": "user", "content": "Ann has it.\n\nBob has it.\n\nWho?"}] in seen


def test_random_functions_have_standard_errors():
    draw = random.Random(0)

    def unsure(messages):
        return "Bob" if draw.random() < (0.9 if "map." in messages[0]["content"] else 0.3) else "Ann"

    prompt = Prompt(messages=MESSAGES, answer="Bob")
    e = explain(pertinent.wrap(unsure, value="exact-match", samples=60), prompt)
    index = e.features.index("Bob keeps the map.")
    assert abs(e.scores[index] - 0.6) < 4 * e.standard_errors[index]
    assert 0.03 < e.standard_errors[index] < 0.2
    assert not e.warnings
    noise = pertinent.wrap(lambda _: str(draw.random()), value=lambda _, new: float(new))
    assert any("random or drifts" in warning for warning in explain(noise, prompt).warnings)


def test_threads_only_on_request():
    names = set()

    def note(messages):
        names.add(threading.current_thread().name)
        return keeper(messages)

    serial = explain(pertinent.wrap(note, value="overlap"))
    assert len(names) == 1
    np.testing.assert_array_equal(
        explain(pertinent.wrap(note, value="overlap", in_flight=4)).scores, serial.scores
    )


def test_answers_before_an_error_are_kept():
    calls = []

    def flaky(messages):
        calls.append(messages)
        if len(calls) == 3:
            raise ConnectionError("the line is dead")
        return keeper(messages)

    model = pertinent.wrap(flaky, value="overlap")
    with pytest.raises(ModelError, match="chat function raised ConnectionError: the line is dead"):
        explain(model)
    explain(model)
    assert sum(each == calls[0] for each in calls) == 2  # once more by the check for random answers


def test_what_cannot_be():
    with pytest.raises(SettingError, match="Unknown chat function option 'classes'"):
        pertinent.wrap(keeper, value="overlap", classes=["a"])
    with pytest.raises(SettingError, match="Unknown value of new answers 'overlaps'"):
        pertinent.wrap(keeper, value="overlaps")
    with pytest.raises(ModelError, match="must return a text or a message, but returned int"):
        explain(pertinent.wrap(lambda _: 5, value="overlap"))
    with pytest.raises(InputError, match="answer to the prompt is empty"):
        explain(pertinent.wrap(lambda _: " ", value="overlap"))
