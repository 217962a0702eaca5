"""Images to look at: the original, the heat map over it, and the features that a set keeps."""

from __future__ import annotations

import struct
import zlib
from base64 import b64encode

import numpy as np

from pertinent.array_types import Array, Floats, Masks
from pertinent.inputs.image import ImageInput
from pertinent.report import facts as say
from pertinent.report.colours import full_colour, rgb
from pertinent.results.explanation import Explanation

_FAINTEST = 0.72
"""The brightness of a black pixel, so that its colour still matches the legend."""


def original(input: ImageInput) -> Array:
    """The image as bytes (height, width, 3); values outside [0, 1] are rescaled to it."""
    return _to_bytes(_unit(input))


def heat(explanation: Explanation) -> Floats:
    """How strongly each pixel is coloured, in [−1, 1]; outliers are clipped."""
    assert isinstance(explanation.input, ImageInput)
    share = say.coloured_scores(explanation)
    return np.clip(share / full_colour(share), -1, 1)[explanation.input.labels]


def heat_map(explanation: Explanation) -> Array:
    """The heat as colours, darkened where the image is dark."""
    assert isinstance(explanation.input, ImageInput)
    return painted(explanation.input, heat(explanation))


def painted(input: ImageInput, heat: Floats) -> Array:
    """A heat (height, width) in [−1, 1] as colours, darkened where the image is dark."""
    light = _FAINTEST + (1 - _FAINTEST) * _unit(input).mean(axis=-1, keepdims=True)
    colours: Array = rgb(heat) / 255
    return _to_bytes(colours * light)


def clipping(explanation: Explanation) -> str:
    """Which scores exceed the heat map's scale; empty if none does."""
    share = say.coloured_scores(explanation)
    full = full_colour(share)
    beyond = int((np.abs(share) > full).sum())
    if not beyond:
        return ""
    largest = full * float(np.abs(np.nan_to_num(explanation.scores)).max())
    return f"clipped at ±{largest:.3g}: {beyond:,} of {len(share):,} scores exceed it"


def kept(input: ImageInput, mask: Masks) -> Array:
    """The image with the features outside the mask faded to grey."""
    return _to_bytes(np.where(mask[input.labels][..., None], _unit(input), 0.2 * _unit(input) + 0.75))


def resized(picture: Array, most: int, *, least: int = 0) -> Array:
    """A picture whose longer side is at most `most` pixels; a small one is enlarged towards `least`."""
    longer = max(picture.shape[:2])
    if longer > most:
        step = -(-longer // most)
        height, width = (-(-side // step) for side in picture.shape[:2])
        missing = (height * step - picture.shape[0], width * step - picture.shape[1])
        padding = [(0, missing[0]), (0, missing[1]), *[(0, 0)] * (picture.ndim - 2)]
        blocks = np.pad(picture, padding, mode="edge").reshape(height, step, width, step, *picture.shape[2:])
        means = blocks.mean(axis=(1, 3))
        return np.asarray(means.round().astype(np.uint8) if picture.dtype == np.uint8 else means)
    times = max(1, least // longer)
    return picture.repeat(times, axis=0).repeat(times, axis=1)


def data_uri(picture: Array) -> str:
    """Bytes (height, width, 3) as a PNG data URI."""
    return "data:image/png;base64," + b64encode(png(picture)).decode()


def png(picture: Array) -> bytes:
    """Bytes (height, width, 3) as a PNG file (ISO/IEC 15948), each line unfiltered."""
    height, width, _ = picture.shape
    lines = np.concatenate([np.zeros((height, 1), np.uint8), picture.reshape(height, -1)], axis=1)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = zlib.compress(lines.tobytes(), 9)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def _unit(input: ImageInput) -> Floats:
    """The pixels in [0, 1], three channels last."""
    pixels = np.moveaxis(input.pixels.astype(np.float64), 0, -1)
    low, high = pixels.min(), pixels.max()
    if low < 0 or high > 1:
        pixels = (pixels - low) / ((high - low) or 1.0)
    colour = pixels[..., :3] if pixels.shape[-1] in (3, 4) else pixels.mean(axis=-1, keepdims=True)
    return np.broadcast_to(colour, (*colour.shape[:2], 3))


def _to_bytes(unit: Floats) -> Array:
    return np.asarray((255 * unit).round().astype(np.uint8))
