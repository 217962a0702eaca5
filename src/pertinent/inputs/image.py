"""Images, cut into pixels, grid patches, superpixels or segments of the user's own."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from pertinent._optional import optional
from pertinent.array_types import Array, Ints
from pertinent.digests import digest
from pertinent.errors import InputError, require, unknown
from pertinent.inputs.base import Input
from pertinent.inputs.image_file import pil_pixels, read_image

GRANULARITIES = ("patches", "pixels", "superpixels")
CHANNELS = (1, 3, 4)
"""How many channels an image has whose channels come last."""

_SINGULAR = {"patches": "patch", "pixels": "pixel", "superpixels": "superpixel"}


@dataclass(frozen=True, eq=False)
class ImageInput(Input):
    """An image (channels, height, width) and the feature that each pixel belongs to.

    With `channels_last` the model gets it as (height, width, channels), the order in which it was given.
    """

    pixels: Array
    labels: Ints
    channels_last: bool = False
    kind: ClassVar[str] = "image"

    @property
    def group(self) -> Hashable:
        """Images of the same size share batches."""
        return self.kind, self.pixels.shape, self.channels_last


def as_pixels(raw: Any) -> Array:
    """The pixels (channels, height, width) of whatever the user gave.

    A file path or PIL image as `read_image` and `pil_pixels` read it. An array or tensor (channels,
    height, width), (height, width, channels) with 1, 3 or 4 channels, or (height, width), with its
    values as they are; where both orders are possible, channels come first.
    """
    if isinstance(raw, str | Path):
        pixels = read_image(raw)
    elif hasattr(raw, "convert") and hasattr(raw, "getbands"):
        pixels = pil_pixels(raw)
    else:
        pixels = _channels_first(_numbers(raw))
    if not pixels.size:
        raise InputError(f"An image must have at least one pixel, but has shape {pixels.shape}.")
    if not np.isfinite(pixels).all():
        raise InputError("The image holds NaN, infinite values or values too large for float32.")
    return pixels


def _numbers(raw: Any) -> Array:
    """An array or tensor as float32."""
    if hasattr(raw, "detach"):
        raw = raw.detach().cpu()
        raw = raw.float() if str(raw.dtype) == "torch.bfloat16" else raw
    try:
        values = np.asarray(raw)
    except (TypeError, ValueError) as error:
        raise InputError(f"An image must be an array of numbers: {error}") from error
    if values.dtype.kind not in "biuf":
        raise InputError(f"An image must hold numbers, whole or real, but has dtype {values.dtype}.")
    with np.errstate(over="ignore"):
        return values.astype(np.float32)


def _channels_first(pixels: Array) -> Array:
    if pixels.ndim == 2:
        return pixels[None]
    if pixels.ndim != 3:
        raise InputError(
            "An image must be an array (channels, height, width), (height, width, channels) or "
            f"(height, width), but has shape {pixels.shape}."
        )
    return np.ascontiguousarray(np.moveaxis(pixels, -1, 0)) if _has_channels_last(pixels.shape) else pixels


def _has_channels_last(shape: tuple[int, ...]) -> bool:
    return len(shape) == 3 and shape[2] in CHANNELS and shape[0] not in CHANNELS


def image_input(raw: Any, features: str | Sequence[Any] | Array = "patches") -> ImageInput:
    """Cut an image into ``"pixels"``, ``"patches"`` or ``"superpixels"``, or into segments of the user's.

    A number after a colon is the patch's side in pixels, or the number of superpixels. An array
    (height, width) of whole numbers says which segment each pixel belongs to.

    >>> image_input(np.zeros((1, 8, 8)), "patches:4").n_features
    4
    >>> image_input(np.zeros((1, 2, 2)), [[7, 7], [3, 3]]).features
    ('segment 3', 'segment 7')
    """
    pixels = as_pixels(raw)
    if isinstance(features, str):
        labels, granularity = _cut(pixels, features)
        names = _names(labels, granularity)
    else:
        labels, granularity = _renumbered(features, pixels.shape[1:]), "segments"
        names = [f"segment {number}" for number in np.unique(np.asarray(features))]
    is_array = hasattr(raw, "detach") or isinstance(raw, np.ndarray)
    last = is_array and _has_channels_last(tuple(raw.shape))
    if is_array:  # a copy: a stream may hand out one buffer again and again
        raw = np.moveaxis(pixels, 0, -1) if last else pixels
    return ImageInput(
        raw,
        tuple(names),
        granularity,
        (),
        digest(pixels, labels),
        pixels,
        labels,
        last,
    )


def _cut(pixels: Array, features: str) -> tuple[Ints, str]:
    """The feature of each pixel, and the granularity with its size."""
    granularity, _, number = features.partition(":")
    size = _size(number) if number else None
    _, height, width = pixels.shape
    if granularity == "pixels":
        return np.arange(height * width).reshape(height, width), features
    if granularity == "patches":
        size = size or max(1, round(max(height, width) / 8))
        across = -(-width // size)
        rows, columns = np.divmod(np.arange(height * width).reshape(height, width), width)
        return (rows // size) * across + columns // size, f"patches:{size}"
    if granularity == "superpixels":
        size = size or 50
        slic = optional("skimage.segmentation").slic
        colour = pixels.shape[0] == 3
        found = slic(
            np.moveaxis(pixels, 0, -1) if colour else pixels.mean(0),
            n_segments=size,
            start_label=0,
            channel_axis=-1 if colour else None,
            compactness=10.0 if colour else 0.1,
        )
        return _renumbered(found, (height, width)), f"superpixels:{size}"
    raise unknown("image feature", granularity, GRANULARITIES)


def _renumbered(segments: Any, shape: tuple[int, ...]) -> Ints:
    """Segment numbers as 0, 1, 2 …, in the same order, after a check that there is one for each pixel."""
    try:
        numbers = np.asarray(segments.detach().cpu() if hasattr(segments, "detach") else segments)
    except ValueError as error:
        raise InputError(f"`features` must be an array of segment numbers: {error}") from error
    if numbers.dtype.kind not in "biu":
        raise InputError(f"`features` must hold whole numbers of segments, but has dtype {numbers.dtype}.")
    if numbers.shape != shape:
        raise InputError(
            f"`features` must have one segment number for each pixel, an array {shape}, but has shape "
            f"{numbers.shape}."
        )
    return np.unique(numbers, return_inverse=True)[1].reshape(shape).astype(np.int64)


def _size(number: str) -> int:
    require(
        number.isdigit() and int(number) > 0,
        "features",
        "like 'patches:4', a whole number after the colon",
        number,
    )
    return int(number)


def _names(labels: Ints, granularity: str) -> list[str]:
    """Names of features, from the position of their top left corner."""
    first = np.unique(labels, return_index=True)[1]
    rows, columns = np.divmod(first, labels.shape[1])
    name = _SINGULAR[granularity.partition(":")[0]]
    return [f"{name} at row {r}, column {c}" for r, c in zip(rows.tolist(), columns.tolist(), strict=True)]
