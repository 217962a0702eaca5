"""What a data scientist has at hand is understood: series, frames, pipelines, dicts."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import pertinent
from pertinent.errors import FileError, ModelError
from tests import tiny

TEXTS = ["not bad at all", "so good", "bad"]


def scores(texts):
    return [[0.9, 0.1] if "bad" in text else [0.2, 0.8] for text in texts]


@pytest.mark.parametrize(
    "make",
    [list, pd.Series, np.array, lambda t: np.array(t, dtype=object), lambda t: pd.DataFrame({"review": t})],
    ids=["list", "series", "strings", "objects", "frame"],
)
def test_texts_come_in_many_wrappings(make):
    found = pertinent.explain(scores, make(TEXTS), "leave-one-out")
    assert [e.input.text.first for e in found] == TEXTS
    transformer = pertinent.wrap(tiny.pair("bert"))
    words = ["w1 w2", "w3"]
    assert len(pertinent.explain(transformer, make(words), "leave-one-out")) == 2


def test_a_series_of_texts_for_a_scikit_learn_pipeline():
    model = make_pipeline(CountVectorizer(), LogisticRegression()).fit(TEXTS, [0, 1, 0])
    found = pertinent.explain(model, pd.Series(TEXTS, index=[7, 8, 9]), "leave-one-out")
    assert len(found) == 3 and found[0].top(1)[0][0] == "bad"


def test_a_row_of_categories_is_no_collection_of_texts():
    frame = pd.DataFrame({"colour": ["red", "blue"], "size": ["s", "m"]})
    model = pertinent.wrap(lambda rows: [[0.5, 0.5]] * len(rows), kind="table", background=frame)
    assert pertinent.explain(model, frame.iloc[0], "leave-one-out").features == ("colour", "size")
    assert len(pertinent.explain(model, frame, "leave-one-out")) == 2


@pytest.mark.parametrize(
    "wrapped",
    [
        lambda rows: [{"no": a, "yes": b} for a, b in rows],
        lambda rows: [{"yes": b, "no": a} if b > a else {"no": a, "yes": b} for a, b in rows],
        lambda rows: [[{"label": "no", "score": a}, {"label": "yes", "score": b}] for a, b in rows],
        lambda rows: pd.DataFrame(rows, columns=["no", "yes"]),
    ],
    ids=["dicts", "dicts in any order", "pipeline", "frame"],
)
def test_functions_may_name_their_classes(wrapped):
    e = pertinent.explain(lambda texts: wrapped(scores(texts)), "not bad at all", "leave-one-out")
    assert set(e.classes) == {"no", "yes"}
    assert e.target_name == "no"
    assert e.prediction.values[e.target] == pytest.approx(0.9)
    assert e.top(1) == [("bad", pytest.approx(0.7))]


def test_a_function_that_names_other_classes_later_is_refused():
    def odd(texts):
        return [{"no": 0.9, "yes": 0.1} if "bad" in text else {"maybe": 1.0} for text in texts]

    with pytest.raises(ModelError, match="must score no, yes for every input"):
        pertinent.explain(odd, "not bad at all", "leave-one-out")


def test_rounded_probabilities_will_do():
    e = pertinent.explain(lambda texts: [[0.33, 0.33, 0.33] for _ in texts], "not bad", "leave-one-out")
    assert e.prediction.values.sum() == pytest.approx(0.99)


def test_one_method_may_be_compared():
    found = pertinent.compare(scores, TEXTS, "leave-one-out")
    assert found.methods == ["leave-one-out"]


def test_saved_by_the_suffix(tmp_path):
    found = pertinent.explain(scores, TEXTS, "leave-one-out")
    found.save(tmp_path / "e.parquet")
    found.save(tmp_path / "e.csv")
    found.save(tmp_path / "e.json")
    assert len(pertinent.read(tmp_path / "e.parquet")) == 3
    assert pd.read_csv(tmp_path / "e.csv")["feature"].tolist() == [f for e in found for f in e.features]
    assert len(json.loads((tmp_path / "e.json").read_text())["explanations"]) == 3
    with pytest.raises(FileError, match=r"must end in \.parquet, \.json or \.csv"):
        found.save(tmp_path / "e.xls")


def test_a_removal_by_name_may_have_settings():
    rows = np.random.default_rng(0).normal(size=(30, 3))
    model = pertinent.wrap(lambda x: np.full((len(x), 2), 0.5), kind="table", background=rows)
    e = pertinent.explain(model, rows[0], "leave-one-out", removal="background:rows=7")
    assert (e.removal, e.request.removal_settings) == ("background", {"rows": 7})
    found = pertinent.compare(
        model, rows[:2], "leave-one-out", removal="uniform-noise:samples=3,low=-1,high=1"
    )
    assert found.explanations[0].request.removal_settings == {"samples": 3, "low": -1.0, "high": 1.0}
    for wrong, message in (
        ("background:rows", "must be written as"),
        ("background:rowz=3", "Did you mean 'rows'"),
    ):
        with pytest.raises(pertinent.PertinentError, match=message):
            pertinent.explain(model, rows[0], "leave-one-out", removal=wrong)
