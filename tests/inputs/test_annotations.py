"""Features that people marked: booleans, numbers, names, spans, pixels."""

import numpy as np
import pytest

import pertinent
from pertinent.errors import InputError, PertinentError
from pertinent.inputs.annotations import mark_features
from pertinent.inputs.image import image_input
from pertinent.inputs.table import table_input

WORDS = pertinent.wrap(lambda texts: [[0.5, 0.5] for _ in texts], kind="text")
TEXT = WORDS.prepare("not bad, not at all")  # not | bad | , | not | at | all


@pytest.mark.parametrize(
    ("marks", "members"),
    [
        ([False, True, False, False, False, True], [1, 5]),
        (np.array([False, True, False, False, False, True]), [1, 5]),
        ([1, 5], [1, 5]),
        (np.array([5, 1]), [1, 5]),
        ((1,), [1]),
        ({3, 0}, [0, 3]),
        (["not"], [0, 3]),
        (["bad", "all"], [1, 5]),
        ([(4, 7)], [1]),
        ([(5, 6), (12, 19)], [1, 4, 5]),  # a part of a word is enough
        ([(0, 19)], [0, 1, 2, 3, 4, 5]),
        ([[6, 8], [4, 7]], [1, 2]),
    ],
)
def test_forms(marks, members):
    assert np.flatnonzero(mark_features(marks, TEXT)).tolist() == members


def test_pairs_of_texts():
    pair = WORDS.prepare(("one two", "three four"))
    assert np.flatnonzero(mark_features([(1, 0, 5), (0, 4, 7)], pair)).tolist() == [1, 2]
    with pytest.raises(InputError, match=r"spans \(segment, start, end\)"):
        mark_features([(0, 5)], pair)


def test_columns_and_pixels():
    row = table_input({"age": 39, "job": "clerk", "zip": 1})
    assert mark_features(["zip", "age"], row).tolist() == [True, False, True]
    image = image_input(np.zeros((1, 4, 4)), "patches:2")
    pixels = np.zeros((4, 4), dtype=bool)
    pixels[0, :3] = pixels[1, 0] = True  # three of four pixels of the first patch, one of the second
    assert mark_features(pixels, image).tolist() == [True, False, False, False]
    pixels[1, 2:] = True
    assert mark_features(pixels, image).tolist() == [True, True, False, False]
    half = np.zeros((4, 4), dtype=bool)
    half[3] = True
    with pytest.raises(InputError, match="No feature of the input is marked"):
        mark_features(half, image)


@pytest.mark.parametrize(
    ("marks", "message"),
    [
        ([], "No feature of the input is marked"),
        ([False] * 6, "No feature of the input is marked"),
        ([True, False], r"a boolean for each of the 6 features, got shape \(2,\)"),
        ([0, 1, 0, 0, 0, 1], r"got \[0, 1, 0, 0, 0, 1\]"),
        ([6], "indices of features from 0 to 5"),
        ([-1], "indices of features from 0 to 5"),
        (["bda"], "Did you mean 'bad'"),
        ([(4, 40)], r"The span \(0, 4, 40\) in `annotations` does not lie in the text"),
        ([(7, 4)], "does not lie in the text"),
        ([(1, 2), 3], "all of one form"),
        ([0.5, 0.1], "`annotations` must be booleans"),
        ("bad", "`annotations` must be booleans"),
        (3, "`annotations` must be booleans"),
    ],
)
def test_what_is_no_mark(marks, message):
    with pytest.raises(PertinentError, match=message):
        mark_features(marks, TEXT)


def test_spans_are_of_texts():
    with pytest.raises(InputError, match="`annotations` must be booleans"):
        mark_features([(0, 1)], table_input([1.0, 2.0]))
