"""Images: the image itself, the heat map over it, and the features that a set keeps."""

from __future__ import annotations

import struct
import zlib
from base64 import b64encode
from collections.abc import Iterator
from io import BytesIO
from typing import Any

import numpy as np
from rich.console import Console, RenderableType
from rich.text import Text

from pertinent._optional import optional
from pertinent.array_types import Array, Floats, Masks
from pertinent.errors import MissingExtra
from pertinent.inputs.image import ImageInput
from pertinent.rendering import pairs
from pertinent.rendering import wording as say
from pertinent.rendering.colours import MARKS, Look, mark_numbers, rgb
from pertinent.rendering.drawings import Drawing
from pertinent.rendering.html import Markup, from_template
from pertinent.rendering.panels import Panel

_OUTLINE = np.array([0x5C, 0x62, 0x6D], dtype=np.uint8)
_STEEP, _OUTLINED = 0.12, 0.08
"""The least difference of neighbours that an outline divides, as a share of the range of brightness; and the
largest share of the pixels that are outlines."""

_LARGE, _SMALL, _COMPACT, _THUMBNAIL = 512, 192, 128, 32
"""The longest sides of pictures in HTML, in pixels."""

_FINEST = 64
"""The longest side of the grid of features of a picture on the web page."""

_WIDEST = 32
"""The longest side of a picture in a terminal, in characters."""

_OVER = 0.7
"""The opacity of a heat map that lies over its image on a page of many."""

_PAIRS = 4
"""How many pairs of features have a picture."""

_RAMP = np.array(list(" .:-=+*#%@"))


