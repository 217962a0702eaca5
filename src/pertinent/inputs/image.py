"""Images, divided into pixels, patches, superpixels or custom segments."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np

from pertinent._optional import optional
from pertinent.array_types import Array, Floats, Ints, Masks
from pertinent.config.fingerprints import digest
from pertinent.config.serialization import PlainData, Shape, decode, expect
from pertinent.errors import InputError, require, unknown
from pertinent.inputs.background import Background
from pertinent.inputs.base import ArrayInput, Features
from pertinent.inputs.image_files import data_uri, decode_image, is_image_file, pil_pixels, read_image
from pertinent.inputs.modality import InputLimits, Modality, modalities

GRANULARITIES = ("patches", "pixels", "superpixels")
CHANNELS = (1, 3, 4)
"""Numbers of channels that identify an array with channels last."""

_NEAR = 0.1
"""Relative deviation from the requested number of superpixels above which a note is added."""

MOST_FEATURES = 2**20
"""Largest number of pixels or patches of an image: a mask takes this number of bytes."""

_SINGULAR = {"patches": "patch", "pixels": "pixel", "superpixels": "superpixel"}


@dataclass(frozen=True, eq=False)
class ImageInput(ArrayInput):
    """An image (channels, height, width) and the feature that each pixel (height, width) belongs to.

    With `channels_last` the model reads (height, width, channels), the order of the user's array.
    `segment_ids` are the numbers of custom segments.
    """

    pixels: Annotated[Array, Shape(None, None, None)]
    labels: Annotated[Ints, Shape(None, None)]
    channels_last: bool = False
    segment_ids: Annotated[Ints, Shape("features")] | None = None
    kind: ClassVar[str] = "image"
    is_picture = True
    values_field = "pixels"
    dtype = np.float32

    @property
    def owners(self) -> Ints:
        """Return the feature of each pixel, the same in all channels."""
        return np.broadcast_to(self.labels, self.pixels.shape)

    @property
    def group(self) -> Hashable:
        """Return the size and layout: images of one size share batches."""
        return self.kind, self.pixels.shape, self.channels_last

    @property
    def content(self) -> Hashable:
        """Return the pixels."""
        return self.pixels.shape, self.pixels.tobytes()

    @property
    def features_argument(self) -> str | Array:
        """Return the granularity, or the custom segments."""
        if self.granularity != "segments":
            return self.granularity
        return self.labels if self.segment_ids is None else self.segment_ids[self.labels]

    def fill(self, masks: Masks, filler: Array) -> Array:
        """Return images (masks, …) in the user's order of axes."""
        filler = filler.astype(self.pixels.dtype)
        return self.as_read(np.where(masks[:, self.labels][:, None], self.pixels, filler))

    def as_read(self, rows: Array) -> Array:
        """Return images in the user's order of axes."""
        return np.moveaxis(rows, 1, -1) if self.channels_last else rows

    def shift(self, change: Array) -> ImageInput:
        """Return a copy shifted by `change`, clipped to the range of pixels."""
        moved = np.clip(self.pixels + change, *pixel_range(self.pixels))
        return self.with_array(moved.astype(self.pixels.dtype))

    def mean(self, background: Any) -> Array:
        """Return the mean of each channel."""
        return np.asarray(self.pixels.mean(axis=(1, 2), keepdims=True))

    def limits(self, background: Any) -> tuple[float, float]:
        """Return the values of black and of white."""
        return pixel_range(self.pixels)

    def absent(self, background: Any) -> float:
        """Return the value of black."""
        return self.limits(background)[0]

    @cached_property
    def unit_pixels(self) -> Floats:
        """Return the pixels in [0, 1] as (height, width, 3); values outside are rescaled."""
        pixels = np.moveaxis(self.pixels.astype(np.float64), 0, -1)
        low, high = pixels.min(), pixels.max()
        if low < 0 or high > 1:
            pixels = (pixels - low) / ((high - low) or 1.0)
        colour = pixels[..., :3] if pixels.shape[-1] in (3, 4) else pixels.mean(axis=-1, keepdims=True)
        return np.broadcast_to(colour, (*colour.shape[:2], 3))

    @property
    def picture(self) -> Array:
        """Return the image as bytes (height, width, 3)."""
        return to_bytes(self.unit_pixels)

    def for_shap(self, scores: Floats) -> tuple[Array, Array, None]:
        """Return the scores divided equally among pixels and channels, and the pixels."""
        pixels = np.moveaxis(self.pixels, 0, -1)
        sizes = np.bincount(self.labels.ravel(), minlength=len(scores))
        shares = (scores / np.maximum(sizes, 1))[self.labels] / pixels.shape[-1]
        return np.repeat(shares[..., None], pixels.shape[-1], axis=-1), pixels, None

    def heatmap(self, scores: Floats) -> Floats:
        """Return the score of each pixel (height, width)."""
        return scores[self.labels]

    def match_annotation(self, annotation: Array) -> Masks | None:
        """Return the features with more than half of their pixels marked by an array (height, width)."""
        if annotation.dtype != np.bool_ or annotation.shape != self.labels.shape:
            return None
        counts = np.bincount(self.labels.ravel(), minlength=self.n_features)
        marked = np.bincount(self.labels[annotation], minlength=self.n_features)
        return np.asarray(2 * marked > counts)

    def restore(self) -> ImageInput:
        """Return the input with its image as `raw`, after a check of its pixels and labels."""
        with np.errstate(over="ignore"):
            pixels = self.pixels.astype(np.float32)
        expect(pixels.size > 0 and bool(np.isfinite(pixels).all()), "pixels", "finite", "NaN or nothing")
        decode(Annotated[Ints, Shape(*pixels.shape[1:])], self.labels, "labels")
        inside = bool(((self.labels >= 0) & (self.labels < self.n_features)).all())
        expect(inside, "labels", f"from 0 to {self.n_features - 1}", "other numbers")
        return super(ImageInput, replace(self, pixels=pixels)).restore()


