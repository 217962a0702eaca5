"""Features that the user cut: segments of images and spans of texts."""

import numpy as np
import pytest
import torch

import pertinent
from pertinent.errors import InputError, SettingError
from pertinent.inputs.base import Truncation
from pertinent.inputs.image import image_input
from pertinent.inputs.modality import input_from_dict
from pertinent.inputs.segmentation import custom_spans
from pertinent.inputs.text import Text
from pertinent.removals import Constant, MaskToken, SliceOut
from pertinent.removals.base import kept_tokens
from tests import tiny

PHOTO = np.arange(48, dtype=np.float32).reshape(3, 4, 4)
HALVES = np.array([[9, 9, -2, -2]] * 4)


@pytest.mark.parametrize("given", [HALVES, HALVES.tolist(), torch.from_numpy(HALVES), HALVES > 0])
def test_segments_of_any_number(given):
    cut = image_input(PHOTO, given)
    assert cut.granularity == "segments"
    assert cut.n_features == 2 and np.unique(cut.labels).tolist() == [0, 1]
    assert len(np.unique(cut.labels[HALVES == 9])) == 1
    rows = Constant(-1.0)(cut, np.array([[True, False]]), 0)
    assert ((rows[0] == -1) == (cut.labels == 1)).all()


def test_segments_are_named_by_their_numbers():
    cut = image_input(PHOTO, HALVES)
    assert cut.features == ("segment -2", "segment 9")
    assert image_input(PHOTO, cut.features_argument).features == cut.features


def test_other_segments_have_other_fingerprints():
    prints = {image_input(PHOTO, given).fingerprint for given in (HALVES, HALVES.T, "patches:2")}
    assert len(prints) == 3


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (HALVES[:2], r"an array \(4, 4\), but has shape \(2, 4\)"),
        (HALVES.ravel(), "shape"),
        (HALVES.astype(float), "must hold integers"),
        ([[1], [1, 2]], "array of segment numbers"),
        ([], "must hold integers"),
    ],
)
def test_segments_that_do_not_fit(given, reason):
    with pytest.raises(InputError, match=reason):
        image_input(PHOTO, given)


def test_models_take_segments():
    module = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(48, 3))
    for model in (pertinent.wrap(module), pertinent.wrap(lambda x: x.mean((2, 3)), output="value")):
        given = model.prepare(PHOTO, HALVES)
        again = model.prepare(given.raw, given.features_argument)
        assert again.features == given.features and again.fingerprint == given.fingerprint
        assert model.prepare(PHOTO, "patches:2").features_argument == "patches:2"


SPANS = [(8, 13), (0, 3)]
TEXT = "w1, w2 w3 w4 w5"


def test_spans_are_sorted_and_checked():
    assert custom_spans(Text(TEXT), SPANS).tolist() == [[0, 0, 3], [0, 8, 13]]
    assert custom_spans(Text(TEXT), np.array([[0, 0, 3]])).tolist() == [[0, 0, 3]]
    assert custom_spans(Text("a b", "c d"), [(1, 0, 1), (0, 2, 3)]).tolist() == [[0, 2, 3], [1, 0, 1]]


@pytest.mark.parametrize(
    ("spans", "reason"),
    [
        ([(0, 4), (3, 6)], r"\(0, 4\) and \(3, 6\)"),
        ([(0, 99)], "15 characters"),
        ([(3, 3)], "15 characters"),
        ([(-1, 3)], "15 characters"),
        ([(1, 0, 3)], "does not lie in the text"),
        ([], "list of spans"),
        ([(0, 1), (2,)], "list of spans"),
        ([(0.5, 2.0)], "list of spans"),
        ([["a", "b"]], "list of spans"),
        (7, "list of spans"),
    ],
)
def test_spans_that_do_not_fit(spans, reason):
    with pytest.raises(InputError, match=reason):
        custom_spans(Text(TEXT), spans)


def test_spans_of_a_pair_say_which_text():
    with pytest.raises(InputError, match=r"\(segment, start, end\)"):
        custom_spans(Text("a b", "c d"), [(0, 1)])
    with pytest.raises(InputError, match="is in a text that is never removed"):
        custom_spans(Text.from_input({"query": "who", "document": "me"}), [(0, 0, 3)])


def test_what_a_function_reads_keeps_the_text_between_spans():
    model = pertinent.wrap(lambda texts: [[0.5, 0.5] for _ in texts])
    given = model.prepare(TEXT, SPANS)
    assert given.features == ("w1,", "3 w4 ") and given.granularity == "spans"
    masks = np.array([[True, True], [False, True], [True, False], [False, False]])
    assert [row.first for row in SliceOut()(given, masks, 0)] == [
        *(TEXT, "w2 w3 w4 w5", "w1, w2 ww5", "w2 ww5"),
    ]
    assert MaskToken("_")(given, masks[3:], 0)[0].first == "_ w2 w_w5"


@pytest.fixture(scope="module")
def transformer():
    return pertinent.wrap(tiny.pair("bert"))


def test_tokens_outside_of_spans_are_fixed(transformer):
    given = transformer.prepare(TEXT, SPANS)
    #                                          CLS w1 , w2  w3 w4 w5  SEP
    assert given.tokens.feature.tolist() == [-1, 0, 0, -1, 1, 1, -1, -1]
    assert kept_tokens(given, np.array([[False, False]])).tolist() == [
        [True, False, False, True, False, False, True, True],
    ]
    pair = transformer.prepare(("w1 w2", "w3 w4"), [(0, 0, 2), (1, 3, 5)])
    assert pair.tokens.feature.tolist() == [-1, 0, -1, -1, -1, 1, -1]


def test_spans_without_a_token(transformer):
    given = transformer.prepare(TEXT, [(0, 1), (1, 2), (6, 7)])
    assert given.features == ("w",)
    assert given.notes == ("2 of 3 spans were dropped because no token belongs to them",)
    with pytest.raises(InputError, match="spans"):
        transformer.prepare(TEXT, [(6, 7)])


def test_truncated_spans_are_said(transformer):
    given = transformer.prepare(tiny.text(400), [(0, 5), (1000, 1003)])
    assert given.truncation == Truncation(1, 2, 200, "spans")


def test_spans_are_the_same_when_prepared_or_read_again(transformer):
    given = transformer.prepare(TEXT, SPANS)
    again = transformer.prepare(given.raw, given.features_argument)
    read = input_from_dict(given.to_dict(), given.features)
    assert given.fingerprint == again.fingerprint == read.fingerprint
    np.testing.assert_array_equal(read.features_argument, given.features_argument)
    assert transformer.prepare(TEXT, SPANS[:1]).fingerprint != given.fingerprint
    assert transformer.prepare(TEXT, "sentences").features_argument == "sentences"


def test_table_rows_have_columns_alone():
    with pytest.raises(SettingError, match="columns"):
        pertinent.wrap(lambda rows: rows, kind="table").prepare([1.0, 2.0], np.zeros((2, 2), dtype=int))
