"""Table rows and backgrounds of any form are understood, or refused with a reason."""

import datetime as dt
import decimal
import logging
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch

import pertinent
from pertinent.errors import InputError, SettingError
from pertinent.inputs.background import Background
from pertinent.inputs.table import Columns, table_input

AB = Columns(("a", "b"))


def half(rows):
    return np.full((len(rows), 2), 0.5)


@pytest.mark.parametrize(
    "nothing", [None, float("nan"), np.float32("nan"), pd.NA, pd.NaT, np.datetime64("NaT")]
)
def test_a_missing_value_is_nan(nothing):
    numbers, mixed = table_input({"a": 1.5, "b": nothing}), table_input({"a": "x", "b": nothing})
    assert numbers.values.dtype == np.float64 and np.isnan(numbers.values[1])
    assert mixed.values[0] == "x" and np.isnan(mixed.values[1])
    assert numbers.fingerprint == table_input({"a": 1.5, "b": float("nan")}).fingerprint
    assert mixed.fingerprint == table_input({"a": "x", "b": float("nan")}).fingerprint
    assert mixed.value_texts() == ("x", "missing")


def test_all_nans_are_the_same():
    negative = np.array([1.0, -np.nan])
    assert table_input(negative).fingerprint == table_input(np.array([1.0, np.nan])).fingerprint
    assert Background(negative[None]).fingerprint == Background([[1.0, np.nan]]).fingerprint
    hidden = np.ma.array([1.0, 7.0], mask=[False, True])
    assert table_input(hidden).fingerprint == table_input([1.0, None]).fingerprint


@pytest.mark.parametrize(
    "row",
    [
        {"a": 1, "b": 2},
        {"b": 2, "a": 1},
        [1, 2],
        (1, 2),
        range(1, 3),
        np.array([1, 2]),
        np.array([1, 2], dtype=object),
        torch.tensor([1, 2]),
        pd.Series({"b": 2, "a": 1}),
        pd.Series([1, 2]),
        pd.Series([1, 2], index=[7, 8]),
        pd.Series([1, 2], index=["a", "b"], dtype="Int64"),
    ],
    ids=lambda row: type(row).__name__,
)
def test_forms_of_a_row(row):
    given = table_input(row, AB)
    assert given.values.tolist() == [1, 2] and given.values.dtype == np.int64
    assert given.fingerprint == table_input([1, 2], AB).fingerprint


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({}, "lacks the columns: a, b"),
        ([], "0 values, but the table has 2"),
        (None, "must be a list or an array of values, .* but got NoneType"),
        (pd.NA, "but got NAType"),
        ("ab", "but got str"),
        (b"ab", "but got bytes"),
        (3, "but got int"),
        (np.float64(3), "but got float64"),
        ({1, 2}, "but got set"),
        (np.ones((1, 2)), r"one dimension, but has shape \(1, 2\)"),
        (pd.DataFrame({"a": [1], "b": [2]}), "one row, but got a data frame"),
        ([[1], [2]], "'a' must hold a number, a text or a date, but holds a list"),
        ([1, 2j], "'b' must hold .* but holds a complex"),
        (np.array([1, 2j]), "holds a complex"),
        ([1, b"x"], "holds a bytes"),
        ([1, np.ones(2)], "holds a ndarray"),
        ([1, {"x": 1}], "holds a dict"),
        ({"a": 1}, "lacks the columns: b"),
        ({"a": 1, "b": 2, 3: 0, "3": 0}, "occur twice: 3"),
        (pd.Series([1, 2, 3], index=["a", "b", "a"]), "occur twice: a"),
        (SimpleNamespace(a=1, b=2), "but got SimpleNamespace"),
    ],
)
def test_what_is_no_row(row, reason):
    with pytest.raises(InputError, match=reason):
        table_input(row, AB)


@pytest.mark.parametrize("row", [{}, [], np.array([])])
def test_an_empty_row(row):
    with pytest.raises(InputError, match="The row is empty"):
        table_input(row)