class ImageDrawing(Drawing):
    """Draws an image and its heat map."""

    lists_features = False
    clips_outliers = True

    def beginning(self, input: Any) -> str:
        """A small picture."""
        return from_template("thumbnail.html", source=data_uri(resized(original(input), _THUMBNAIL)))

    def plain(self, input: Any) -> dict[str, Any]:
        """The picture, and a grid that says which feature a click on it means."""
        step = -(-max(input.labels.shape) // _FINEST)
        return {
            "image": data_uri(resized(original(input), _LARGE)),
            "grid": input.labels[::step, ::step].tolist(),
        }

    def heat_map(self, input: Any, share: Floats) -> str:
        """The heat map in the colours of the legend."""
        return data_uri(rgb(resized(share[input.labels], _LARGE)))

    def terminal(
        self, panel: Panel, console: Console, width: int, *, colour: bool
    ) -> Iterator[RenderableType]:
        """The heat map."""
        input: Any = panel.explanation.input
        heat = panel.share[input.labels]
        yield half_blocks(rgb(heat)) if colour else _characters(MARKS, mark_numbers(_halved(heat)))

    def terminal_input(self, input: Any, *, colour: bool) -> RenderableType:
        """The image; in characters it is denser where it is brighter."""
        if colour:
            return half_blocks(original(input))
        light = _halved(original(input).mean(axis=-1) / 255)
        return _characters(_RAMP, np.minimum(light * len(_RAMP), len(_RAMP) - 1).astype(np.int64))

    def html(self, panel: Panel, *, small: bool = False) -> Markup:
        """The heat map; if it is small, beside the marked features; on a page of many, over the image."""
        if panel.look.compact and not small:
            return _overlay(panel)
        e, (_, heat, top) = panel.explanation, self.pictures(panel)
        best = ", ".join(f"{e.features[i]} {say.score_text(e, i)}" for i in e.ranking[:3].tolist())
        opacity = panel.look.opacity
        caption = "heat map" if opacity is None else f"heat map, {100 * opacity:.0f}% over the image"
        if not small:
            return _figure(heat, f"Heat map; the most important: {best}", caption, kind="over")
        alt = f"Heat map for {panel.name}; the most important: {best}"
        return _figure(resized(heat, _SMALL), alt, caption) + _figure(
            resized(top, _SMALL), f"The top features for {panel.name}", f"the top {panel.marked.sum():,}"
        )

    def html_input(self, input: Any) -> Markup:
        """The image as it was given."""
        height, width = input.labels.shape
        return _figure(original(input), f"The image, {width} × {height} pixels", "image")

    def html_set(self, input: Any, mask: Masks, caption: str) -> Markup:
        """The features of a set, the others faded."""
        return _figure(kept(input, mask), f"The {mask.sum()} features kept", caption)

    def html_pairs(self, panel: Panel) -> Markup:
        """The two features of each of the strongest pairs, the rest of the image faded."""
        e = panel.explanation
        input: Any = e.input
        pictures = []
        for i, j in pairs.shown_pairs(e, _PAIRS).tolist():
            both = np.isin(np.arange(len(e.features)), [i, j])
            pictures.append(_figure(kept(input, both), pairs.names_text(e, i, j), pairs.value_text(e, i, j)))
        return Markup('<div class="pictures small">{}</div>').format(Markup().join(pictures))

    def pictures(self, panel: Panel) -> tuple[Array, ...]:
        """The image, its heat map, and the marked features."""
        input: Any = panel.explanation.input
        heat = painted(input, panel.share[input.labels], panel.look)
        return original(input), heat, kept(input, panel.marked)


def original(input: ImageInput) -> Array:
    """The image as bytes (height, width, 3); values outside [0, 1] are rescaled to it."""
    return _to_bytes(_unit(input))


def painted(input: ImageInput, heat: Floats, look: Look) -> Array:
    """A heat (height, width) in [−1, 1] in the colours of the legend, with the outlines of the image.

    A small image is enlarged, so that its outlines are thin. With an opacity the heat is mixed with the grey
    image instead.
    """
    colours, light = look.rgb(heat), _unit(input).mean(axis=-1)
    if look.opacity is not None:
        return _to_bytes(look.opacity * colours / 255 + (1 - look.opacity) * light[..., None])
    times = max(1, _LARGE // 2 // max(heat.shape))
    found = np.repeat(np.repeat(colours, times, axis=0), times, axis=1)
    found[_outlines(light, times)] = _OUTLINE
    return found


def _outlines(light: Floats, times: int) -> Masks:
    """Where an image that is enlarged so many times has lines.

    In a large image where brightness changes most; in a small one between its bright and its dark pixels.
    """
    light = light if times == 1 else light > (light.min() + light.max()) / 2
    light = light.astype(np.float64)
    steps = np.stack([np.abs(np.diff(light, axis=a, append=light.take([-1], axis=a))) for a in (0, 1)])
    steepest = float(np.quantile(steps.max(axis=0), 1 - _OUTLINED)) if times == 1 else 0.0
    below, beside = steps > max(_STEEP * np.ptp(light), steepest)
    found = np.zeros((light.shape[0] * times, light.shape[1] * times), dtype=np.bool_)
    for side in range(times - max(1, times // 10), times):
        found[side::times] |= below.repeat(times, axis=1)
        found[:, side::times] |= beside.repeat(times, axis=0)
    return found


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


def half_blocks(picture: Array) -> Text:
    """A picture of the terminal's size, two pixels to a character."""
    picture = _even(picture)
    text = Text(no_wrap=True)
    for upper, lower in zip(picture[::2], picture[1::2], strict=True):
        for top, bottom in zip(upper, lower, strict=True):
            text.append("▀", style=f"#{bytes(top).hex()} on #{bytes(bottom).hex()}")
        text.append("\n")
    text.rstrip()
    return text


def _figure(picture: Array, alt: str, caption: str, kind: str = "") -> Markup:
    """A picture with its alternative text and a caption; the pixels of a small one can be seen."""
    picture = resized(picture, _LARGE)
    kind = f"{kind} {'coarse' if max(picture.shape) < 200 else ''}".strip()
    return from_template("figure.html", source=data_uri(picture), alt=alt, caption=caption, kind=kind)


def _overlay(panel: Panel) -> Markup:
    """The heat map over the image, both in few bytes."""
    e = panel.explanation
    input: Any = e.input
    opacity = _OVER if panel.look.opacity is None else panel.look.opacity
    return from_template(
        "overlay.html",
        image=_small_uri(resized(original(input), _COMPACT)),
        heat=data_uri(panel.look.rgb(resized(panel.share[input.labels], _COMPACT // 2))),
        opacity=opacity,
        best=", ".join(f"{e.features[i]} {say.score_text(e, i)}" for i in e.ranking[:3].tolist()),
    )


def _small_uri(picture: Array) -> str:
    """A picture as a data URI: as JPEG if that is smaller and there is Pillow, else as PNG."""
    found = data_uri(picture)
    try:
        image, file = optional("PIL.Image").fromarray(picture), BytesIO()
    except MissingExtra:
        return found
    image.save(file, "JPEG", quality=80)
    return min(found, "data:image/jpeg;base64," + b64encode(file.getvalue()).decode(), key=len)


def _even(picture: Array) -> Array:
    """A picture of the terminal's size with an even number of rows."""
    picture = resized(picture, _WIDEST, least=16)
    return np.concatenate([picture, picture[-1:]]) if len(picture) % 2 else picture


def _halved(picture: Floats) -> Floats:
    """A picture of the terminal's size with half the rows, because characters are twice as high as wide."""
    picture = _even(picture)
    return (picture[::2] + picture[1::2]) / 2


def _characters(alphabet: Array, picture: Array) -> Text:
    return Text("\n".join("".join(row) for row in alphabet[picture]), no_wrap=True)


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
