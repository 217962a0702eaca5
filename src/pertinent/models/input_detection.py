"""Distinguishing texts, images and table rows, for models that accept any of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pertinent.errors import InputError, unknown
from pertinent.inputs import text as texts
from pertinent.inputs.base import Input
from pertinent.inputs.image import image_input
from pertinent.inputs.image_file import is_image_file
from pertinent.inputs.own_features import Features
from pertinent.inputs.table import Columns, table_input

KINDS = ("text", "image", "table")
_TEXT_KEYS = {"text", "text_pair", "premise", "hypothesis", "query", "document", "question", "context"}


def kind_of(raw: Any) -> str:
    """Guess what one input is from its type and shape; a string that names an image file is an image."""
    if isinstance(raw, Path) or hasattr(raw, "getbands") or is_image_file(raw):
        return "image"
    if isinstance(raw, str | texts.Text) or (isinstance(raw, Mapping) and set(raw) <= _TEXT_KEYS):
        return "text"
    if isinstance(raw, tuple | list) and len(raw) == 2 and all(isinstance(v, str) for v in raw):
        return "text"
    if hasattr(raw, "shape") and len(raw.shape) > 1 and not hasattr(raw, "iterrows"):
        return "image"
    if isinstance(raw, Mapping | tuple | list) or hasattr(raw, "shape"):
        return "table"
    raise InputError(
        "An input must be a text, a pair of texts, an image (array, file path, PIL image) or a table "
        f"row (array, mapping, pandas row), but got {type(raw).__name__}."
    )


def split_inputs(raw: Any, kind: str | None) -> Iterable[Any] | None:  # noqa: PLR0911
    """The inputs in a collection, or ``None`` if `raw` is itself one input."""
    if isinstance(raw, str | Path | texts.Text | Mapping):
        return None
    if kind in (None, "text") and (found := _texts(raw)) is not None:
        return found
    if hasattr(raw, "iterrows"):
        return _FrameRows(raw)
    if hasattr(raw, "tocsr"):
        raise InputError("A sparse matrix cannot be explained: give its .toarray().")
    if hasattr(raw, "shape"):
        dimensions = len(raw.shape)
        if dimensions == 0:
            return None
        if kind is None and dimensions == 2:
            raise InputError(
                "A two-dimensional array may be one image or many table rows: "
                "wrap the model with kind='image' or kind='table'."
            )
        one = {"image": (2, 3), "table": (1,), "text": (), None: (1, 3)}[kind]
        return None if dimensions in one else raw
    if kind in (None, "text") and _is_pair(raw):
        return None if kind or not all(map(is_image_file, raw)) else raw
    numbers = isinstance(raw, list | tuple) and all(isinstance(v, int | float | np.number) for v in raw)
    if numbers and raw and kind in (None, "table"):
        return None
    return raw if isinstance(raw, Iterable) else None


class _FrameRows:
    """The rows of a data frame, each made when it is its turn."""

    def __init__(self, frame: Any) -> None:
        self.frame = frame

    def __len__(self) -> int:
        return len(self.frame)

    def __iter__(self) -> Iterator[Any]:
        return (row for _, row in self.frame.iterrows())


def _is_pair(raw: Any) -> bool:
    return isinstance(raw, tuple) and len(raw) == 2 and all(isinstance(v, str) for v in raw)


def _texts(raw: Any) -> list[str] | None:
    """The texts in a pandas Series, a frame of one column or an array, if that is what it holds.

    A row of a frame is a Series too, but its index holds the names of columns.
    """
    if hasattr(raw, "iterrows"):
        if raw.shape[1] != 1:
            return None
        raw = raw.iloc[:, 0]
    elif hasattr(raw, "index") and hasattr(raw, "iloc"):
        if any(isinstance(name, str) for name in raw.index):
            return None
    elif not isinstance(raw, np.ndarray) or raw.ndim != 1:
        return None
    found = list(raw)
    return found if found and all(isinstance(text, str) for text in found) else None


def prepare_any(
    raw: Any, kind: str | None, features: Features | None, columns: Columns | None = None
) -> Input:
    """Cut an input of any kind for a model that reads strings or arrays."""
    kind = kind or kind_of(raw)
    if kind == "text":
        return _text_input(texts.Text.of(raw), "words" if features is None else features)
    if kind == "image":
        return image_input(raw, "patches" if features is None else features)
    if features is not None and (not isinstance(features, str) or features != "columns"):
        raise unknown("table feature", features, ["columns"])
    return table_input(raw, columns)


def _text_input(text: texts.Text, features: Features) -> texts.TextInput:
    if not isinstance(features, str):
        return texts.text_input(text, "spans", texts.own_spans(text, features))
    if features == "tokens":
        raise InputError("The features 'tokens' need a transformer; this model reads strings: use 'words'.")
    return texts.text_input(text, features, texts.cut(text, features))


DEFAULT_REMOVAL = {"text": "slice-out", "image": "mean", "table": "background"}
