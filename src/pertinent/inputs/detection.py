"""Finding out what a user gave: of which kind an input is, and whether it is one or several."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from pertinent.errors import InputError
from pertinent.inputs.image_file import is_image_file
from pertinent.inputs.modality import Modality, modalities, modality_named, split_collection
from pertinent.inputs.text import Text, is_pair, texts_in


def modality_of(raw: Any) -> Modality:
    """The modality that recognises one input, by its type and shape."""
    known = sorted(map(modality_named, modalities.all()), key=lambda modality: modality.precedence)
    for modality in known:
        if modality.recognises(raw):
            return modality
    raise InputError(
        "An input must be a text, a pair of texts, an image (array, file path, PIL image) or a table "
        f"row (array, mapping, pandas row), but got {type(raw).__name__}."
    )


def split_any(raw: Any) -> Iterable[Any] | None:
    """The inputs in a collection, or ``None`` if `raw` is itself one input, of whatever kind."""
    texts = texts_in(raw)
    if texts is not None:
        return texts
    if len(getattr(raw, "shape", ())) == 2 and not hasattr(raw, "iterrows") and not hasattr(raw, "tocsr"):
        raise InputError(
            "A two-dimensional array may be one image or many table rows: "
            "wrap the model with kind='image' or kind='table'."
        )
    if is_pair(raw):
        return raw if all(map(is_image_file, raw)) else None
    numbers = isinstance(raw, list | tuple) and all(isinstance(v, int | float | np.number) for v in raw)
    if isinstance(raw, Text) or (numbers and raw):
        return None
    return split_collection(raw, (1, 3))
