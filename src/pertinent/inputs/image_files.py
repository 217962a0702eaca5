"""Image files: reading, decoding of data URIs, and writing of PNG."""

from __future__ import annotations

import struct
import warnings
import zlib
from base64 import b64decode, b64encode
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from pertinent._optional import optional
from pertinent.array_types import Array
from pertinent.errors import FileError, InputError, MissingExtra
from pertinent.files import file_exists

MOST_PIXELS = 64_000_000
"""Maximum number of pixels of an image file: a few compressed kilobytes may hold billions of pixels."""

SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp", ".tif", ".tiff")
"""Suffixes by which a string is recognised as the name of an image file."""

_FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP")
"""Formats of images that may be decoded from a data URI."""

_GREY = ("1", "L", "LA", "La")
_WITH_ALPHA = ("RGBA", "RGBa", "LA", "La", "PA")


def is_image_file(raw: Any) -> bool:
    """Return whether a string names an image file that exists."""
    if not isinstance(raw, str) or not raw.lower().endswith(SUFFIXES):
        return False
    return file_exists(Path(raw))


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
    if not file_exists(path):
        raise FileError(f"There is no image file {str(path)!r}.")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PIL warns about unusual files, and at a larger limit
        with pil.open(path) as image:
            width, height = image.size
            if width * height > MOST_PIXELS:
                raise FileError(
                    f"{str(path)!r} has {width:,} × {height:,} pixels, but at most {MOST_PIXELS:,} are "
                    "read: make it smaller."
                )
            return pil_pixels(operations.exif_transpose(image))


def pil_pixels(image: Any) -> Array:
    """Return a PIL image of any mode as float32 (channels, height, width).

    Grey images have one channel, others have three: red, green and blue. Transparent pixels are blended with
    white. Numbers of 8 or 16 bits become [0, 1]; floats keep their values.
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


def decode_image(uri: str, most_pixels: int) -> Any:
    """Return the PIL image in a data URI; raise an `InputError` for other formats and too many pixels."""
    pil, operations = optional("PIL.Image"), optional("PIL.ImageOps")
    try:
        image = pil.open(BytesIO(b64decode(uri.partition(",")[2], validate=True)), formats=_FORMATS)
        width, height = image.size
    except (pil.DecompressionBombError, pil.DecompressionBombWarning) as error:
        raise InputError(f"The image has more than {most_pixels:,} pixels: make it smaller.") from error
    except Exception as error:  # a damaged image may raise anything in PIL
        raise InputError(f"The image cannot be read: send one of {', '.join(_FORMATS)}.") from error
    if width * height > most_pixels:
        raise InputError(
            f"The image has {width:,} × {height:,} pixels, but this page explains at most "
            f"{most_pixels:,}: make it smaller."
        )
    try:
        image.load()
        return operations.exif_transpose(image)
    except Exception as error:
        raise InputError(f"The image cannot be read: {error}") from error


def data_uri(picture: Array) -> str:
    """Return bytes (height, width, 3 or 4) as a PNG data URI."""
    return "data:image/png;base64," + b64encode(png(picture)).decode()


def png(picture: Array) -> bytes:
    """Return bytes (height, width, 3 or 4) as a PNG file (ISO/IEC 15948) with unfiltered lines."""
    height, width, channels = picture.shape
    lines = np.concatenate([np.zeros((height, 1), np.uint8), picture.reshape(height, -1)], axis=1)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    colour_type = {3: 2, 4: 6}[channels]
    header = struct.pack(">IIBBBBB", width, height, 8, colour_type, 0, 0, 0)
    body = zlib.compress(lines.tobytes(), 6)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", body) + chunk(b"IEND", b"")
