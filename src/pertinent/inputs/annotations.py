"""The features of an input that a person has marked as those that matter."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable
from typing import Any

import numpy as np

from pertinent.array_types import Array, Masks
from pertinent.errors import InputError, unknown
from pertinent.inputs.base import Input
from pertinent.inputs.image import ImageInput
from pertinent.inputs.text import TextInput

_FORMS = (
    "booleans (one for each feature, or for each pixel of an image), numbers or names of features, or "
    "(start, end) spans of characters of a text"
)


def marked_features(marks: Any, input: Input) -> Masks:
    """Which features are marked, as a row of booleans.

    `marks` are booleans, one for each feature; numbers of features; their names, which mark every
    feature of that name; spans (start, end) of characters, or (segment, start, end) in a pair of texts,
    which mark the features that share a character with one; or an array (height, width) of booleans,
    which marks the features of an image more than half of whose pixels are marked.

    >>> from pertinent.inputs.table import table_input
    >>> marked_features(["b"], table_input({"a": 1, "b": 2})).tolist()
    [False, True]
    """
    given = _array(marks)
    if given.dtype == np.bool_:
        mask = _by_booleans(given, input)
    elif given.ndim == 1 and given.dtype.kind in "iu":
        mask = _by_numbers(given, input)
    elif given.ndim == 1 and given.dtype.kind == "U":
        mask = _by_names(given.tolist(), input)
    elif given.ndim == 2 and given.dtype.kind in "iu" and isinstance(input, TextInput):
        mask = _by_spans(given, input)
    else:
        raise InputError(f"`marks` must be {_FORMS}, but got {reprlib.repr(marks)}.")
    if not mask.any():
        raise InputError("No feature of the input is marked.")
    return mask


def _array(marks: Any) -> Array:
    if isinstance(marks, str) or not isinstance(marks, Iterable):
        raise InputError(f"`marks` must be {_FORMS}, but got {marks!r}.")
    try:
        given = np.asarray(list(marks) if not isinstance(marks, np.ndarray) else marks)
    except ValueError:
        raise InputError(f"`marks` must be all of one form, but got {reprlib.repr(marks)}.") from None
    if not given.size:
        raise InputError("No feature of the input is marked.")
    return given


def _by_booleans(given: Masks, input: Input) -> Masks:
    if given.shape == (input.n_features,):
        return given
    if isinstance(input, ImageInput) and given.shape == input.labels.shape:
        counts = np.bincount(input.labels.ravel(), minlength=input.n_features)
        marked = np.bincount(input.labels[given], minlength=input.n_features)
        return np.asarray(2 * marked > counts)
    raise InputError(
        f"`marks` must hold a boolean for each of the {input.n_features} features, but have shape "
        f"{given.shape}."
    )


def _by_numbers(given: Array, input: Input) -> Masks:
    d = input.n_features
    if len(np.unique(given)) < len(given):
        raise InputError(
            "`marks` that are whole numbers are numbers of features, each once: give booleans to mark by 0 "
            f"and 1, but got {reprlib.repr(given.tolist())}."
        )
    if given.min() < 0 or given.max() >= d:
        raise InputError(f"`marks` must be numbers of features from 0 to {d - 1}, but got {given.tolist()}.")
    return np.isin(np.arange(d), given)


def _by_names(given: list[str], input: Input) -> Masks:
    for name in given:
        if name not in input.features:
            raise unknown("feature in `marks`", name, set(input.features))
    return np.isin(np.array(input.features), given)


def _by_spans(given: Array, input: TextInput) -> Masks:
    if given.shape[1] == 2 and input.text.second is None:
        given = np.insert(given, 0, 0, axis=1)
    if given.shape[1] != 3:
        wanted = "(start, end)" if input.text.second is None else "(segment, start, end)"
        raise InputError(f"`marks` must be spans {wanted} in characters, but got {given.tolist()}.")
    lengths = [len(segment) for segment in input.text.segments]
    for segment, start, end in given.tolist():
        if not 0 <= segment < len(lengths) or not 0 <= start < end <= lengths[segment]:
            raise InputError(f"The span {(segment, start, end)} in `marks` does not lie in the text.")
    mine, theirs = input.spans[:, None], given[None]
    shared = (mine[..., 1] < theirs[..., 2]) & (theirs[..., 1] < mine[..., 2])
    return np.asarray((shared & (mine[..., 0] == theirs[..., 0])).any(axis=1))
