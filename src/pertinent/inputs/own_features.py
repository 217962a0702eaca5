"""Features that the user cut: segments of an image, spans of a text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from pertinent.array_types import Array
from pertinent.inputs.base import Input
from pertinent.inputs.image import ImageInput
from pertinent.inputs.text import TextInput

Features: TypeAlias = str | Sequence[Any] | Array
"""A granularity; or an array of segment numbers for an image, a list of character spans for a text."""


def own_features(input: Input) -> str | Array:
    """What gives the same features when the input is prepared again.

    >>> from pertinent.inputs.image import image_input
    >>> own_features(image_input([[0.0, 1.0]], [[5, 9]])), own_features(image_input([[0.0, 1.0]], "pixels"))
    (array([[5, 9]]), 'pixels')
    """
    if isinstance(input, ImageInput) and input.granularity == "segments":
        numbers = [name.rpartition(" ")[2] for name in input.features]
        is_known = all(number.removeprefix("-").isdecimal() for number in numbers)
        return np.array(numbers, dtype=np.int64)[input.labels] if is_known else input.labels
    if isinstance(input, TextInput) and input.granularity == "spans":
        return input.spans
    return input.granularity
