"""Transformers image classifiers with their image processors."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from pertinent.array_types import Array
from pertinent.errors import InputError, ModelError
from pertinent.inputs.base import Features
from pertinent.inputs.image import ImageInput, as_pixels, image_input
from pertinent.models.heads.base import RegisteredHead, heads
from pertinent.models.heads.text_classification import natural_output, own_names
from pertinent.models.module import ModuleModel
from pertinent.models.unsupported import check_supported


@heads.register("image-classification")
class ImageClassification(RegisteredHead):
    """The head of ``AutoModelForImageClassification``."""

    summary = "class probabilities, label probabilities or values of an image"
    tasks = ("image-classification",)
    auto_class = "AutoModelForImageClassification"
    kind = "image"
    reader = "image_processor"

    @classmethod
    def suits(cls, model: Any) -> bool:
        """Return ``True``; raise a `ModelError` for a model that detects or segments objects."""
        check_supported(model)
        return True

    @classmethod
    def options(cls) -> list[str]:
        """Return what the columns mean, and the images that baselines are drawn from."""
        return ["classes", "names", "output", "unit", "background"]

    @classmethod
    def wrap(cls, model: Any, reader: Any, **options: Any) -> ImageClassifierModel:
        """Return the classifier with its image processor."""
        return ImageClassifierModel(model, reader, **options)


class ImageClassifierModel(ModuleModel):
    """Wraps ``AutoModelForImageClassification`` and its image processor.

    The processor resizes and crops an image once. Features are cut in the image as the model sees it,
    with values in [0, 1]; what the processor does to values (its mean and standard deviation) is part
    of the model.
    """

    def __init__(self, model: Any, processor: Any, *, output: str | None = None, **options: Any) -> None:
        self.processor = processor
        self._channels = int(getattr(model.config, "num_channels", 3))
        super().__init__(model, kind="image", output=output or natural_output(model.config), **options)
        self.classes = self.classes or own_names(model.config, self.output)
        scale = 255 * getattr(processor, "rescale_factor", 1 / 255) if processor.do_rescale else 255
        mean, deviation = (processor.image_mean, processor.image_std) if processor.do_normalize else (0, 1)
        self._factor = scale / self._per_channel(deviation)
        self._offset = self._per_channel(mean) / self._per_channel(deviation)

    def identity(self) -> object:
        """The weights, and the settings of the image processor."""
        return super().identity(), self.processor.to_dict()

    def prepare(self, raw: Any, features: Features | None = None) -> ImageInput:
        """Bring an image to the size that the model sees, and divide it into features.

        An array of floats that has this size already is taken as it is.
        """
        pixels = as_pixels(raw)
        is_floats = not isinstance(raw, str | Path) and not hasattr(raw, "getbands")
        if is_floats and np.asarray(raw.detach().cpu() if hasattr(raw, "detach") else raw).dtype.kind in "iu":
            pixels, is_floats = pixels / 255, False
        if pixels.min() < 0 or pixels.max() > 1:
            raise InputError("An image must hold whole numbers from 0 to 255 or floats from 0 to 1.")
        seen = pixels if is_floats and pixels.shape == self._size else self._see(pixels)
        input = image_input(seen, "patches" if features is None else features)
        was, now = (" × ".join(map(str, shape[1:])) for shape in (pixels.shape, seen.shape))
        note = f"brought from {was} to the {now} pixels that the model sees"
        return input if was == now else replace(input, notes=(*input.notes, note))

    def scores(self, batch: torch.Tensor) -> torch.Tensor:
        """The logits of images in [0, 1]."""
        return super().scores(batch * self._factor - self._offset)

    @cached_property
    def _size(self) -> tuple[int, ...]:
        """The shape of an image as the model sees it."""
        return self._see(np.zeros((self._channels, 64, 64), dtype=np.float32)).shape

    def _see(self, pixels: Array) -> Array:
        """The image as the processor resizes and crops it, with values in [0, 1]."""
        if len(pixels) == 4:
            pixels = pixels[:3] * pixels[3] + 1 - pixels[3]  # what is transparent is laid on white
        if len(pixels) == 1:
            pixels = np.repeat(pixels, self._channels, axis=0)
        if len(pixels) != self._channels:
            raise InputError(f"The model reads images of {self._channels} channels, not of {len(pixels)}.")
        made = self.processor(
            images=np.moveaxis((255 * pixels).round().astype(np.uint8), 0, -1),
            input_data_format="channels_last",
            do_rescale=False,
            do_normalize=False,
            return_tensors="np",
        )
        seen = np.asarray(made.get("pixel_values", 0))
        if seen.ndim != 4:
            raise ModelError("The image processor must give `pixel_values` (1, channels, height, width).")
        return np.asarray(seen[0].astype(np.float32) / 255)

    def _per_channel(self, values: Any) -> torch.Tensor:
        return torch.tensor(values, dtype=torch.float32, device=self.device).reshape(-1, 1, 1)
