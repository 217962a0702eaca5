"""Inputs as plain data, so that explanations can be saved and shown without their model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pertinent.inputs.base import Input
from pertinent.inputs.image import ImageInput
from pertinent.inputs.table import TableInput
from pertinent.inputs.text import Text, TextInput


def input_to_dict(input: Input) -> dict[str, Any]:
    """Plain numbers, strings and lists; tokens are left out, because the tokenizer can recreate them."""
    plain: dict[str, Any] = {
        "kind": input.kind,
        "granularity": input.granularity,
        "notes": list(input.notes),
        "fingerprint": input.fingerprint.hex(),
    }
    if isinstance(input, TextInput):
        text = input.text
        plain |= {"first": text.first, "second": text.second, "fixed": text.fixed}
        plain["spans"] = input.spans.tolist()
    elif isinstance(input, ImageInput):
        plain |= {"pixels": input.pixels.tolist(), "labels": input.labels.tolist()}
    elif isinstance(input, TableInput):
        plain |= {
            "values": input.values.tolist(),
            "columns": [list(c) for c in input.columns],
            "names": list(input.names),
        }
    return plain


def input_from_dict(plain: Mapping[str, Any], features: Sequence[str]) -> Input:
    """The inverse of `input_to_dict`."""
    shared = (
        tuple(features),
        plain["granularity"],
        tuple(plain["notes"]),
        bytes.fromhex(plain["fingerprint"]),
    )
    if plain["kind"] == "text":
        text = Text(plain["first"], plain["second"], plain["fixed"])
        return TextInput(text, *shared, text, np.array(plain["spans"], dtype=np.int64).reshape(-1, 3))
    if plain["kind"] == "image":
        pixels = np.array(plain["pixels"], dtype=np.float32)
        return ImageInput(pixels, *shared, pixels, np.array(plain["labels"], dtype=np.int64))
    values = np.array(plain["values"])
    if values.dtype.kind not in "biuf":
        values = np.array(plain["values"], dtype=object)
    raw = dict(zip(plain["names"], plain["values"], strict=True))
    columns = tuple(tuple(c) for c in plain["columns"])
    return TableInput(raw, *shared, values, columns, tuple(plain["names"]))