@pytest.mark.parametrize(
    "value",
    [
        np.inf,
        -np.inf,
        2**70,
        decimal.Decimal("1.5"),
        "\ud800",
        "",
        True,
        pd.Timestamp("2020-01-02"),
        np.datetime64("2020-01-02T03:04:05.000000000"),
        dt.date(2020, 1, 2),
        dt.timedelta(1),
        pd.Interval(0, 1),
    ],
    ids=repr,
)
def test_odd_values_reach_the_model(value):
    seen = []

    def model(rows):
        seen.extend(rows[:, 1].tolist())
        return half(rows)

    background = [[0.0, value], [1.0, value]]
    e = pertinent.explain(pertinent.wrap(model, background=background), [1.0, value], "leave-one-out")
    assert set(seen) == {value.astype("M8[us]").item() if isinstance(value, np.datetime64) else value}
    again = table_input([1.0, value])
    assert again.fingerprint == e.input.fingerprint != table_input([1.0, "other"]).fingerprint
    assert len(e.input.value_texts()) == 2
    assert all(type(plain) in (bool, int, float, str) for plain in e.input.to_dict()["values"])


def test_dates_in_a_frame_stay_dates():
    frame = pd.DataFrame({"day": pd.to_datetime(["2020-01-02", "2021-03-04", None]), "n": [1, 2, 3]})
    seen = []

    def model(rows):
        seen.append(rows.dtypes.to_dict())
        return np.stack([rows["day"].dt.year == 2020, rows["day"].dt.year != 2020], axis=1)

    e = pertinent.explain(pertinent.wrap(model, background=frame), frame, "leave-one-out")
    assert [len(e), len(e.failures)] == [3, 0]
    assert seen[0] == frame.dtypes.to_dict()
    assert e[0].prediction.values.tolist() == [1, 0] and e[0].top(1)[0][0] == "day"


def test_columns_that_are_not_known_are_left_out(caplog):
    frame = pd.DataFrame({"id": ["x", "y"], "a": [1.0, 2.0], "b": [3.0, 4.0]})
    model = pertinent.wrap(half, kind="table", columns=["a", "b"], background=frame)
    with caplog.at_level(logging.WARNING):
        found = pertinent.explain(model, frame.assign(label=1), "leave-one-out")
        e = pertinent.explain(model, {"b": 1, "a": 2, "label": "yes"}, "leave-one-out")
    assert [e.features for e in found] == [("a", "b")] * 2
    assert found[0].input.values.tolist() == [1.0, 3.0] and e.input.values.tolist() == [2, 1]
    said = [record.getMessage() for record in caplog.records]
    assert said == [
        f"The model does not use these columns, so they are ignored: {n}." for n in ("id", "label")
    ]
    with pytest.raises(InputError, match="lacks the columns: b"):
        pertinent.explain(model, {"a": 2, "label": "yes"}, "leave-one-out")
    with pytest.raises(InputError, match="The background lacks the columns: c"):
        pertinent.wrap(half, columns=["a", "c"], background=frame)


def test_a_background_is_put_in_the_order_of_the_columns():
    frame = pd.DataFrame({"b": [3.0, 4.0], "a": [1.0, 2.0]})
    model = pertinent.wrap(half, columns=["a", "b"], background=frame)
    assert model.background.values.tolist() == [[1.0, 3.0], [2.0, 4.0]]


def test_centres_and_ranges_pass_over_missing_values():
    numbers = Background([[1.0, np.nan], [2.0, np.nan], [np.nan, np.nan], [6.0, np.nan]])
    assert numbers.centre("mean")[0] == 3.0 and np.isnan(numbers.centre("mean")[1])
    assert numbers.centre("median")[0] == 2.0 and np.isnan(numbers.centre("median")[1])
    low, high = numbers.range()
    assert (low[0], high[0]) == (1.0, 6.0) and np.isnan(low[1])
    mixed = Background([[1, "y", True], [None, None, True], [3, "x", False], [8, "x", None]])
    assert mixed.centre("mean").tolist() == [4.0, "x", 2 / 3]
    assert mixed.centre("median").tolist() == [3, "x", True]


