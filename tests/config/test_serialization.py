"""Plain data becomes what annotations declare, or an error that names the field; `encode` is the inverse."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import numpy as np
import pytest

from pertinent.array_types import Floats, Ints, Masks
from pertinent.config.serialization import NOT_FINITE, Shape, decode, decode_fields, encode, json_text
from pertinent.config.settings import Count, Range, Share
from pertinent.errors import InputError


@dataclass(frozen=True)
class Row:
    input: Count
    value: Annotated[float, Range(at_least=-1, at_most=1), NOT_FINITE]
    id: str | None = None


@dataclass(frozen=True)
class Table:
    name: str
    rows: tuple[Row, ...]
    measure: Literal["accuracy", "agreement"] = "accuracy"
    pair: tuple[int, str] = (0, "")
    budget: Count | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    skipped: Mapping[str, str] = field(default_factory=dict)
    by_sparsity: Mapping[Share | None, Annotated[float, NOT_FINITE]] = field(default_factory=dict)
    error: Exception | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Arrays:
    scores: Annotated[Floats, Shape("features")]
    spans: Annotated[Ints, Shape("features", 3)]
    by_class: Annotated[Floats, Shape(2, "features")] | None = None
    chosen: Mapping[Share, Annotated[Masks, Shape("features")]] = field(default_factory=dict)
    other: Floats | None = None


TABLE = Table(
    "a",
    (Row(1, 0.5, "x"), Row(2, -1.0)),
    "agreement",
    (3, "b"),
    7,
    {"samples": 3, "deep": [1.5, {"a": None}]},
    {"b": "why"},
    {0.5: 1.0, None: float("inf")},
    ValueError("not saved"),
)


def test_a_dataclass_and_back():
    plain = encode(TABLE)
    assert plain["rows"][1] == {"input": 2, "value": -1.0, "id": None}
    assert plain["by_sparsity"] == [[0.5, 1.0], [None, float("inf")]]
    assert "error" not in plain
    assert decode(Table, plain) == TABLE
    assert decode(Table, json.loads(json.dumps(plain))) == TABLE


def test_what_is_missing_has_its_default_and_what_is_unknown_is_ignored():
    assert decode(Table, {"name": "a", "rows": [], "later": 3}) == Table("a", ())
    with pytest.raises(InputError, match="`rows` is missing"):
        decode(Table, {"name": "a"})
    with pytest.raises(InputError, match=r"^`rows\[0\]\.value` is missing"):
        decode(Table, {"name": "a", "rows": [{"input": 1}]})


def test_no_saved_field_may_be_missing():
    whole = encode(TABLE)
    assert Table(**decode_fields(Table, whole)) == TABLE
    with pytest.raises(InputError, match=r"^`budget` is missing"):
        decode_fields(Table, {name: value for name, value in whole.items() if name != "budget"})
    with pytest.raises(InputError, match=r"^`rows\[0\]\.id` is missing"):
        decode_fields(Table, whole | {"rows": [{"input": 1, "value": 0.5}]})


def test_numbers_that_do_not_exist_are_null_in_json():
    text = json_text(encode(Row(1, np.nan)))
    assert text == '{"input": 1, "value": null, "id": null}'
    assert np.isnan(decode(Row, json.loads(text)).value)
    assert np.isnan(decode(Row, {"input": 1, "value": np.nan}).value)


def test_what_is_no_number_string_or_list_becomes_a_string():
    assert encode({"a": (np.float64(0.5), np.int64(3), object)}) == {"a": [0.5, 3, "<class 'object'>"]}


def test_arrays_with_shapes():
    found = Arrays(
        np.array([0.5, np.nan]), np.arange(6).reshape(2, 3), np.ones((2, 2)), {0.5: np.array([False, True])}
    )
    plain = json.loads(json_text(encode(found)))
    assert plain["chosen"] == [[0.5, [1]]]
    again = decode(Arrays, plain, sizes={"features": 2})
    np.testing.assert_array_equal(again.scores, found.scores)
    np.testing.assert_array_equal(again.by_class, found.by_class)
    np.testing.assert_array_equal(again.chosen[0.5], [False, True])
    assert (again.spans.dtype, again.other) == (np.int64, None)
    for name, wrong, message in (
        ("scores", [1.0], "`scores` must have shape 2, but has 1"),
        ("scores", [1.0, "a"], "`scores` must be numbers"),
        ("spans", [[1, 2, 3.5], [1, 2, 3]], "`spans` must be whole numbers"),
        ("by_class", [[1, 2]], "`by_class` must have shape 2 × 2, but has 1 × 2"),
        ("by_class", [[1, 2], [1]], "`by_class` must be rows of equal length"),
        ("chosen", [[0.5, [2]]], "`chosen` must be from 0 to 1"),
        ("chosen", [[1.5, [1]]], "`chosen` must be above 0 and at most 1, but got 1.5"),
        ("chosen", {}, "`chosen` must be a list of pairs"),
    ):
        with pytest.raises(InputError, match=message):
            decode(Arrays, plain | {name: wrong}, sizes={"features": 2})


def row(input, value):
    return {"input": input, "value": value}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": 3}, "`name` must be a string, but got 3"),
        ({"rows": 3}, "`rows` must be a list, but got 3"),
        ({"rows": ["a"]}, r"`rows\[0\]` must be an object with named fields, but got 'a'"),
        ({"rows": [row(1, 1.5)]}, r"`rows\[0\].value` must be at least -1 and at most 1, but got 1.5"),
        (
            {"rows": [row(1, float("inf"))]},
            r"`rows\[0\].value` must be .* at most 1, but got inf",
        ),
        ({"rows": [row(0, 0)]}, r"`rows\[0\].input` must be at least 1, but got 0"),
        ({"rows": [row(True, 0)]}, r"`rows\[0\].input` must be a whole number, but got True"),
        ({"rows": [row(10**400, 0)]}, r"`rows\[0\].input` must be at most 1e\+09, but got 10000"),
        ({"rows": [row(1, 10**400)]}, r"`rows\[0\].value` must be a number, but got 10000"),
        ({"measure": "odds"}, "Unknown measure 'odds'. Known: accuracy, agreement"),
        ({"measure": None}, "Unknown measure None"),
        ({"pair": [1]}, r"`pair` must be 2 values, but got \[1\]"),
        ({"pair": ["a", "b"]}, "`pair` must be a whole number, but got 'a'"),
        ({"budget": 0}, "`budget` must be at least 1, but got 0"),
        ({"settings": [1]}, r"`settings` must be an object with named fields, but got \[1\]"),
        ({"skipped": {"b": 1}}, "`skipped.b` must be a string, but got 1"),
        ({"by_sparsity": [[0.5]]}, r"`by_sparsity` must be a list of pairs, but got \[0.5\]"),
        ({"by_sparsity": [[0.5, "a"]]}, "`by_sparsity` must be a number, but got 'a'"),
        ({"name": ["long"] * 99}, "`name` must be a string, but got .{59}…"),
    ],
)
def test_errors_name_the_field(change, message):
    with pytest.raises(InputError, match=message):
        decode(Table, encode(TABLE) | change)
    for nothing in (None, [], 3, {1: 2}):
        with pytest.raises(InputError):
            decode(Table, nothing)
