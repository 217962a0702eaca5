"""Answers that are written anew when parts of a prompt are removed, and valued by a function."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

import pertinent
from pertinent import Prompt
from pertinent.errors import InputError, ModelError, PertinentError, SettingError
from pertinent.models.answer_values import exact_match, overlap
from tests import tiny_lm

SOURCES = ["Ann keeps the key.", "Bob keeps the map.", "Cleo keeps the lamp."]
QUESTION = Prompt("Who keeps the map?", sources=SOURCES, chat=False)


def greedy(model, tokenizer, text, n):
    ids = tokenizer(text)["input_ids"]
    start = len(ids)
    with torch.no_grad():
        for _ in range(n):
            ids.append(int(model(input_ids=torch.tensor([ids])).logits[0, -1].argmax()))
            if ids[-1] == tokenizer.eos_token_id:
                break
    return tokenizer.decode(ids, skip_special_tokens=True).removeprefix(
        tokenizer.decode(ids[:start], skip_special_tokens=True)
    )


@pytest.fixture(scope="module", params=["llama", "gpt2"])
def pair(request):
    return tiny_lm.model(request.param), tiny_lm.tokenizer()


def test_new_answers_are_those_of_the_model(pair):
    seen = []

    def value(answer, new):
        seen.append((answer, new))
        return float(len(new))

    model = pertinent.wrap(pair, value=value, max_new_tokens=6)
    e = pertinent.explain(model, QUESTION, "leave-one-out")
    texts = ["\n\n".join(SOURCES)] + [
        "\n\n".join("" if own == left else own for own in SOURCES) for left in SOURCES
    ]
    wanted = [greedy(*pair, f"{text}\n\nWho keeps the map?", 6) for text in texts]
    assert e.details["answer"] == wanted[0]
    assert e.details["generation"] == "greedy, at most 6 tokens"
    lengths = np.array([len(own) for own in wanted], dtype=float)
    np.testing.assert_allclose(e.prediction.values, lengths[:1])
    np.testing.assert_allclose(e.scores, lengths[0] - lengths[1:])
    assert {answer for answer, _ in seen} == {wanted[0]}


def test_all_methods_that_remove_can_be_used_and_measured(pair):
    model = pertinent.wrap(pair, value="overlap", max_new_tokens=4)
    table = pertinent.compare(
        model, [QUESTION, "Ann keeps the key."], ["shapley", "kernel-shap"], budget=16, progress=False
    )
    assert not table.failures
    assert pertinent.explain(model, QUESTION, "leave-one-out").prediction.values.tolist() == [1.0]


def test_chats_slots_and_models_with_a_decoder():
    chat = pertinent.wrap((tiny_lm.model("llama"), tiny_lm.tokenizer()), value="overlap", max_new_tokens=3)
    messages = [{"role": "user", "content": "Ann keeps the key. Who keeps the key?"}]
    e = pertinent.explain(
        chat, Prompt(messages=messages, fixed="none"), "leave-one-out", features="sentences"
    )
    assert len(e.features) == 2
    template = Prompt("{who} keeps it.", slots={"who": "Ann"}, alternatives={"who": ["Bob"]}, answer=" x")
    assert pertinent.explain(chat, template, "leave-one-out").removal == "alternatives"
    pair = tiny_lm.model("t5"), tiny_lm.ending_tokenizer()
    model = pertinent.wrap(pair, value=lambda _, new: float(len(new)))
    assert np.isfinite(
        pertinent.explain(model, Prompt("Ann keeps it.", answer="x"), "leave-one-out").scores
    ).all()


def test_a_value_that_cannot_be(pair):
    with pytest.raises(PertinentError, match="overlap"):
        pertinent.wrap(pair, value="overlaps")
    with pytest.raises(PertinentError, match="`value` must be"):
        pertinent.wrap(pair, value=3)
    for value in (lambda *_: [1.0, 2.0], lambda *_: float("nan"), lambda *_: "much"):
        with pytest.raises(ModelError, match="finite number for each answer"):
            pertinent.explain(pertinent.wrap(pair, value=value), QUESTION, "leave-one-out")
    for options in ({"value": "embedding"}, {"value": "overlap", "encoder": len}):
        with pytest.raises(SettingError, match="`encoder`"):
            pertinent.wrap(pair, **options)
    ragged = pertinent.wrap(pair, value="embedding", encoder=lambda texts: np.zeros(3))
    with pytest.raises(ModelError, match="`encoder` must return one vector"):
        pertinent.explain(ragged, QUESTION, "leave-one-out")
    model = pertinent.wrap(pair, value="overlap")
    with pytest.raises(InputError, match="applies only to likelihoods"):
        pertinent.explain(model, Prompt("Ann", answer=" a", span="a"), "leave-one-out")
    with pytest.raises(InputError, match="choose features='words'"):
        pertinent.explain(model, QUESTION, "leave-one-out", features="tokens")


def test_overlap_is_the_f1_of_words():
    news = ["the old map", "the map", "a lamp", ""]
    assert [overlap("The map", new) for new in news] == [0.8, 1.0, 0.0, 0.0]
    assert overlap("", "") == 1.0


def test_exact_match_ignores_case_space_and_a_final_period():
    news = ["the map.", " The  Map", "the maps", "the map!", ""]
    assert [exact_match("The map", new) for new in news] == [1.0, 1.0, 0.0, 0.0, 0.0]


def test_embeddings_are_compared_by_their_cosine(pair):
    def encode(texts):
        return np.array([[len(text), text.count("e")] for text in texts])

    model = pertinent.wrap(pair, value="embedding", encoder=SimpleNamespace(encode=encode), max_new_tokens=6)
    e = pertinent.explain(model, QUESTION, "leave-one-out")
    assert e.prediction.values == pytest.approx([1.0])
    assert e.details["value"] == "embedding"
    texts = ["\n\n".join("" if own == left else own for own in SOURCES) for left in SOURCES]
    news = [greedy(*pair, f"{text}\n\nWho keeps the map?", 6) for text in texts]
    vectors = encode([e.details["answer"], *news]).astype(float)
    cosines = vectors @ vectors[0] / np.linalg.norm(vectors, axis=1) / np.linalg.norm(vectors[0])
    np.testing.assert_allclose(e.scores, 1 - cosines[1:], atol=1e-12)


def test_a_report_shows_the_answer(pair, tmp_path):
    model = pertinent.wrap(pair, value="overlap", max_new_tokens=4)
    e = pertinent.explain(model, Prompt("Ann keeps the key.", answer="the key is Ann's"), "leave-one-out")
    page = e.to_html()
    assert "the key is Ann&#39;s" in page
    assert "Choose a token" not in page
