"""Inputs as plain data, so that explanations can be saved and shown without their model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pertinent.array_types import Array, Ints
from pertinent.decoding import PlainData, expect, wholes
from pertinent.errors import InputError
from pertinent.inputs.base import Input
from pertinent.inputs.image import ImageInput
from pertinent.inputs.rows import row_values
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
        plain["channels_last"] = input.channels_last
    elif isinstance(input, TableInput):
        plain |= {
            "values": input.plain_values(),
            "columns": [list(c) for c in input.columns],
            "names": list(input.names),
        }
    return plain


def input_from_dict(plain: Mapping[str, Any], features: Sequence[str]) -> Input:
    """The inverse of `input_to_dict`; an `InputError` says what an input cannot be made of."""
    data = PlainData(plain, "input")
    shared = (
        tuple(features),
        data.text("granularity"),
        data.texts("notes"),
        _bytes(data.text("fingerprint")),
    )
    kind = data.text("kind", ("text", "image", "table"))
    if kind == "text":
        text = _text(data)
        return TextInput(text, *shared, text, _spans(data, text, len(features)))
    if kind == "image":
        pixels, labels = _pixels(data, len(features))
        last = "channels_last" in data and data.flag("channels_last")
        return ImageInput(np.moveaxis(pixels, 0, -1) if last else pixels, *shared, pixels, labels, last)
    names = data.texts("names")
    values = _values(data, names)
    return TableInput(
        dict(zip(names, data.items("values"), strict=True)),
        *shared,
        values,
        _columns(data, len(features), len(values)),
        names,
    )


def _bytes(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise InputError(f"`fingerprint` must be hexadecimal, but got {text[:40]!r}.") from None


def _text(data: PlainData) -> Text:
    second = data.text("second") if "second" in data else None
    fixed: Any = data.text("fixed", ("none", "first", "second"))
    return Text(data.text("first"), second, fixed)


def _spans(data: PlainData, text: Text, d: int) -> Ints:
    """The spans, each inside its segment."""
    spans = data.wholes("spans", d, 3)
    segment, start, end = spans.T
    lengths = np.array([len(part) for part in text.segments])
    inside = (segment >= 0) & (segment < len(lengths)) & (start >= 0) & (start <= end)
    inside[inside] &= end[inside] <= lengths[segment[inside]]
    expect(bool(inside.all()), "spans", "inside the text", spans[~inside].tolist()[:1])
    return spans


def _pixels(data: PlainData, d: int) -> tuple[Array, Ints]:
    """An image, and the feature of each of its pixels."""
    with np.errstate(over="ignore"):
        pixels = data.floats("pixels", None, None, None).astype(np.float32)
    expect(pixels.size > 0 and bool(np.isfinite(pixels).all()), "pixels", "finite", "NaN or nothing")
    labels = data.wholes("labels", *pixels.shape[1:])
    expect(bool(((labels >= 0) & (labels < d)).all()), "labels", f"from 0 to {d - 1}", "other numbers")
    return pixels, labels


def _values(data: PlainData, names: Sequence[str]) -> Array:
    """The values of a row: numbers, or an array of objects where some are not."""
    values = data.items("values")
    plain = all(isinstance(value, bool | int | float | str | None) for value in values)
    expect(plain, "values", "numbers or texts", values)
    expect(len(set(names)) == len(names) == len(values), "names", "different, one for each value", names)
    return row_values(values, names)


def _columns(data: PlainData, d: int, n: int) -> tuple[tuple[int, ...], ...]:
    """The columns of each feature; every column belongs to one."""
    found = [wholes(own, "columns", None).tolist() for own in data.items("columns")]
    together = sorted(column for own in found for column in own)
    complete = len(found) == d and all(found) and together == list(range(n))
    expect(complete, "columns", f"{d} groups of the {n} columns", found)
    return tuple(map(tuple, found))
