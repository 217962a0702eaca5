"""Annotations: the features of an input that a person marked as important."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable
from typing import Any

import numpy as np

from pertinent.array_types import Array, Masks
from pertinent.errors import InputError, unknown
from pertinent.inputs.base import Input

_FORMS = (
    "booleans (one for each feature, or for each pixel of an image), indices or names of features, or "
    "character spans (start, end) of a text"
)


def mark_features(annotations: Any, input: Input) -> Masks:
    """Return the mask of the features that annotations mark.

    `annotations` have one of these forms:

    - a boolean for each feature,
    - indices of features,
    - names of features; a name marks all features with it,
    - character spans (start, end), or (segment, start, end) in a pair of texts; they mark each feature that
      shares a character with a span,
    - an array (height, width) of booleans; it marks the features of an image with more than half of their
      pixels marked.

    >>> from pertinent.inputs.table import table_input
    >>> mark_features(["b"], table_input({"a": 1, "b": 2})).tolist()
    [False, True]
    """
    array = _array(annotations)
    mask = input.match_annotation(array)
    if mask is None:
        mask = _mark(array, input)
    if not mask.any():
        raise InputError("No feature of the input is marked.")
    return mask


def _array(annotations: Any) -> Array:
    if isinstance(annotations, str) or not isinstance(annotations, Iterable):
        raise InputError(f"`annotations` must be {_FORMS}, but got {annotations!r}.")
    try:
        array = np.asarray(list(annotations) if not isinstance(annotations, np.ndarray) else annotations)
    except ValueError:
        raise InputError(
            f"`annotations` must be all of one form, but got {reprlib.repr(annotations)}."
        ) from None
    if not array.size:
        raise InputError("No feature of the input is marked.")
    return array


def _mark(array: Array, input: Input) -> Masks:
    """Return the features marked by annotations in a form for every kind of input."""
    d, got = input.n_features, reprlib.repr(array.tolist())
    if array.dtype == np.bool_:
        if array.shape != (d,):
            raise InputError(
                f"`annotations` must have a boolean for each of the {d} features, got shape {array.shape}."
            )
        return array
    if array.ndim == 1 and array.dtype.kind in "iu":
        if len(np.unique(array)) < len(array):
            raise InputError(
                "`annotations` of integers are indices of features without duplicates: use booleans to mark "
                f"by 0 and 1, got {got}."
            )
        if array.min() < 0 or array.max() >= d:
            raise InputError(f"`annotations` must be indices of features from 0 to {d - 1}, but got {got}.")
        return np.isin(np.arange(d), array)
    if array.ndim == 1 and array.dtype.kind == "U":
        for name in array.tolist():
            if name not in input.features:
                raise unknown("feature in `annotations`", name, set(input.features))
        return np.isin(np.array(input.features), array)
    raise InputError(f"`annotations` must be {_FORMS}, but got {got}.")
