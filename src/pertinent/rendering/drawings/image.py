"""Drawings of images: the image, the heat map over it, and the features that a set keeps."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console, RenderableType
from rich.text import Text

from pertinent._optional import optional
from pertinent.array_types import Array, Floats, Ints, Masks
from pertinent.errors import MissingExtra
from pertinent.inputs.image import ImageInput, to_bytes
from pertinent.inputs.image_files import data_uri
from pertinent.inputs.modality import InputLimits
from pertinent.rendering import pairs
from pertinent.rendering import wording as say
from pertinent.rendering.colours import MARKS, NEUTRAL, Look, mark_numbers, rgb
from pertinent.rendering.drawings import Drawing
from pertinent.rendering.html import Markup, from_template
from pertinent.rendering.panels import Panel

if TYPE_CHECKING:
    from pertinent.models.base import Model

_LARGE, _SMALL, _COMPACT, _THUMBNAIL = 512, 192, 128, 32
"""Longest sides of pictures in HTML, in pixels."""

_COARSE = 200
"""Pictures of fewer pixels are enlarged without smoothing."""

_FINEST = 128
"""Longest side of the grid for the outlines of features."""

_WIDEST = 32
"""Longest side of a picture in a terminal, in characters."""

_PAIRS = 4
"""Number of feature pairs with a picture."""

_RAMP = np.array(list(" .:-=+*#%@"))

_STRENGTH = 0.6
"""Opacity of the grey image under a heat map, as in report.css."""

_VIOLET, _BORDER = "7a3fd0", 5
"""Colour of the border of highlighted regions, which is rare in images, and its width in pixels."""

_MARK = 0.6
"""Size of the checkbox of an irregular region, as a share of the side of a square with equal area."""


class ImageDrawing(Drawing):
    """Drawing of an image and its heat map."""

    lists_features = False

    def beginning(self, input: Any) -> str:
        """Return a thumbnail."""
        return from_template("thumbnail.html", source=_picture_uri(input, _THUMBNAIL))

    def terminal(
        self, panel: Panel, console: Console, width: int, *, colour: bool
    ) -> Iterator[RenderableType]:
        """Yield the heat map."""
        input: Any = panel.explanation.input
        heat = panel.share[input.labels]
        yield half_blocks(rgb(heat)) if colour else _characters(MARKS, mark_numbers(_halve(heat)))

    def terminal_input(self, input: Any, *, colour: bool) -> RenderableType:
        """Return the image; characters are denser where it is brighter."""
        if colour:
            return half_blocks(input.picture)
        light = _halve(input.picture.mean(axis=-1) / 255)
        return _characters(_RAMP, np.minimum(light * len(_RAMP), len(_RAMP) - 1).astype(np.int64))

    def html(self, panel: Panel, *, small: bool = False) -> Markup:
        """Return the heat map over the image; if `small`, followed by the marked features."""
        e, look = panel.explanation, panel.look
        input: Any = e.input
        best = ", ".join(f"{e.features[i]} {say.score_text(e, i)}" for i in e.ranking[:3].tolist())
        name = f" for {panel.name}" if small else ""
        size = _COMPACT if look.compact else _SMALL if small else _LARGE
        overlay = from_template(
            "overlay.html",
            image=_picture_uri(input, size),
            heat=data_uri(look.layer(resize(panel.share[input.labels], size))),
            alt=f"Heat map{name}; the most important: {best}",
            caption="heat map over the image",
            is_coarse=max(input.labels.shape) < _COARSE,
            areas=_areas(input) if look.interactive else None,
            titles=[f"{name} {score}" for name, score in zip(e.features, say.score_texts(e), strict=True)],
        )
        if not small:
            return overlay
        top = resize(kept(input, panel.marked), _SMALL)
        return overlay + _figure(top, f"The top features{name}", f"the top {panel.marked.sum():,}")

    def html_input(self, input: Any) -> Markup:
        """Return the original image."""
        height, width = input.labels.shape
        return _figure(input.picture, f"The image, {width} × {height} pixels", "image")

    def html_set(self, input: Any, mask: Masks, caption: str) -> Markup:
        """Return the image with the features outside the set faded."""
        return _figure(kept(input, mask), f"The {mask.sum()} features kept", caption)

    def html_pairs(self, panel: Panel) -> Markup:
        """Return a picture of each of the strongest pairs, with the rest of the image faded."""
        e = panel.explanation
        input: Any = e.input
        pictures = []
        for i, j in pairs.shown_pairs(e, _PAIRS).tolist():
            both = np.isin(np.arange(len(e.features)), [i, j])
            pictures.append(_figure(kept(input, both), pairs.names_text(e, i, j), pairs.value_text(e, i, j)))
        return Markup('<div class="pictures small">{}</div>').format(Markup().join(pictures))

    def form(self, fields: Mapping[str, Any], model: Model, limits: InputLimits) -> Markup:
        """Return a drop target for an image file."""
        return from_template("form_image.html", fields=fields)

    def html_study(self, input: Any, chosen: Masks, *, alone: bool = False, can_mark: bool = False) -> Markup:
        """Return the image with the chosen regions framed; other regions are faded, or grey if `alone`."""
        if can_mark:
            picture = resize(input.picture, _LARGE, least=_LARGE)
        elif alone:
            grey = np.frombuffer(bytes.fromhex(NEUTRAL[1:]), dtype=np.uint8)
            inside = chosen[input.labels]
            picture = _add_border(np.where(inside[..., None], input.picture, grey), inside)
        else:
            picture = _add_border(kept(input, chosen), chosen[input.labels])
        shown = Markup('<img src="{}" alt="The image">').format(data_uri(picture))
        boxes = [_box(input, i) for i in range(input.n_features)] if can_mark else []
        return from_template("study_picture.html", picture=shown, boxes=boxes)

    def pictures(self, panel: Panel) -> tuple[Array, ...]:
        """Return the image, its heat map, and the marked features."""
        input: Any = panel.explanation.input
        return input.picture, paint(input, panel.share[input.labels], panel.look), kept(input, panel.marked)


def paint(input: ImageInput, heat: Floats, look: Look) -> Array:
    """Return the image, grey and pale, under a heat map (height, width) in [−1, 1], as bytes."""
    layer = look.layer(heat) / 255
    pale = 1 - _STRENGTH * (1 - input.unit_pixels.mean(axis=-1, keepdims=True))
    return to_bytes(layer[..., 3:] * layer[..., :3] + (1 - layer[..., 3:]) * pale)


def kept(input: ImageInput, mask: Masks) -> Array:
    """Return the image with the features outside the mask faded to grey."""
    pixels = input.unit_pixels
    return to_bytes(np.where(mask[input.labels][..., None], pixels, 0.2 * pixels + 0.75))


def resize(picture: Array, most: int, *, least: int = 0) -> Array:
    """Return a picture whose longer side is reduced to at most `most` pixels, or enlarged to `least`."""
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


def half_blocks(picture: Array) -> Text:
    """Return a picture in the terminal's size, with two pixels per character."""
    picture = _even(picture)
    text = Text(no_wrap=True)
    for upper, lower in zip(picture[::2], picture[1::2], strict=True):
        for top, bottom in zip(upper, lower, strict=True):
            text.append("▀", style=f"#{bytes(top).hex()} on #{bytes(bottom).hex()}")
        text.append("\n")
    text.rstrip()
    return text


