"""Modalities: how inputs of each kind are recognised, split, saved and read."""

import json
from dataclasses import fields

import numpy as np
import pytest

import pertinent
from pertinent.errors import InputError, SettingError
from pertinent.inputs.base import Truncation
from pertinent.inputs.image import image_input
from pertinent.inputs.modality import input_from_dict, modalities, modality_named, modality_of
from pertinent.inputs.table import table_input
from pertinent.inputs.text import Text, text_input
from pertinent.removals import removals

INPUTS = {
    "text": text_input(
        Text("ab cd", "e", "second"),
        "words",
        np.array([[0, 0, 2], [0, 3, 5]]),
        truncation=Truncation(2, 9, 4, "words"),
    ),
    "image": image_input(np.arange(12, dtype=np.float32).reshape(1, 3, 4) / 12, [[7, 7, 3, 3]] * 3),
    "table": table_input({"a": 1.5, "b": "x", "c": 3}),
}


@pytest.mark.parametrize("kind", INPUTS)
def test_an_input_is_the_same_after_it_was_saved_and_read(kind):
    input = INPUTS[kind]
    plain = json.loads(json.dumps(input.to_dict()))
    again = input_from_dict(plain, input.features)
    assert type(again) is modalities.get(kind).input_type is type(input)
    assert again.fingerprint == input.fingerprint
    assert again.truncation == input.truncation
    for field in fields(input):
        if field.name not in ("raw", "tokens"):
            np.testing.assert_equal(getattr(again, field.name), getattr(input, field.name))
    np.testing.assert_equal(again.features_argument, input.features_argument)


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        ("a text", "text"),
        (("a", "pair"), "text"),
        ({"query": "a", "document": "b"}, "text"),
        (np.zeros((3, 4)), "image"),
        (np.zeros((3, 4, 4)), "image"),
        (np.zeros(4), "table"),
        ([1.0, 2.0], "table"),
        ({"a": 1}, "table"),
    ],
)
def test_inputs_are_recognised(raw, kind):
    assert modality_of(raw).name == kind


def test_what_nothing_recognises_is_an_error():
    with pytest.raises(InputError, match="An input must be a text"):
        modality_of(object())


def test_an_unknown_kind_is_an_error():
    with pytest.raises(SettingError, match="kind of input"):
        pertinent.wrap(len, kind="sound")


@pytest.mark.parametrize("kind", INPUTS)
def test_defaults_suit_the_modality(kind):
    modality = modality_named(kind)
    named = {modality.default_removal, modality.default_removal_for(None)}
    named |= {modality.fixed_baseline, modality.drawn_baseline}
    assert named <= set(removals.for_kind(kind))
