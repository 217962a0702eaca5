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
from pertinent.models.heads.text_classification import config_names, infer_output
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
        """Return ``True``; raise a `ModelError` for models that detect or segment objects."""
        check_supported(model)
        return True

    @classmethod
    def options(cls) -> list[str]:
        """Return the options for the columns, and for the images that baselines are drawn from."""
        return ["classes", "names", "output", "unit", "background"]

    @classmethod
    def wrap(cls, model: Any, reader: Any, **options: Any) -> ImageClassifierModel:
        """Return the classifier with its image processor."""
        return ImageClassifierModel(model, reader, **options)


class ImageClassifierModel(ModuleModel):
    """A transformers image classifier with its image processor.

    The processor resizes and crops each image once, and features are regions of the result, with values in
    [0, 1]. The processor's normalisation (mean and standard deviation) is part of the model.
    """

    def __init__(self, model: Any, processor: Any, *, output: str | None = None, **options: Any) -> None:
        self.processor = processor
        self._channels = int(getattr(model.config, "num_channels", 3))
        super().__init__(model, kind="image", output=output or infer_output(model.config), **options)
        self.classes = self.classes or config_names(model.config, self.output)
        scale = 255 * getattr(processor, "rescale_factor", 1 / 255) if processor.do_rescale else 255
        mean, deviation = (processor.image_mean, processor.image_std) if processor.do_normalize else (0, 1)
        self._factor = scale / self._per_channel(deviation)
        self._offset = self._per_channel(mean) / self._per_channel(deviation)

    def identity(self) -> object:
        """Return the weights, and the settings of the image processor."""
        return super().identity(), self.processor.to_dict()

    def prepare(self, raw: Any, features: Features | None = None) -> ImageInput:
        """Resize an image as the model requires and divide it into features.

        An array of floats with the right size is used unchanged.
        """
        pixels = as_pixels(raw)
        is_floats = not isinstance(raw, str | Path) and not hasattr(raw, "getbands")
        if is_floats and np.asarray(raw.detach().cpu() if hasattr(raw, "detach") else raw).dtype.kind in "iu":
            pixels, is_floats = pixels / 255, False
        if pixels.min() < 0 or pixels.max() > 1:
            raise InputError("An image must hold whole numbers from 0 to 255 or floats from 0 to 1.")
        processed = pixels if is_floats and pixels.shape == self._size else self._process(pixels)
        input = image_input(processed, "patches" if features is None else features)
        before, after = (" × ".join(map(str, image.shape[1:])) for image in (pixels, processed))
        note = f"resized from {before} to the {after} pixels that the model reads"
        return input if before == after else replace(input, notes=(*input.notes, note))

    def scores(self, batch: torch.Tensor) -> torch.Tensor:
        """Return the logits of images in [0, 1]."""
        return super().scores(batch * self._factor - self._offset)

    @cached_property
    def _size(self) -> tuple[int, ...]:
        """Return the shape of a processed image."""
        return self._process(np.zeros((self._channels, 64, 64), dtype=np.float32)).shape

    def _process(self, pixels: Array) -> Array:
        """Return the image resized and cropped by the processor, with values in [0, 1]."""
        if len(pixels) == 4:
            pixels = pixels[:3] * pixels[3] + 1 - pixels[3]  # blend transparent pixels with white
        if len(pixels) == 1:
            pixels = np.repeat(pixels, self._channels, axis=0)
        if len(pixels) != self._channels:
            raise InputError(f"The image must have {self._channels} channels, got {len(pixels)}.")
        output = self.processor(
            images=np.moveaxis((255 * pixels).round().astype(np.uint8), 0, -1),
            input_data_format="channels_last",
            do_rescale=False,
            do_normalize=False,
            return_tensors="np",
        )
        processed = np.asarray(output.get("pixel_values", 0))
        if processed.ndim != 4:
            raise ModelError("The image processor must return `pixel_values` (1, channels, height, width).")
        return np.asarray(processed[0].astype(np.float32) / 255)

    def _per_channel(self, values: Any) -> torch.Tensor:
        return torch.tensor(values, dtype=torch.float32, device=self.device).reshape(-1, 1, 1)