def to_bytes(unit: Floats) -> Array:
    """Return numbers from 0 to 1 as bytes."""
    return np.asarray((255 * unit).round().astype(np.uint8))


def pixel_range(values: Array) -> tuple[float, float]:
    """Return the range of valid pixels: 0 to 1 or 0 to 255 if the values fit, else their range."""
    low, high = float(values.min()), float(values.max())
    if low < 0:
        return low, high
    return 0.0, next((end for end in (1.0, 255.0) if high <= end), high)


def as_pixels(raw: Any) -> Array:
    """Return the pixels (channels, height, width) of a file, an array, a tensor or a PIL image.

    Arrays and tensors may be (channels, height, width), (height, width, channels) with 1, 3 or 4 channels, or
    (height, width), and keep their values. If both orders of axes are possible, channels come first.
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


def unit_pixels(raw: Any) -> tuple[Array, tuple[str, ...]]:
    """Return the pixels of an image for a module, and a note about their scale if it is ambiguous.

    Bytes (uint8) are scaled to [0, 1], like files and PIL images. Other integers have no conventional scale
    and keep their values, like floats.
    """
    pixels, dtype = as_pixels(raw), str(getattr(raw, "dtype", "")).removeprefix("torch.")
    if dtype == "uint8":
        return pixels / np.float32(255), ("bytes from 0 to 255 were scaled to numbers from 0 to 1",)
    if dtype.startswith(("int", "uint")):
        return pixels, (f"integers ({dtype}) were not scaled: the model gets {_range_of(pixels)}",)
    return pixels, ()


def _with_channels(pixels: Array, channels: int | None) -> Array:
    n = len(pixels)
    if channels is None or n == channels:
        return pixels
    if n == 1:
        return np.repeat(pixels, channels, axis=0)
    if channels == 1 and n == 3:
        return np.asarray(pixels.mean(axis=0, keepdims=True))
    raise InputError(f"The image has {n} channels, but the module reads {channels}: convert it.")


def _range_of(pixels: Array) -> str:
    return f"numbers from {pixels.min():g} to {pixels.max():g}"


def _numbers(raw: Any) -> Array:
    """Return an array or tensor as float32."""
    if hasattr(raw, "detach"):
        raw = raw.detach().cpu()
        raw = raw.float() if str(raw.dtype) == "torch.bfloat16" else raw
    try:
        values = np.asarray(raw)
    except (TypeError, ValueError) as error:
        raise InputError(f"An image must be an array of numbers: {error}") from error
    if values.dtype.kind not in "biuf":
        raise InputError(f"An image must hold integers or floats, but has dtype {values.dtype}.")
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


def image_input(raw: Any, features: Features = "patches") -> ImageInput:
    """Divide an image into ``"pixels"``, ``"patches"`` or ``"superpixels"``, or into custom segments.

    A number after a colon is the side of patches in pixels, or the number of superpixels. Custom segments are
    an array (height, width) of integers, the segment of each pixel.

    >>> image_input(np.zeros((1, 8, 8)), "patches:4").n_features
    4
    >>> image_input(np.zeros((1, 2, 2)), [[7, 7], [3, 3]]).features
    ('segment 3', 'segment 7')
    """
    pixels, ids = as_pixels(raw), None
    notes: tuple[str, ...] = ()
    if isinstance(features, str):
        labels, granularity = _cut(pixels, features)
        names = _names(labels, granularity)
        unit, _, requested = granularity.partition(":")
        if unit == "superpixels" and abs(len(names) / int(requested) - 1) > _NEAR:
            notes = (f"SLIC made {len(names):,} superpixels of this image, not {int(requested):,}",)
    else:
        numbers, labels = _renumber(features, pixels.shape[1:])
        granularity, names = "segments", [f"segment {number}" for number in numbers]
        ids = numbers.astype(np.int64)
    is_array = hasattr(raw, "detach") or isinstance(raw, np.ndarray)
    is_last = is_array and _has_channels_last(tuple(raw.shape))
    if is_array:  # a copy: a stream may reuse one buffer
        raw = np.moveaxis(pixels, 0, -1) if is_last else pixels
    return ImageInput(
        raw, tuple(names), granularity, notes, digest(pixels, labels), pixels, labels, is_last, ids
    )


def _cut(pixels: Array, features: str) -> tuple[Ints, str]:
    """Return the feature of each pixel, and the granularity with its size."""
    granularity, _, number = features.partition(":")
    is_size = not number or (number.isdigit() and int(number) > 0)
    require(is_size, "features", "like 'patches:4', an integer after the colon", number)
    size = int(number) if number else None
    _, height, width = pixels.shape
    n_features = height * width
    if granularity == "patches":
        size = size or max(1, round(max(height, width) / 8))
        n_features = -(-height // size) * -(-width // size)
    if granularity != "superpixels" and n_features > MOST_FEATURES:
        raise InputError(
            f"{granularity.capitalize()} of an image of {height:,} × {width:,} pixels would be "
            f"{n_features:,} features, but at most {MOST_FEATURES:,} can be explained: choose 'patches', "
            "'superpixels:50', or a smaller image."
        )
    if granularity == "pixels":
        return np.arange(height * width).reshape(height, width), features
    if granularity == "patches":
        assert size is not None
        across = -(-width // size)
        rows, columns = np.divmod(np.arange(height * width).reshape(height, width), width)
        return (rows // size) * across + columns // size, f"patches:{size}"
    if granularity == "superpixels":
        size = size or 50
        slic = optional("skimage.segmentation").slic
        colour = pixels.shape[0] == 3
        segments = slic(
            np.moveaxis(pixels, 0, -1) if colour else pixels.mean(0),
            n_segments=size,
            start_label=0,
            channel_axis=-1 if colour else None,
            compactness=10.0 if colour else 0.1,
        )
        return _renumber(segments, (height, width))[1], f"superpixels:{size}"
    raise unknown("image feature", granularity, GRANULARITIES)


def _renumber(segments: Any, shape: tuple[int, ...]) -> tuple[Ints, Ints]:
    """Return the distinct segment numbers, and for each pixel the index of its number among them."""
    try:
        numbers = np.asarray(segments.detach().cpu() if hasattr(segments, "detach") else segments)
    except ValueError as error:
        raise InputError(f"`features` must be an array of segment numbers: {error}") from error
    if numbers.dtype.kind not in "biu":
        raise InputError(
            f"`features` must hold integers, the segment of each pixel, but has dtype {numbers.dtype}."
        )
    if numbers.shape != shape:
        raise InputError(
            f"`features` must have one segment number for each pixel, an array {shape}, but has shape "
            f"{numbers.shape}."
        )
    ids, indices = np.unique(numbers, return_inverse=True)
    return ids, indices.reshape(shape).astype(np.int64)


def _names(labels: Ints, granularity: str) -> list[str]:
    """Return the names of features, which contain the position of their first pixel."""
    first = np.unique(labels, return_index=True)[1]
    rows, columns = np.divmod(first, labels.shape[1])
    name = _SINGULAR[granularity.partition(":")[0]]
    return [f"{name} at row {r}, column {c}" for r, c in zip(rows.tolist(), columns.tolist(), strict=True)]


@modalities.register("image")
@dataclass(frozen=True)
class ImageModality(Modality):
    """Images: arrays, files and PIL images."""

    summary = "an image: an array, the path of a file, or a PIL image"
    plural = "images"
    granularities = GRANULARITIES
    nouns = ("image", "part")
    flag = "image"
    in_files = False
    input_type = ImageInput
    features = "patches"
    dimensions = (2, 3)
    precedence = 1
    default_removal = "mean"
    scorer = "pertinent.learners.networks.image_scorer:ImageScorer"
    drawing = "pertinent.rendering.drawings.image:ImageDrawing"

    def recognises(self, raw: Any) -> bool:
        """Return whether `raw` is a path, the name of an image file, a PIL image, or a 2D or larger array."""
        is_array = hasattr(raw, "shape") and len(raw.shape) > 1 and not hasattr(raw, "iterrows")
        return is_array or isinstance(raw, Path) or hasattr(raw, "getbands") or is_image_file(raw)

    def prepare(self, raw: Any, features: Features | None = None) -> ImageInput:
        """Divide an image into patches by default."""
        return image_input(raw, self.features if features is None else features)

    def prepare_for_module(self, raw: Any, features: Features | None, channels: int | None) -> ImageInput:
        """Divide an image with the module's number of channels, bytes scaled to [0, 1]."""
        pixels, notes = unit_pixels(raw)
        input = self.prepare(_with_channels(pixels, channels), features)
        return replace(input, channels_last=False, notes=(*notes, *input.notes))

    def to_fields(self, input: ImageInput) -> dict[str, Any]:
        """Return the image as a data URI."""
        return {"image": data_uri(input.picture)}

    def from_fields(self, fields: Mapping[str, Any], limits: InputLimits) -> Any:
        """Return the PIL image in a data URI."""
        return decode_image(PlainData(fields, "input").text("image"), limits.pixels)

    def make_background(self, rows: Any, prepare: Callable[[Any], Any]) -> Background:
        """Return a background of images of one size."""
        images = self.split(rows)
        return Background.from_images([prepare(image) for image in ([rows] if images is None else images)])
