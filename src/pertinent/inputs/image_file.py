"""Reading image files and PIL images of any mode as floats in [0, 1]."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from pertinent._optional import optional
from pertinent.array_types import Array
from pertinent.errors import FileError, InputError, MissingExtra

MOST_PIXELS = 64_000_000
"""The largest image that is read from a file: a few compressed kilobytes may hold billions of pixels."""

SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp", ".tif", ".tiff")
"""The suffixes by which a string is recognised as the name of an image file."""

_GREY = ("1", "L", "LA", "La")
_WITH_ALPHA = ("RGBA", "RGBa", "LA", "La", "PA")


def is_image_file(raw: Any) -> bool:
    """Whether a string names an image file that exists."""
    if not isinstance(raw, str) or not raw.lower().endswith(SUFFIXES):
        return False
    try:
        return Path(raw).is_file()
    except (OSError, ValueError):
        return False


def read_image(path: str | Path) -> Array:
    """Read an image file as float32 (channels, height, width), upright."""
    path = Path(path)
    try:
        return _read(path)
    except (FileError, MissingExtra):
        raise
    except Exception as error:  # a damaged file may raise anything in PIL
        reason = str(error) or type(error).__name__
        raise FileError(f"{str(path)!r} cannot be read as an image: {reason}") from error


def _read(path: Path) -> Array:
    pil, operations = optional("PIL.Image"), optional("PIL.ImageOps")
    if not path.is_file():
        raise FileError(f"There is no image file {str(path)!r}.")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what PIL finds odd in a file, and of its own, larger limit
        with pil.open(path) as image:
            width, height = image.size
            if width * height > MOST_PIXELS:
                raise FileError(
                    f"{str(path)!r} has {width:,} × {height:,} pixels, but at most {MOST_PIXELS:,} are "
                    "read: make it smaller."
                )
            return pil_pixels(operations.exif_transpose(image))


def pil_pixels(image: Any) -> Array:
    """A PIL image of any mode as float32 (channels, height, width).

    Grey images have one channel, all others three: red, green and blue. What is transparent is laid on
    white. Numbers of 8 or 16 bits become [0, 1]; floats stay as they are.
    """
    if image.mode == "F":
        return np.array(image, dtype=np.float32)[None]
    if image.mode == "I" or image.mode.startswith("I;16"):
        values = np.asarray(image)
        if values.size and (values.min() < 0 or values.max() >= 2**16):
            raise InputError("The image holds numbers of more than 16 bits: give its pixels as an array.")
        return _scaled(values, 2**16 - 1)[None]
    grey = image.mode in _GREY
    if image.mode in _WITH_ALPHA or "transparency" in image.info:
        image = image.convert("RGBA")
        white = optional("PIL.Image").new("RGBA", image.size, "white")
        image = optional("PIL.Image").alpha_composite(white, image)
    pixels = np.asarray(image.convert("L" if grey else "RGB"))
    return _scaled(pixels[None] if grey else np.moveaxis(pixels, -1, 0), 255)


def _scaled(values: Array, largest: int) -> Array:
    scaled = values.astype(np.float32, order="C")
    scaled /= largest
    return scaled
