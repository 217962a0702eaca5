"""Templates: their slots are features, which may be replaced by alternatives."""

import numpy as np
import pytest

import pertinent
from pertinent import Prompt
from pertinent.errors import InputError, SettingError
from tests import tiny_lm
from tests.models.test_language_model import expected, values, wrapped

TEMPLATE = "{name} keeps the {thing}. Who keeps it?"
SLOTS = {"name": "Ann", "thing": "old red coat"}
OTHERS = {"name": ["Bob", "Cleo", "Dan"], "thing": ["key", "map", "deep snow"]}


def prompt(**options):
    return Prompt(TEMPLATE, slots=SLOTS, **{"answer": " Ann", "alternatives": OTHERS} | options)


def by_hand(model, text, *answers):
    ids = [model.tokenizer(own, add_special_tokens=False)["input_ids"] for own in answers]
    return np.array(expected(model.model, model.tokenizer(text)["input_ids"], ids))


def test_slots_are_features_and_the_text_around_them_is_fixed():
    model = wrapped("llama")
    e = pertinent.explain(model, prompt(alternatives={}), "leave-one-out")
    assert e.features == ("Ann", "old red coat")
    assert e.removal == "slice-out"
    fixed = model.tokenizer.decode(e.input.tokens.ids[e.input.tokens.feature < 0])
    assert fixed == "<s> keeps the. Who keeps it? Ann"


@pytest.mark.parametrize("rather_than", [None, " Bob keeps it"])
def test_alternatives_stand_in_place_of_slots(rather_than):
    model = wrapped("llama")
    e = pertinent.explain(
        model, prompt(rather_than=rather_than), "leave-one-out", removal="alternatives:samples=3"
    )
    answers = [" Ann", *filter(None, [rather_than])]
    own = by_hand(model, TEMPLATE.format(**SLOTS), *answers)
    np.testing.assert_allclose(e.prediction.values, own, atol=1e-4)
    for number, name in enumerate(SLOTS):
        texts = [TEMPLATE.format(**SLOTS | {name: other}) for other in OTHERS[name]]
        mean = np.mean([by_hand(model, text, *answers) for text in texts], axis=0)
        np.testing.assert_allclose(e.class_scores[:, number], own - mean, atol=1e-4)


def test_one_draw_is_one_of_the_alternatives_of_each_slot():
    model = wrapped("gpt2")
    input = model.prepare(prompt())
    (found,) = values(model, [input], [np.zeros((1, 2), dtype=bool)], "alternatives")
    possible = [
        by_hand(model, TEMPLATE.format(name=name, thing=thing), " Ann")[0]
        for name in OTHERS["name"]
        for thing in OTHERS["thing"]
    ]
    assert np.abs(np.array(possible) - found[0, 0]).min() < 1e-4


def test_alternatives_are_the_default_where_there_are_some(tmp_path):
    model = wrapped("llama")
    e = pertinent.explain(model, prompt(), "shapley", out=tmp_path / "e.parquet")
    assert e.removal == "alternatives"
    again = pertinent.read(tmp_path / "e.parquet")
    assert again[0].input.text.alternatives == tuple(map(tuple, OTHERS.values()))
    assert not pertinent.evaluate(model, again, metrics=["comprehensiveness"]).failures


def test_braces_are_plain_text_without_slots():
    model = wrapped("llama")
    e = pertinent.explain(model, Prompt("Ann {keeps} it", answer=" Bob"), "leave-one-out")
    assert "".join(e.features) == "Ann{keeps}it"


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (
            lambda: Prompt("{name} lives", slots={"city": "Rome"}),
            "slots of the text, .* name, got city",
        ),
        (lambda: Prompt("{a} {a}", slots={"a": "x"}), "which occur once each"),
        (lambda: Prompt("no slot", slots={"a": "x"}), "once each: none"),
        (lambda: Prompt("{a", slots={"a": "x"}), "matching braces"),
        (lambda: Prompt("{a!r}", slots={"a": "x"}), "has a format"),
        (lambda: Prompt("{a}", slots=["x"]), "`slots` must map"),
        (lambda: Prompt("{a}", slots={"a": " "}), "is empty or blank"),
        (lambda: Prompt("{a}", slots={"a": "x"}, alternatives={"b": ["y"]}), "all slots or none"),
        (lambda: Prompt("{a}", slots={"a": "x"}, alternatives={"a": "y"}), "must be a list of texts"),
        (lambda: Prompt("{a}", slots={"a": "x"}, alternatives={"a": []}), "must be a list of texts"),
        (lambda: Prompt("{a}", slots={"a": "x"}, sources=["s"]), "`slots` require `text`"),
    ],
)
def test_templates_that_cannot_be(make, said):
    with pytest.raises(InputError, match=said):
        make()


def test_alternatives_must_be_words_of_their_own():
    model = wrapped("llama")
    glued = Prompt(
        "A{thing} keeps it.", slots={"thing": " lamp"}, alternatives={"thing": ["nn"]}, answer=" Ann"
    )
    with pytest.raises(InputError, match="merges the alternative 'nn'"):
        pertinent.explain(model, glued, "leave-one-out")


def test_the_longest_alternative_must_fit():
    model = pertinent.wrap((tiny_lm.model("gpt2"), tiny_lm.tokenizer()), max_length=20)
    long = {"name": ["Bob"], "thing": ["key and the map and the lamp and the coat"]}
    with pytest.raises(InputError, match="the model reads at most 20"):
        pertinent.explain(model, prompt(alternatives=long), "leave-one-out")


def test_alternatives_need_slots():
    with pytest.raises(SettingError, match=r"alternatives.*features='slots'"):
        pertinent.explain(
            wrapped("gpt2"), Prompt("Who?", answer=" Ann"), "leave-one-out", removal="alternatives"
        )