@dataclass(frozen=True)
class Areas:
    """Outline of each feature as an SVG path, for an SVG of this size."""

    width: int
    height: int
    paths: tuple[str, ...]


@lru_cache(8)
def _areas(input: ImageInput) -> Areas:
    """Return the areas of an image's features, on a grid of at most `_FINEST` cells."""
    step = -(-max(input.labels.shape) // _FINEST)
    labels = input.labels[::step, ::step]
    paths = [""] * input.n_features
    for y, row in enumerate(labels):
        starts = np.flatnonzero(np.diff(row, prepend=-1)).tolist()
        for start, end in zip(starts, [*starts[1:], len(row)], strict=True):
            paths[row[start]] += f"M{start} {y}h{end - start}v1h{start - end}z"
    return Areas(labels.shape[1], labels.shape[0], tuple(paths))


@lru_cache(32)
def _picture_uri(input: ImageInput, size: int) -> str:
    """Return the image as a data URI: JPEG if that is smaller and Pillow is installed, else PNG."""
    picture = resize(input.picture, size)
    uri = data_uri(picture)
    try:
        image, file = optional("PIL.Image").fromarray(picture), BytesIO()
    except MissingExtra:
        return uri
    image.save(file, "JPEG", quality=85)
    return min(uri, "data:image/jpeg;base64," + b64encode(file.getvalue()).decode(), key=len)


def _figure(picture: Array, alt: str, caption: str) -> Markup:
    """Return a picture with alternative text and a caption."""
    picture = resize(picture, _LARGE)
    kind = "coarse" if max(picture.shape) < _COARSE else ""
    return from_template("figure.html", source=data_uri(picture), alt=alt, caption=caption, kind=kind)


def _box(input: ImageInput, feature: int) -> tuple[int, str, float, float, float, float]:
    """Return a feature, its name, and its checkbox: its bounding box if it fills it, else its middle."""
    inside = input.labels == feature
    rows, columns = np.nonzero(inside)
    height, width = inside.shape
    top, bottom, left, right = rows.min(), rows.max() + 1, columns.min(), columns.max() + 1
    if len(rows) < (bottom - top) * (right - left):
        side = _MARK * len(rows) ** 0.5
        nearest = np.argmin((rows - rows.mean()) ** 2 + (columns - columns.mean()) ** 2)
        middle = rows[nearest] + 0.5, columns[nearest] + 0.5
        top, bottom = middle[0] - side / 2, middle[0] + side / 2
        left, right = middle[1] - side / 2, middle[1] + side / 2
    shares = (left / width, top / height, (right - left) / width, (bottom - top) / height)
    return (feature, input.features[feature], *map(float, shares))  # type: ignore[return-value]


def _add_border(picture: Array, inside: Masks) -> Array:
    """Return the picture at full size with a border around the mask `inside`."""
    picture = resize(picture, _LARGE, least=_LARGE).copy()
    mask = np.pad(resize(inside.astype(np.float64), _LARGE, least=_LARGE) > 0.5, _BORDER)
    height, width = picture.shape[:2]
    moves = [(_BORDER, 0), (-_BORDER, 0), (0, _BORDER), (0, -_BORDER)]
    inner = np.logical_and.reduce([np.roll(mask, move, axis=(0, 1)) for move in moves])
    edge = (mask & ~inner)[_BORDER : _BORDER + height, _BORDER : _BORDER + width]
    picture[edge] = np.frombuffer(bytes.fromhex(_VIOLET), dtype=np.uint8)
    return picture


def _even(picture: Array) -> Array:
    """Return a picture in the terminal's size with an even number of rows."""
    picture = resize(picture, _WIDEST, least=16)
    return np.concatenate([picture, picture[-1:]]) if len(picture) % 2 else picture


def _halve(picture: Floats) -> Floats:
    """Return a picture in the terminal's size with half the rows, because characters are tall."""
    picture = _even(picture)
    return (picture[::2] + picture[1::2]) / 2


def _characters(alphabet: Array, picture: Ints) -> Text:
    return Text("\n".join("".join(row) for row in alphabet[picture]), no_wrap=True)
