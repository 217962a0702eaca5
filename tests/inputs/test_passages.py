"""Long texts: passages that a budget can carry, and warnings where it cannot."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

import pertinent
from pertinent.errors import SettingError
from pertinent.inputs.segmentation import PASSAGE, cut
from pertinent.inputs.text import Text
from tests import tiny


def count(texts):
    """The share of "good" among the words."""
    shares = np.array([[text.split().count("good") / 2000] for text in texts])
    return np.concatenate([1 - shares, shares], axis=1)


MODEL = pertinent.wrap(count, kind="text")


def passages(text, features):
    return [text[a:b] for _, a, b in cut(Text.from_input(text), features).tolist()]


def test_sentences_are_put_together_and_long_ones_cut():
    text = "One two. Three. Four five six seven eight nine ten. Last."
    assert passages(text, "passages:5") == [
        "One two. Three.",
        "Four five six seven",
        "eight nine ten.",
        "Last.",
    ]
    assert passages(text, "passages:100") == [text]


def test_passages_hold_every_word_once_and_not_too_many():
    rng = np.random.default_rng(0)
    text = "".join(f"w{i}{rng.choice([' ', ', ', '. '])}" for i in range(700))
    found = passages(text, "passages")
    words = [passages(own, "words") for own in found]
    assert [word for own in words for word in own] == passages(text, "words")
    assert max(map(len, words)) <= PASSAGE
    assert all(len(a) + len(b) > PASSAGE / 2 for a, b in pairwise(words))


def test_the_texts_of_a_pair_have_their_own_passages():
    spans = cut(Text.from_input(("a b. c d.", "e f. g.")), "passages:10")
    assert spans.tolist() == [[0, 0, 9], [1, 0, 7]]
    fixed = cut(Text.from_input({"query": "a b?", "document": "e f. g."}), "passages:10")
    assert fixed[:, 0].tolist() == [1]


@pytest.mark.parametrize("features", ["passages:0", "passages:x", "passages:-3", "words:5"])
def test_bad_sizes_are_said(features):
    with pytest.raises(SettingError, match="`features` must be"):
        pertinent.explain(MODEL, "some words", features=features)


def test_equal_parts_of_a_long_text_have_equal_scores():
    """One permutation over 1,500 words gave scores from 0 to 0.45 where all are equal."""
    e = pertinent.explain(MODEL, "good " * 1500)
    assert e.input.granularity == "passages:20"
    assert len(e.features) == 75
    np.testing.assert_allclose(e.scores, e.scores.mean(), rtol=1e-6)
    assert e.warnings == ()
    assert "1,500 words are explained by passages" in e.input.notes[0]


def test_a_budget_that_tells_nothing_apart_is_said():
    e = pertinent.explain(MODEL, "good " * 1500, features="words")
    said = "1,501 evaluations can hardly distinguish 1,500 features: use features='coarse-to-fine'"
    assert said in e.warnings[0]
    assert "1,501 evaluations can hardly" in e.to_html()
    short = pertinent.explain(MODEL, "good film " * 30)
    assert short.warnings == ()
    assert short.input.notes == ()


def test_very_long_texts_have_about_200_passages():
    e = pertinent.explain(MODEL, "it is so. " * 2500, budget=400)  # sentences of 4 words and signs
    assert 150 < len(e.features) <= 400


def test_a_transformer_too(monkeypatch):
    monkeypatch.setattr("pertinent.inputs.segmentation.MOST_WORDS", 10)
    model = pertinent.wrap(tiny.pair("bert"))
    e = pertinent.explain(model, "a good film. " * 4, budget=60)
    assert e.input.granularity == "passages:20"
    assert len(e.features) == 1
    words = pertinent.explain(model, "a good film. " * 4, budget=60, features="words")
    assert len(words.features) == 16


def test_a_fit_cuts_all_texts_alike(monkeypatch):
    monkeypatch.setattr("pertinent.inputs.segmentation.MOST_WORDS", 10)
    texts = ["good bad " * n for n in (2, 3, 4, 9, 3, 2)]
    fitted = pertinent.fit(MODEL, texts, "aim", epochs=1, progress=False)
    assert fitted.traits.fitted_features == "words"
    assert len(pertinent.explain(MODEL, texts[3], fitted).features) == 18


def test_thai_is_split_into_letters_or_by_a_library_into_words(monkeypatch):
    text = "ฉันรักแมว and dogs"
    letters = ["ฉั", "น", "รั", "ก", "แ", "ม", "ว", "and", "dogs"]
    assert passages(text, "words") == letters
    words = SimpleNamespace(word_tokenize=lambda run: ["ฉัน", "รัก", "แมว"] if run == "ฉันรักแมว" else [run])
    monkeypatch.setattr("pertinent.inputs.segmentation.find_spec", lambda name: name == "pythainlp")
    monkeypatch.setattr("pertinent.inputs.segmentation.optional", lambda name: words)
    assert passages(text, "words") == ["ฉัน", "รัก", "แมว", "and", "dogs"]
    words.word_tokenize = lambda run: ["lost"]  # characters are never dropped
    assert passages(text, "words") == letters


def test_passages_of_chinese_end_with_sentences():
    sentence = "这部电影的开头有一点慢，但是演员的表演非常精彩，结尾也很好。"
    text = "".join(f"{i}、{sentence}" for i in range(60))
    assert all(passage.endswith("。") for passage in passages(text, "passages:20"))
    levels = MODEL.prepare(text, "coarse-to-fine").levels
    assert [int(level.max()) + 1 for level in levels] == [30, 60, len(passages(text, "words"))]
