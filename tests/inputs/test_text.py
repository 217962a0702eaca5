"""Texts are cut into features that cover what they say, and nothing else."""

import pytest
from hypothesis import given as for_all
from hypothesis import settings
from hypothesis import strategies as st

import pertinent
from pertinent.errors import InputError, SettingError
from pertinent.inputs.base import Truncation
from pertinent.inputs.prompt import Prompt
from pertinent.inputs.segmentation import cut
from pertinent.inputs.text import Text
from tests import tiny


def names(text, granularity="words"):
    text = Text.from_input(text)
    return [text.segments[i][a:b] for i, a, b in cut(text, granularity).tolist()]


def test_words():
    assert names("A slow, don't-miss start; wonderful!!") == [
        *("A", "slow", ",", "don't-miss", "start", ";", "wonderful", "!!")
    ]
    assert names("naïve café 你好 हिन्दी ok") == ["naïve", "café", "你", "好", "हिन्दी", "ok"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("3.14, 1,000.50 or v1.2.", ["3.14", ",", "1,000.50", "or", "v1.2", "."]),
        ("a.b@c.org, (https://x.y/z?q=1).", ["a.b@c.org", ",", "(", "https://x.y/z?q=1", ")."]),
        ("见https://x.y/z。ABC公司", ["见", "https://x.y/z", "。", "ABC", "公", "司"]),
        ("テスト 東京 𠀀𠀁", ["テ", "ス", "ト", "東", "京", "𠀀", "𠀁"]),
        ("كِتَاب ខ្មែរ ok", ["كِتَاب", "ខ្មែ", "រ", "ok"]),
        ("a 👍🏽❤️ b 👨‍👩‍👧!", ["a", "👍🏽❤️", "b", "👨‍👩‍👧!"]),
    ],
)  # fmt: skip
def test_words_of_many_kinds(text, words):
    assert names(text) == words


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("It rains. Does it?  Yes!\nNo dot here", ["It rains.", "Does it?", "Yes!", "No dot here"]),
        ("It costs 3.14 euros. See x.org.", ["It costs 3.14 euros.", "See x.org."]),
        ("他说：“好！”然后走了。真的？是", ["他说：“好！”", "然后走了。", "真的？", "是"]),
        ("यह अच्छा है।वह भी॥ हाँ", ["यह अच्छा है।", "वह भी॥", "हाँ"]),
        ("یہ اچھا ہے۔ کیا؟ ہاں", ["یہ اچھا ہے۔", "کیا؟", "ہاں"]),
    ],
)
def test_sentences(text, sentences):
    assert names(text, "sentences") == sentences


def test_lines_and_paragraphs():
    text = "One. Two.\n  Three  \n\n\nFour\n"
    assert names(text, "lines") == ["One. Two.", "Three", "Four"]
    assert names(text, "paragraphs") == ["One. Two.\n  Three  ", "Four"]
    prompt = Prompt("{a} and more", slots={"a": "x\ny"}).render()
    assert prompt.spans("lines").tolist() == [[0, 0, 1], [0, 2, 3]]


@settings(max_examples=200, deadline=None)
@for_all(st.text(min_size=1, max_size=60), st.sampled_from(["words", "sentences", "lines", "paragraphs"]))
def test_every_visible_character_belongs_to_one_feature(text, granularity):
    if not text.strip():
        return
    covered = [0] * len(text)
    for _, a, b in cut(Text(text), granularity).tolist():
        for place in range(a, b):
            covered[place] += 1
    assert max(covered) <= 1
    for character, times in zip(text, covered, strict=True):
        assert times == 1 or character.isspace()


def test_forms_of_text():
    assert Text.from_input(("a", "b")) == Text("a", "b")
    assert Text.from_input({"query": "q", "document": "d"}).fixed == "first"
    assert Text.from_input({"premise": "p", "hypothesis": "h"}) == Text("p", "h")
    assert names({"query": "who ?", "document": "it is me"}) == ["it", "is", "me"]


@pytest.mark.parametrize("raw", ["", "  \n\t", ("a", " "), {"query": "q", "document": ""}])
def test_blank_text(raw):
    with pytest.raises(InputError, match="empty or blank"):
        Text.from_input(raw)


@pytest.mark.parametrize("raw", [3, None, ["a", 1], {"titel": "x"}, b"bytes"])
def test_not_a_text(raw):
    with pytest.raises(InputError, match="must"):
        Text.from_input(raw)


@pytest.fixture(scope="module")
def model():
    return pertinent.wrap(tiny.pair("bert"))


def test_tokens_know_their_words(model):
    given = model.prepare("w1 w2, w3.")
    assert given.features == ("w1", "w2", ",", "w3", ".")
    assert given.tokens.feature.tolist() == [-1, 0, 1, 2, 3, 4, -1]
    assert model.prepare("w1 w2, w3.", "sentences").tokens.feature.tolist() == [-1, 0, 0, 0, 0, 0, -1]


def test_special_tokens_and_the_query_are_fixed(model):
    given = model.prepare({"query": "w1 w2", "document": "w3 w4"})
    assert given.tokens.feature.tolist() == [-1, -1, -1, -1, 0, 1, -1]
    assert given.tokens.types.tolist() == [0, 0, 0, 0, 1, 1, 1]
    both = model.prepare(("w1 w2", "w3 w4"))
    assert both.tokens.feature.tolist() == [-1, 0, 1, -1, 2, 3, -1]
    assert both.spans.tolist() == [[0, 0, 2], [0, 3, 5], [1, 0, 2], [1, 3, 5]]


def test_truncation_is_said(model):
    given = model.prepare(tiny.text(400))
    assert len(given.tokens.ids) == 200
    assert given.truncation == Truncation(198, 400, 200, "words")
    assert model.prepare(tiny.text(400), "tokens").truncation == Truncation(198, 400, 200, "tokens")
    explained = pertinent.explain(model, tiny.text(400), method="leave-one-out")
    assert explained.notes == ("truncated to 200 tokens: 198 of 400 words are seen",)
    assert model.prepare(tiny.text(5)).truncation is None


def test_truncation_is_logged_once_for_each_model(caplog):
    for family in ("bert", "roberta"):
        caplog.clear()
        model = pertinent.wrap(tiny.pair(family))
        with caplog.at_level("DEBUG", logger="pertinent"):
            explained = pertinent.explain(
                model, [tiny.text(400, seed) for seed in range(5)], method="leave-one-out"
            )
        note = explained[0].notes[0]
        way = "; long_texts='windows' reads the whole text"
        said = [(r.levelname, r.getMessage()) for r in caplog.records if "truncated" in r.getMessage()]
        assert said == [
            ("WARNING", f"A text was {note}{way}. More texts may be affected: see `Explanation.notes`."),
            *[("DEBUG", f"A text was {note}.")] * 4,
        ]
        assert all(e.notes == (note,) for e in explained)


def test_only_unknown_tokens(model):
    with pytest.raises(InputError, match="unknown to the tokenizer"):
        model.prepare("xyzzy plugh")


def test_unknown_granularity(model):
    with pytest.raises(SettingError, match="Did you mean 'words'"):
        model.prepare("w1", "word")


def test_a_single_text_that_is_fixed_is_refused():
    with pytest.raises(InputError, match="`fixed`"):
        Text.from_input(Text("good film", fixed="first"))
    assert Text.from_input(Text("good film", fixed="second")).removable(0)
