"""Numbers of `experiments/yang2023` on cases with a known answer."""

from types import SimpleNamespace

import numpy as np
import pytest

from tests.miniature import scripts, write_nltk


@pytest.fixture
def load():
    with scripts("experiments/yang2023") as found:
        yield found


def explained(scores, **more):
    scores = np.array(scores, dtype=float)
    ranking = np.argsort(-scores, kind="stable")
    own = {"scores": scores, "ranking": ranking, "features": ["w"] * len(scores), "standard_errors": None}
    own |= {"evaluations": 10, "seconds": 1.0, "index": 0, "id": None, "prediction": np.array([0.2, 0.8])}
    return SimpleNamespace(**own | more)


def test_columns_of_a_method(load):
    """Seven features, two seeds: agreement between them, and of both with the references."""
    measure = load("measure")
    truth = measure.Truth([np.arange(7.0)], [np.zeros(7)], [np.arange(7.0)[::-1]])
    seeds = [[explained(np.arange(7.0))], [explained(np.arange(7.0) + 1, evaluations=20)]]
    found = {name: values[0] for name, values in measure.columns(seeds, truth).items()}
    assert found["spearman"] == 1.0 and found["mse"] == 1.0 and found["top_5"] == 1.0
    assert found["top_10"] is None  # there are only seven
    assert found["reference spearman"] == 1.0 and found["svs spearman"] == -1.0
    assert found["reference mse"] == 0.5  # 0 of the first, 1 of the second
    assert found["svs top_5"] == pytest.approx(3 / 5)
    assert found["evaluations"] == 15.0 and found["coverage"] is None


def test_coverage_counts_the_error_of_the_reference(load):
    coverage = load("measure")._coverage
    e = explained([0.0, 0.0, 0.0, 0.0], standard_errors=np.full(4, 3.0))
    values = np.array([0.0, 1.96 * 3, 1.96 * 5 - 0.1, 1.96 * 5 + 0.1])
    assert coverage(e, values, np.full(4, 4.0)) == 0.75  # √(3² + 4²) = 5
    assert np.isnan(coverage(explained([0.0]), np.zeros(1), np.zeros(1)))


def test_padding_takes_part_in_the_correlation(load):
    found = [explained([2.0, 1.0], details={"padding": rest}) for rest in ([0.0, -1.0], [-1.0, 0.0])]
    assert load("padding").spearman_of_all(found) == pytest.approx(
        np.corrcoef([4, 3, 2, 1], [4, 3, 1, 2])[0, 1]
    )


def test_classes_of_words(load, tmp_path):
    classes = load("word_classes").WordClasses(write_nltk(tmp_path / "nltk"))
    said = {"the": "function", "not": "negation", "42nd": "number", "?!": "punctuation", "dogs": "noun"}
    said |= {"geese": "noun", "ran": "verb", "runs": "verb", "Paris": "name", "xyzzy": "other"}
    assert {word: classes(word) for word in said} == said
    assert classes("Paris", first=True) == "other"


def test_shares_of_scores_on_classes_of_words(load):
    own = load("calibrate")
    kinds = {"dog": "noun", "runs": "verb", "sleeps": "verb"}
    words = own.words_of(("dog runs", "dog sleeps"), lambda word, first: kinds[word])
    assert words[0] == (0, 0, 3, "common noun") and words[3] == (1, 4, 10, "verb")
    assert own.bag(words) == {"0 common noun": 1, "0 verb": 1, "1 common noun": 1, "1 verb": 1}
    spans = [(0, 0, 3), (0, 4, 6), (0, 6, 8), (1, 0, 3), (1, 4, 10)]
    found = own.shares(words, spans, [3.0, 0.5, 0.5, -1.0, -3.0])
    positive = {"+ 0 common noun": 0.75, "+ 0 verb": 0.25, "+ 0": 1.0}
    assert {k: v for k, v in found.items() if k[0] == "+" and v} == positive
    assert found["- 1 common noun"] == 0.25 and found["- 1 verb"] == 0.75 and found["- 1"] == 1.0
    assert own.matrix([{"b": 1.0}, {"a": 2.0}]).tolist() == [[0.0, 1.0], [2.0, 0.0]]


def test_calibration_turns_wrong_decisions_round(load):
    """A feature that tells when the model is wrong makes every decision right."""
    own = load("calibrate")
    own.TREES = 5
    rng = np.random.default_rng(0)
    labels, wrong = rng.integers(0, 2, 60), rng.integers(0, 2, 60)
    decided = np.where(wrong == 1, 1 - labels, labels)
    split = np.arange(60) < 30
    table, areas = own.calibrated(wrong[:, None].astype(float), decided, labels, [split])
    assert np.isnan(table[0, :30]).all() and (table[0, 30:] == 1).all() and areas == [1.0]
    table, areas = own.calibrated(None, decided, np.array([1] * 40 + [0] * 20), [split])
    assert np.nanmean(table) == pytest.approx(1 / 3) and areas == []


def test_test_texts_are_balanced(load, monkeypatch):
    sets = load("sets")
    split = sets.Split([{"text": str(i)} for i in range(7)], [0, 0, 0, 0, 1, 1, 0])
    monkeypatch.setattr(sets, "read", lambda *_: split)
    found = sets.test_texts(None, "sst2", 4)
    assert found.labels == [0, 1, 0, 1] and [e["text"] for e in found.examples] == ["0", "4", "1", "5"]


def test_verdicts(load):
    own = load("conclusions")
    sure, never, open = (SimpleNamespace(low=a, high=b) for a, b in ((1, 2), (-2, -1), (-1, 1)))
    assert own.verdict([sure, sure]) == "yes" and own.verdict([never]) == "no, the reverse"
    assert own.verdict([sure, open]) == "on some sets" and own.verdict([open, never]) == "no"
    assert own.verdict([sure, never]) == "on some sets, on others the reverse" and own.verdict([]) == "–"
