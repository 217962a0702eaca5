"""Purity and brevity with a few words in place of NLTK's."""

from types import SimpleNamespace

import numpy as np
import pytest

import pertinent
from pertinent.errors import FileError, MissingExtra, SettingError
from pertinent.metrics import english_words
from pertinent.metrics.english_words import Brevity, Purity, Senses, clusters
from pertinent.results.explanation import Explanation
from pertinent.testing.games import answer

SENSES = {
    "movie": ({"movie.n.01"}, set()),
    "movies": ({"movie.n.01"}, set()),
    "film": ({"movie.n.01", "film.n.02"}, set()),
    "layer": ({"film.n.02"}, set()),
    "good": ({"good.a.01"}, {"great.s.01"}),
    "great": ({"great.s.01"}, {"good.a.01"}),
    "superb": ({"superb.s.01"}, {"good.a.01"}),
}
STOP_WORDS, SENSES_OF = english_words.stop_words.__wrapped__, english_words.senses.__wrapped__


@pytest.fixture(autouse=True)
def _few_words(monkeypatch):
    monkeypatch.setattr(english_words, "stop_words", lambda: frozenset({"a", "the", "don't", "is"}))
    none = (set(), set())
    monkeypatch.setattr(english_words, "senses", lambda word: Senses(*map(frozenset, SENSES.get(word, none))))


def explanation_of(text, scores=None, features="words", kind=None):
    model = pertinent.wrap(lambda texts: [[0.3, 0.7]] * len(texts), kind=kind)
    e = pertinent.explain(model, text, method="leave-one-out", features=features)
    assert isinstance(e, Explanation)
    if scores is None:
        scores = -np.arange(len(e.features))
    object.__setattr__(e, "scores", np.asarray(scores, dtype=float))
    return e


def measure(metric, explanation):
    return answer(metric.measure(explanation), None)


def test_purity_by_hand():
    """Check "The", "film", "is", "good", "!!", three of which count."""
    e = explanation_of("The film is good!!")
    assert e.features == ("The", "film", "is", "good", "!!")
    assert measure(Purity(), e) == {None: pytest.approx(3 / 5)}
    assert measure(Purity(k=2), e) == {None: pytest.approx(1 / 2)}
    assert measure(Purity(sparsities=(0.2, 0.6)), e) == {0.2: 1.0, 0.6: pytest.approx(2 / 3)}
    best = explanation_of("The film is good!!", [0, 3, 0, 4, 0])
    assert measure(Purity(k=2), best) == {None: 0.0}


def test_each_occurrence_counts():
    assert measure(Purity(), explanation_of("the the the film")) == {None: pytest.approx(3 / 4)}


def test_purity_as_the_authors_code_has_it():
    """Check the count of distinct stop words over K, even for fewer words."""
    e = explanation_of("the the the film")
    assert measure(Purity(distinct=True), e) == {None: pytest.approx(1 / 10)}
    assert measure(Purity(k=2, distinct=True), e) == {None: pytest.approx(1 / 2)}
    assert measure(Purity(sparsities=(1.0,), distinct=True), e) == {1.0: pytest.approx(1 / 4)}


@pytest.mark.parametrize(
    ("text", "share"), [("the", 1.0), ("film", 0.0), ("Don’t", 1.0), ("…", 1.0), ("7", 0.0)]
)
def test_purity_of_one_word(text, share):
    assert measure(Purity(), explanation_of(text)) == {None: share}


def test_clusters_by_hand():
    assert clusters(["film", "good", "movies", "film", "great", "nothing"]) == [
        ["film", "movies"],
        ["good", "great"],
        ["nothing"],
    ]
    assert clusters(["layer", "film", "movie"]) == [["layer", "film"], ["movie"]]
    assert clusters(["film", "layer", "movie"]) == [["film", "layer", "movie"]]
    assert clusters(["great", "superb"]) == [["great"], ["superb"]]
    assert clusters(["superb", "good"]) == [["superb", "good"]]
    assert clusters(["good", "superb"]) == [["good", "superb"]]
    assert clusters([]) == []


def test_brevity_by_hand():
    e = explanation_of("Good film, great movie, good")
    assert measure(Brevity(), e) == {None: 3.0}
    assert measure(Brevity(k=2), e) == {None: 2.0}
    assert measure(Brevity(), explanation_of("so so so")) == {None: 1.0}
    assert measure(Brevity(), explanation_of("film")) == {None: 1.0}


@pytest.mark.parametrize("metric", [Purity(), Brevity()])
def test_only_words_are_words(metric):
    with pytest.raises(SettingError, match="counts words, but the features are sentences"):
        measure(metric, explanation_of("One film. Two films.", features="sentences"))
    with pytest.raises(SettingError, match="counts words, but the features are columns"):
        measure(metric, explanation_of([1.0, 2.0], features=None, kind="table"))


# -- NLTK ---------------------------------------------------------------------------------------


class Missing:
    def ensure_loaded(self):
        raise LookupError("\n*****\nResource not found.\n*****")


def test_missing_data_fail_their_metric_alone(monkeypatch):
    monkeypatch.setattr(
        english_words, "optional", lambda name: SimpleNamespace(stopwords=Missing(), wordnet=Missing())
    )
    monkeypatch.setattr(english_words, "stop_words", STOP_WORDS)
    monkeypatch.setattr(english_words, "senses", SENSES_OF)
    model = pertinent.wrap(lambda texts: [[0.9, 0.1] if "bad" in t else [0.2, 0.8] for t in texts])
    names = ["purity", "faithfulness", "brevity"]
    found = pertinent.compare(model, "a bad film", ["leave-one-out"], names)
    assert found.mean("leave-one-out", "faithfulness") == 1.0
    assert [type(f.error) for f in found.failures] == [FileError, FileError]
    assert "purity: The NLTK data 'stopwords' is missing" in str(found.failures[0])
    assert "python -m nltk.downloader wordnet" in found.failures[1].reason
    assert "NLTK_DATA" in found.failures[1].reason


def test_missing_nltk_names_the_extra(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "nltk", None)
    monkeypatch.delitem(__import__("sys").modules, "nltk.corpus", raising=False)
    with pytest.raises(MissingExtra, match=r"pertinent\[nltk\]"):
        STOP_WORDS()


def test_senses_are_those_of_the_reader(monkeypatch):
    """Check a reader like NLTK's, with the names of senses and the similar ones."""
    great = SimpleNamespace(name=lambda: "great.s.01", similar_tos=list)
    good = SimpleNamespace(name=lambda: "good.a.01", similar_tos=lambda: [great])
    reader = SimpleNamespace(
        ensure_loaded=lambda: None, synsets={"good": [good]}.get, words=lambda language: [language]
    )
    monkeypatch.setattr(
        english_words, "optional", lambda name: SimpleNamespace(stopwords=reader, wordnet=reader)
    )
    assert SENSES_OF("good") == ({"good.a.01"}, {"great.s.01"})
    assert STOP_WORDS() == {"english"}