def test_the_most_frequent_value_keeps_its_type():
    day = pd.Timestamp("2020-01-02")
    assert Background([[day, 1], [day, 2], [pd.Timestamp("2021-01-01"), 3]]).centre("mean")[0] == day


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [[]],
        [1, 2],
        np.array([1, 2]),
        np.empty((0, 3)),
        np.empty((3, 0)),
        np.ones((2, 2, 2)),
        [[1, 2], [3]],
        [{"a": 1}, {"b": 2}],
        [[1, 2j]],
        "ab",
        7,
        {"a": [1, 2]},
        pd.Series([1, 2]),
        pd.DataFrame({"a": []}),
        pd.DataFrame(index=[1, 2]),
        pd.DataFrame({"a": [[1], [2]]}),
    ],
    ids=repr,
)
def test_what_is_no_background(rows):
    with pytest.raises(InputError):
        Background(rows)


@pytest.mark.parametrize(
    ("frame", "dtype"),
    [
        (pd.DataFrame({"a": [1, 2], "b": [True, False]}), np.int64),
        (pd.DataFrame({"a": [1.5, 2], "b": [True, False]}), np.float64),
        (pd.DataFrame({"a": [1, None], "b": [2, 3]}, dtype="Int64"), np.float64),
        (pd.DataFrame({"a": [1, 2], "b": ["x", None]}), object),
        (pd.DataFrame({"a": [1, 2], "b": pd.Categorical(["x", None])}), object),
    ],
    ids=lambda it: "" if isinstance(it, pd.DataFrame) else str(it),
)
def test_the_background_of_a_frame_is_like_its_rows(frame, dtype):
    background = Background(frame)
    assert background.values.dtype == dtype
    model = pertinent.wrap(half, background=frame)
    row = table_input(frame.iloc[1], model.columns)
    assert (row.values.dtype == object) == (background.values.dtype == object) or frame.iloc[1].isna().any()


def test_a_background_of_other_columns():
    with pytest.raises(InputError, match="The background has 3 columns, but the table has 2"):
        pertinent.wrap(half, columns=["a", "b"], background=np.eye(3))
    with pytest.raises(InputError, match="The background has 3 columns, but the row has 2"):
        pertinent.explain(pertinent.wrap(half, background=np.eye(3)), [1.0, 2.0], "leave-one-out")


def test_rows_of_mappings_are_a_background():
    assert Background([{"a": 1, "b": "x"}, {"b": "y", "a": 2}]).values.tolist() == [[1, "x"], [2, "y"]]


def test_texts_among_the_columns_need_a_background():
    row = {"age": 39, "job": "clerk"}
    with pytest.raises(SettingError, match=r"constant.*not numeric: job\..*background="):
        pertinent.explain(pertinent.wrap(half, kind="table"), row, "leave-one-out")
    model = pertinent.wrap(half, background=[[1, "x"]])
    with pytest.raises(SettingError, match=r"uniform-noise.*column 1.*'background'"):
        pertinent.explain(model, list(row.values()), "leave-one-out", removal="uniform-noise")
    assert pertinent.explain(pertinent.wrap(half, background=[[1, "x"]], columns=list(row)), row).features


def test_noise_needs_a_range():
    for rows in ([[1.0, np.nan]], [[1.0, np.inf], [2.0, 0.0]]):
        model = pertinent.wrap(half, background=rows, columns=["a", "b"])
        with pytest.raises(SettingError, match="no finite range in: b"):
            pertinent.explain(model, [1.0, 2.0], "leave-one-out", removal="uniform-noise")
        known = "uniform-noise:low=0,high=1"
        assert pertinent.explain(model, [1.0, 2.0], "leave-one-out", removal=known).features == ("a", "b")
