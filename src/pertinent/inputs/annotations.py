"""The features of an input that a person has marked as those that matter."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable
from typing import Any

import numpy as np

from pertinent.array_types import Array, Masks
from pertinent.errors import InputError, unknown
from pertinent.inputs.base import Input

_FORMS = (
    "booleans (one for each feature, or for each pixel of an image), numbers or names of features, or "
    "(start, end) spans of characters of a text"
)


def mark_features(annotations: Any, input: Input) -> Masks:
    """Which features are marked, as a row of booleans.

    `annotations` are booleans, one for each feature; numbers of features; their names, which mark every
    feature of that name; spans (start, end) of characters, or (segment, start, end) in a pair of texts,
    which mark the features that share a character with one; or an array (height, width) of booleans,
    which marks the features of an image more than half of whose pixels are marked.

    >>> from pertinent.inputs.table import table_input
    >>> mark_features(["b"], table_input({"a": 1, "b": 2})).tolist()
    [False, True]
    """
    given = _array(annotations)
    mask = input.match_annotation(given)
    if mask is None:
        mask = _marked(given, input)
    if not mask.any():
        raise InputError("No feature of the input is marked.")
    return mask


def _array(annotations: Any) -> Array:
    if isinstance(annotations, str) or not isinstance(annotations, Iterable):
        raise InputError(f"`annotations` must be {_FORMS}, but got {annotations!r}.")
    try:
        given = np.asarray(list(annotations) if not isinstance(annotations, np.ndarray) else annotations)
    except ValueError:
        raise InputError(
            f"`annotations` must be all of one form, but got {reprlib.repr(annotations)}."
        ) from None
    if not given.size:
        raise InputError("No feature of the input is marked.")
    return given


def _marked(given: Array, input: Input) -> Masks:
    """The features marked by annotations in a form that every kind of input has."""
    d, shown = input.n_features, reprlib.repr(given.tolist())
    if given.dtype == np.bool_:
        if given.shape != (d,):
            raise InputError(
                f"`annotations` must hold a boolean for each of the {d} features, but have shape "
                f"{given.shape}."
            )
        return given
    if given.ndim == 1 and given.dtype.kind in "iu":
        if len(np.unique(given)) < len(given):
            raise InputError(
                "`annotations` that are whole numbers are numbers of features, each once: give booleans to "
                f"mark by 0 and 1, but got {shown}."
            )
        if given.min() < 0 or given.max() >= d:
            raise InputError(f"`annotations` must be numbers of features from 0 to {d - 1}, but got {shown}.")
        return np.isin(np.arange(d), given)
    if given.ndim == 1 and given.dtype.kind == "U":
        for name in given.tolist():
            if name not in input.features:
                raise unknown("feature in `annotations`", name, set(input.features))
        return np.isin(np.array(input.features), given)
    raise InputError(f"`annotations` must be {_FORMS}, but got {shown}.")
