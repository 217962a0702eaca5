"""Neighbour stability: values computed by hand, and invalid arguments."""

import numpy as np
import pytest

import pertinent
from pertinent.diagnostics import neighbour_stability as api
from pertinent.diagnostics.neighbour_stability import neighbour_stability
from pertinent.errors import FileError, InputError, SettingError
from tests.stubs import sentiment

PLAIN = {"semantic": 0, "stop_words": ()}


def explained(texts, method="leave-one-out"):
    return pertinent.explain(sentiment, texts, method=method)


def test_stability_by_hand():
    """Compare the top two words {bad, a}, {bad, so} and {bad, luck}."""
    result = neighbour_stability(explained(["a bad film", "so bad", "bad luck"]), k=2, **PLAIN)
    assert result.better == {"iou-stability": "higher"}
    assert [row.value for row in result.rows] == [pytest.approx(1 / 3)] * 3
    assert result.mean("leave-one-out", "iou-stability") == pytest.approx(1 / 3)
    assert result.explanations[0].measures["iou-stability"] == {None: pytest.approx(1 / 3)}


def test_stop_words_and_punctuation_do_not_count():
    result = explained(["A bad film", "so bad !", "bad luck"])
    values = [row.value for row in neighbour_stability(result, k=2, semantic=0, stop_words=["a", "So"]).rows]
    assert values == [pytest.approx((1 + 0.5) / 2), pytest.approx((1 + 0.5) / 2), pytest.approx(0.5)]


def test_neighbours_have_the_same_prediction():
    result = neighbour_stability(explained(["bad a", "bad b", "fine a", "fine a b"]), k=1, lexical=1, **PLAIN)
    assert [e.index for e in result.explanations] == [0, 1, 2, 3]
    assert [row.value for row in result.rows] == [1.0, 1.0, 1.0, 1.0]
    alone = neighbour_stability(explained(["bad", "so bad", "fine"]), k=1, **PLAIN)
    assert [e.index for e in alone.explanations] == [0, 1]
    assert [f.index for f in alone.failures] == [2]
    assert "no other text" in alone.failures[0].reason


def test_neighbours_by_embedding():
    """Find the second text as the neighbour of the first by words, and the third by embedding."""
    result = explained(["bad w x y", "bad w x z", "bad q"])
    vectors = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.1]])
    seen = []

    def embed(texts):
        seen.append(texts)
        return vectors

    for given in (embed, vectors, vectors.tolist()):
        by_vectors = neighbour_stability(result, given, k=2, lexical=0, semantic=1, stop_words=())
        assert by_vectors.rows[0].value == pytest.approx(1 / 3)
    by_words = neighbour_stability(result, k=2, lexical=1, semantic=0, stop_words=())
    assert by_words.rows[0].value == 1.0
    assert seen == [["bad w x y", "bad w x z", "bad q"]]


def test_invalid_arguments(monkeypatch):
    result = explained(["bad", "so bad"])
    with pytest.raises(SettingError, match=r"need `embed`.*semantic=0"):
        neighbour_stability(result, stop_words=())
    with pytest.raises(SettingError, match=r"one vector of numbers for each of 2 texts, got .* \(2,\)"):
        neighbour_stability(result, lambda texts: [1.0, 2.0], stop_words=())
    with pytest.raises(SettingError, match="`lexical` must be at least 1 if `semantic` is 0"):
        neighbour_stability(result, lexical=0, **PLAIN)
    with pytest.raises(SettingError, match="`explanations` must be at least two"):
        neighbour_stability(result[:1], **PLAIN)
    with pytest.raises(SettingError, match=r"by one method.*leave-one-out, random"):
        neighbour_stability(
            [*result, *explained(["bad"], "random"), *explained(["bad x"], "random")], **PLAIN
        )
    with pytest.raises(SettingError, match="`explanations` must be several"):
        neighbour_stability(result[0], **PLAIN)
    table = pertinent.explain(
        pertinent.wrap(lambda rows: [[0.1, 0.9]] * len(rows), kind="table"), np.ones((2, 3))
    )
    with pytest.raises(SettingError, match="words, but the features are columns"):
        neighbour_stability(table, **PLAIN)

    def missing():
        raise FileError("NLTK's data 'stopwords' are missing")

    monkeypatch.setattr(api.english_words, "stop_words", missing)
    with pytest.raises(FileError, match="stopwords"):
        neighbour_stability(result, semantic=0)


def test_regressors_and_labels_have_neighbours_too():
    values = pertinent.wrap(lambda texts: [[float(len(t))] for t in texts], output="value")
    result = pertinent.explain(values, ["ab c", "ab d"], method="leave-one-out")
    assert neighbour_stability(result, k=1, **PLAIN).mean("leave-one-out", "iou-stability") == 1.0
    labels = pertinent.wrap(
        lambda texts: [[0.9 if "x" in t else 0.1, 0.2] for t in texts], output="label-probability"
    )
    result = pertinent.explain(labels, ["x a", "x b", "c"], method="leave-one-out", target=0)
    assert [e.index for e in neighbour_stability(result, k=1, **PLAIN).explanations] == [0, 1]


def test_texts_without_neighbours_are_refused():
    with pytest.raises(InputError, match=r"None of the 2 inputs could be compared.*no other text"):
        neighbour_stability(explained(["bad", "fine"]), k=1, **PLAIN)
