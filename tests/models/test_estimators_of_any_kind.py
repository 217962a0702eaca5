"""Estimators and functions over tables: missing values, data frames and their dtypes, renamed columns."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline

import pertinent
from pertinent.errors import InputError

lightgbm = pytest.importorskip("lightgbm")
xgboost = pytest.importorskip("xgboost")

SMALL = {"n_estimators": 5, "n_jobs": 1, "random_state": 0}
RNG = np.random.default_rng(0)
ROWS = np.where(RNG.random((200, 3)) < 0.2, np.nan, RNG.normal(size=(200, 3)))
LABELS = (np.nan_to_num(ROWS[:, 0]) > 0).astype(int)
PEOPLE = pd.DataFrame(
    {
        "years of age": RNG.integers(18, 80, 200),
        "job": pd.Categorical(RNG.choice(["clerk", "cook", "nurse"], 200)),
        "member": RNG.random(200) < 0.5,
        "size": RNG.normal(size=200).astype(np.float32),
    }
)
GRANTED = (PEOPLE["job"] == "cook").astype(int).to_numpy()


def boosted():
    return [
        HistGradientBoostingClassifier(max_iter=5, min_samples_leaf=2, categorical_features="from_dtype"),
        xgboost.XGBClassifier(**SMALL, enable_categorical=True),
        lightgbm.LGBMClassifier(**SMALL, verbose=-1, min_child_samples=5),
    ]


every_boosted = pytest.mark.parametrize("number", [0, 1, 2], ids=["scikit-learn", "xgboost", "lightgbm"])


@every_boosted
@pytest.mark.parametrize("removal", ["background", "mean", "median-mode", "uniform-noise", "constant"])
def test_missing_values_where_the_model_accepts_them(number, removal):
    estimator = boosted()[number].fit(ROWS, LABELS)
    model = pertinent.wrap(estimator, background=ROWS[:10])
    found = pertinent.explain(model, ROWS[:5], "leave-one-out", removal=removal)
    assert np.isnan(ROWS[:5]).any() and not found.failures
    for e, row in zip(found, ROWS[:5], strict=True):
        np.testing.assert_allclose(e.prediction.values, estimator.predict_proba(row[None])[0], rtol=1e-5)


def test_missing_values_where_it_does_not():
    estimator = LogisticRegression().fit(np.nan_to_num(ROWS), LABELS)
    model = pertinent.wrap(estimator, background=np.nan_to_num(ROWS[:10]), columns=["a", "b", "c"])
    rows = [[1.0, 2.0, 3.0], [1.0, None, np.nan]]
    found = pertinent.explain(model, rows, "leave-one-out")
    assert [e.index for e in found] == [0]
    assert found.failures[0].reason == (
        "The row has no value (NaN) in: b, c; the model does not accept it: ValueError: Input X contains NaN."
    )
    holes = pertinent.wrap(estimator, background=ROWS[:10], columns=["a", "b", "c"])
    with pytest.raises(InputError, match=r"The row \(or the background\) has no value \(NaN\) in: a"):
        pertinent.explain(holes, rows[0], "leave-one-out")


def test_a_function_that_answers_nan():
    model = pertinent.wrap(lambda rows: rows.sum(axis=1), kind="table", output="value")
    with pytest.raises(
        InputError, match=r"no value \(NaN\) in: column 1; the model does not accept it, it answers NaN"
    ):
        pertinent.explain(model, [1.0, None], "leave-one-out")


@every_boosted
def test_the_dtypes_of_the_background_are_kept(number):
    estimator = boosted()[number].fit(PEOPLE, GRANTED)
    model = pertinent.wrap(estimator, background=PEOPLE.sample(10, random_state=0))
    found = pertinent.explain(model, PEOPLE.head(3), "kernel-shap")
    assert not found.failures
    for e, p in zip(found, estimator.predict_proba(PEOPLE.head(3)), strict=True):
        np.testing.assert_allclose(e.prediction.values, p, rtol=1e-5)
        assert e.features == tuple(PEOPLE) and e.top(1)[0][0] == "job"
    one = pertinent.explain(model, PEOPLE.iloc[0].to_dict(), "kernel-shap")
    np.testing.assert_array_equal(one.scores, found[0].scores)
    assert len(pertinent.explain(model, {**PEOPLE.iloc[0], "job": None}, "kernel-shap").scores) == 4
    with pytest.raises(
        InputError, match="'job' must hold one of the categories clerk, cook, nurse, got 'king'"
    ):
        pertinent.explain(model, {**PEOPLE.iloc[0], "job": "king"}, "kernel-shap")


def test_functions_read_frames_like_the_background():
    seen = []

    def model(rows):
        seen.append(rows)
        return np.stack([rows["member"], ~rows["member"]], axis=1).astype(float)

    frame = PEOPLE.assign(note="x", count=pd.array(range(200), dtype="Int64")).head(20)
    wrapped = pertinent.wrap(model, background=frame)
    e = pertinent.explain(wrapped, frame.iloc[1], "leave-one-out")
    assert wrapped.kind == "table" and e.top(1)[0][0] == "member"
    for rows in seen:
        pd.testing.assert_series_equal(rows.dtypes, frame.dtypes)
    pd.testing.assert_frame_equal(seen[0].iloc[:1], frame.iloc[1:2].reset_index(drop=True))
    other = pertinent.wrap(model, background=frame.astype({"size": np.float64}))
    assert other.fingerprint != wrapped.fingerprint


def test_a_dtype_that_would_change_a_value_is_not_forced():
    seen = []

    def model(rows):
        seen.append(rows)
        return np.full((len(rows), 2), 0.5)

    frame = pd.DataFrame({"n": [1, 2], "yes": [True, False], "name": ["x", "y"]})
    wrapped = pertinent.wrap(model, background=frame)
    pertinent.explain(wrapped, {"n": 3, "yes": True, "name": 7}, "leave-one-out", removal="mean")
    assert seen[0].iloc[0].tolist() == [3, True, 7]
    assert {1.5, 3.0} == {value for rows in seen for value in rows["n"]}
    assert {0.5, True} == {value for rows in seen for value in rows["yes"]}


def test_labels_that_are_numbers():
    frame = pd.DataFrame(np.eye(3))
    seen = []

    def model(rows):
        seen.append(list(rows.columns))
        return np.full((len(rows), 2), 0.5)

    e = pertinent.explain(pertinent.wrap(model, background=frame), frame.iloc[0], "leave-one-out")
    assert e.features == ("0", "1", "2") and seen[0] == [0, 1, 2]


def test_columns_that_lightgbm_renames():
    estimator = boosted()[2].fit(PEOPLE.drop(columns="job"), GRANTED)
    assert estimator.feature_names_in_[0] == "years_of_age"
    row = PEOPLE.iloc[0].drop("job")
    for background in (None, PEOPLE.head(10)):
        e = pertinent.explain(pertinent.wrap(estimator, background=background), row, "leave-one-out")
        assert e.features[0] == ("years_of_age" if background is None else "years of age")
        assert e.input.values[0] == row["years of age"]


class Renamed:
    """As lightgbm before version 4.6."""

    classes_ = (0, 1)

    def __init__(self, names):
        self.feature_name_ = names

    def predict_proba(self, rows):
        self.seen = rows
        return np.full((len(rows), 2), 0.5)


def test_older_names_of_columns():
    named, unnamed = Renamed(["a_b", "c"]), Renamed(["Column_0", "Column_1"])
    background = pd.DataFrame({"y": [1, 0], "c": [5.0, 6.0], "a b": [1, 2]})
    e = pertinent.explain(pertinent.wrap(named, background=background), {"c": 1.5, "a b": 3}, "leave-one-out")
    assert e.features == ("a b", "c") and e.input.values.tolist() == [3, 1.5]
    assert list(named.seen.columns) == ["a b", "c"]
    assert pertinent.wrap(unnamed).columns is None


def test_the_order_of_a_background_does_not_matter():
    estimator = LogisticRegression().fit(PEOPLE[["size", "years of age"]], GRANTED)
    one = pertinent.wrap(estimator, background=PEOPLE[["size", "years of age"]].head(10))
    other = pertinent.wrap(estimator, background=PEOPLE.head(10))
    assert one.fingerprint == other.fingerprint
    scores = [pertinent.explain(model, PEOPLE.iloc[0], "exact-shapley").scores for model in (one, other)]
    np.testing.assert_array_equal(*scores)


def test_an_estimator_that_was_fitted_on_arrays_gets_arrays():
    frame = pd.DataFrame(np.nan_to_num(ROWS), columns=["a", "b", "c"])
    estimator = LinearRegression().fit(frame.to_numpy(), LABELS)
    e = pertinent.explain(pertinent.wrap(estimator, background=frame.head(5)), frame.iloc[0], "leave-one-out")
    assert e.features == ("a", "b", "c")


def test_many_rows_need_no_kind():
    estimator = LinearRegression().fit(np.nan_to_num(ROWS), LABELS)
    assert len(pertinent.explain(estimator, np.ones((4, 3)), "leave-one-out")) == 4
    assert len(pertinent.explain(pertinent.wrap(estimator, background=np.eye(3)), np.ones((4, 3)))) == 4


def test_rows_of_a_table_in_lists():
    frame = pd.DataFrame({"n": [1, 2], "name": ["x", "y"]})
    model = pertinent.wrap(lambda rows: [[0.5, 0.5]] * len(rows), background=frame)
    assert pertinent.explain(model, [3, "x"], "leave-one-out").features == ("n", "name")
    assert len(pertinent.explain(model, [[3, "x"], [4, None]], "leave-one-out")) == 2
    assert len(pertinent.explain(model, frame.head(1), "leave-one-out")) == 1
    with pytest.raises(InputError, match="one row, but got a data frame"):
        pertinent.explain(model, [frame], "leave-one-out")
    with pytest.raises(InputError, match="but got str"):
        pertinent.explain(model, "x", "leave-one-out")


def test_a_series_of_texts_is_not_a_row():
    texts = pd.Series(["so bad", "so good", "good"])
    model = make_pipeline(CountVectorizer(), LogisticRegression()).fit(texts, [0, 1, 1])
    assert [e.input.kind for e in pertinent.explain(model, texts, "leave-one-out")] == ["text"] * 3


def test_one_number_is_not_taken_for_a_probability_in_silence(caplog):
    def model(rows):
        return rows[:, 0]

    pertinent.explain(pertinent.wrap(model, kind="table"), [[0.5, 1.0], [0.25, 1.0]], "leave-one-out")
    assert caplog.text.count("interpreted as the probability of the second of two classes") == 1
    caplog.clear()
    for meaning in ({"output": "probability"}, {"output": "value"}, {"classes": ["no", "yes"]}):
        pertinent.explain(pertinent.wrap(model, kind="table", **meaning), [0.5, 1.0], "leave-one-out")
    assert not caplog.text
