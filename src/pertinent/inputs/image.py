"""Images, cut into pixels, grid patches or superpixels."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from pertinent._optional import optional
from pertinent.digests import digest
from pertinent.errors import FileError, InputError, require, unknown
from pertinent.inputs.base import Input
from pertinent.types import Array, Ints

GRANULARITIES = ("patches", "pixels", "superpixels")


@dataclass(frozen=True, eq=False)
class ImageInput(Input):
    """An image (channels, height, width) and the feature that each pixel belongs to."""

    pixels: Array
    labels: Ints
    kind: ClassVar[str] = "image"

    @property
    def group(self) -> Hashable:
        """Images of the same size share batches."""
        return self.kind, self.pixels.shape


def read_image(path: str | Path) -> Array:
    """Read an image file as float32 (channels, height, width) in [0, 1]."""
    path = Path(path)
    if not path.is_file():
        raise FileError(f"There is no image file {str(path)!r}.")
    pil = optional("PIL.Image")
    try:
        with pil.open(path) as image:
            pixels = np.asarray(image if image.mode == "L" else image.convert("RGB"))
    except OSError as error:
        raise FileError(f"{str(path)!r} cannot be read as an image: {error}") from error
    return to_channels_first(pixels).astype(np.float32) / 255.0


def to_channels_first(pixels: Array) -> Array:
    """(height, width) or (height, width, channels) to (channels, height, width)."""
    return pixels[None] if pixels.ndim == 2 else np.moveaxis(pixels, -1, 0)


def as_pixels(raw: Any) -> Array:
    """The pixels of whatever the user gave: an array, tensor, image object or file path."""
    if isinstance(raw, str | Path):
        return read_image(raw)
    if hasattr(raw, "convert") and hasattr(raw, "getbands"):
        return to_channels_first(np.asarray(raw)).astype(np.float32) / 255.0
    pixels = np.asarray(raw.detach().cpu() if hasattr(raw, "detach") else raw)
    if pixels.ndim == 2:
        pixels = pixels[None]
    if pixels.ndim != 3:
        raise InputError(
            "An image must be an array (channels, height, width) or (height, width), "
            f"but has shape {pixels.shape}."
        )
    if not np.issubdtype(pixels.dtype, np.number):
        raise InputError(f"An image must hold numbers, but has dtype {pixels.dtype}.")
    if not np.isfinite(pixels).all():
        raise InputError("The image holds NaN or infinite values.")
    return pixels.astype(np.float32)


def image_input(raw: Any, features: str = "patches") -> ImageInput:
    """Cut an image into ``"pixels"``, ``"patches"`` or ``"superpixels"``.

    A number after a colon is the patch's side in pixels, or the number of superpixels.

    >>> image_input(np.zeros((1, 8, 8)), "patches:4").n_features
    4
    """
    pixels = as_pixels(raw)
    granularity, _, number = features.partition(":")
    size = _size(number) if number else None
    _, height, width = pixels.shape
    if granularity == "pixels":
        labels = np.arange(height * width).reshape(height, width)
    elif granularity == "patches":
        size = size or max(1, round(max(height, width) / 8))
        across = -(-width // size)
        rows, columns = np.divmod(np.arange(height * width).reshape(height, width), width)
        labels = (rows // size) * across + columns // size
    elif granularity == "superpixels":
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
        labels = np.unique(found, return_inverse=True)[1].reshape(height, width)
    else:
        raise unknown("image feature", granularity, GRANULARITIES)
    labels = labels.astype(np.int64)
    names = tuple(_name(labels, granularity))
    return ImageInput(
        pixels if hasattr(raw, "detach") or isinstance(raw, np.ndarray) else raw,
        names,
        granularity if size is None else f"{granularity}:{size}",
        (),
        digest(pixels, labels),
        pixels,
        labels,
    )


def _size(number: str) -> int:
    require(
        number.isdigit() and int(number) > 0,
        "features",
        "like 'patches:4', a whole number after the colon",
        number,
    )
    return int(number)


def _name(labels: Ints, granularity: str) -> list[str]:
    """Names of features, from the position of their top left corner."""
    first = np.unique(labels, return_index=True)[1]
    rows, columns = np.divmod(first, labels.shape[1])
    singular = {"patches": "patch", "pixels": "pixel", "superpixels": "superpixel"}[granularity]
    return [f"{singular} {r},{c}" for r, c in zip(rows, columns, strict=True)]
