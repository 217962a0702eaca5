"""A small convolutional network that scores the pixels of an image."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.functional import gelu, interpolate, max_pool2d, relu

from pertinent.errors import InputError
from pertinent.inputs.base import Input
from pertinent.inputs.image import ImageInput
from pertinent.learners.networks.scorer import ArrayApproximator, Scorer, ScorerBatch
from pertinent.models.base import Model

WIDTH = 64
APPROXIMATOR_WIDTH = 128


class ImageScorer(Scorer):
    """Convolutions at three resolutions whose outputs are summed at the finest resolution.

    Each pixel's position is an additional input, and the mean of the coarsest layer over the image is added.
    """

    kind = "image"
    config_names = ("n_channels",)
    mean: torch.Tensor
    spread: torch.Tensor

    def __init__(self, n_columns: int, n_channels: int) -> None:
        super().__init__(n_columns)
        self.n_channels = n_channels
        self.register_buffer("mean", torch.zeros(n_channels, 1, 1))
        self.register_buffer("spread", torch.ones(n_channels, 1, 1))
        self.sharp = nn.Conv2d(n_channels + 2, WIDTH // 2, 3, padding=1)
        self.blurred = nn.Conv2d(WIDTH // 2, WIDTH, 3, stride=2, padding=1)
        self.coarse = nn.Conv2d(WIDTH, WIDTH, 3, stride=2, padding=1)
        self.whole = nn.Linear(WIDTH, WIDTH)
        self.from_sharp = nn.Conv2d(WIDTH // 2, WIDTH, 1)
        self.from_blurred = nn.Conv2d(WIDTH, WIDTH, 1, bias=False)
        self.from_coarse = nn.Conv2d(WIDTH, WIDTH, 1, bias=False)
        self.head = nn.Conv2d(WIDTH, n_columns, 1)

    @classmethod
    def from_model(
        cls, model: Model, inputs: Sequence[Input], n_columns: int, **options: bool
    ) -> ImageScorer:
        """Return a scorer that standardises each channel."""
        images = [_image(input).pixels for input in inputs]
        channels = sorted({len(pixels) for pixels in images})
        if len(channels) > 1:
            raise InputError(f"`inputs` must have the same number of channels, but have {channels}.")
        scorer = cls(n_columns, len(images[0]))
        values = np.concatenate([pixels.reshape(len(pixels), -1) for pixels in images], axis=1)
        spread = values.std(axis=1)
        scorer.mean.copy_(torch.from_numpy(values.mean(axis=1))[:, None, None])
        scorer.spread.copy_(torch.from_numpy(np.where(spread > 0, spread, 1.0))[:, None, None])
        return scorer

    def read(self, model: Model, inputs: Sequence[Input]) -> ScorerBatch:
        """Read images of the same size, and the segment of each pixel."""
        pixels = np.stack([_image(input).pixels for input in inputs]).astype(np.float32)
        return ScorerBatch({"pixels": pixels}, np.stack([_image(input).labels.ravel() for input in inputs]))

    def approximator(self, model: Model, n_columns: int) -> ImageApproximator:
        """Return an approximator with the same standardisation of channels."""
        return ImageApproximator(self.mean, self.spread, n_columns)

    def forward(self, **options: Any) -> torch.Tensor:
        """Return scores (rows, pixels, columns)."""
        pixels: torch.Tensor = options["pixels"]
        size = pixels.shape[2:]
        x = torch.cat([(pixels - self.mean) / self.spread, _positions(pixels)], dim=1)
        x = x.contiguous(memory_format=torch.channels_last)  # twice as fast on a CPU
        sharp = gelu(self.sharp(x))
        blurred = gelu(self.blurred(sharp))
        coarse = gelu(self.coarse(blurred))
        whole = self.whole(coarse.mean(dim=(2, 3)))[:, :, None, None]
        # Convolving before upsampling is faster.
        rough = interpolate(self.from_coarse(gelu(coarse + whole)), size=blurred.shape[2:])
        joined = self.from_sharp(sharp) + interpolate(self.from_blurred(blurred) + rough, size=size)
        scores: torch.Tensor = self.head(gelu(joined))
        return scores.flatten(2).transpose(1, 2)


class ImageApproximator(ArrayApproximator):
    """Two convolutions and two dense layers, for images of any size."""

    mean: torch.Tensor
    spread: torch.Tensor

    def __init__(self, mean: torch.Tensor, spread: torch.Tensor, n_columns: int) -> None:
        super().__init__()
        self.register_buffer("mean", mean.clone())
        self.register_buffer("spread", spread.clone())
        self.first = nn.Conv2d(len(mean), APPROXIMATOR_WIDTH // 4, 5, padding=2)
        self.second = nn.Conv2d(APPROXIMATOR_WIDTH // 4, APPROXIMATOR_WIDTH // 2, 5, padding=2)
        self.pool = nn.AdaptiveAvgPool2d(7)
        self.deep = nn.Linear(49 * APPROXIMATOR_WIDTH // 2, APPROXIMATOR_WIDTH)
        self.head = nn.Linear(APPROXIMATOR_WIDTH, n_columns)

    def forward(self, kept: torch.Tensor, **arrays: torch.Tensor) -> torch.Tensor:
        """Return logits (rows, columns) of images with removed pixels set to the mean colour."""
        pixels = arrays["pixels"]
        x = (pixels - self.mean) / self.spread * kept.reshape(len(pixels), 1, *pixels.shape[2:])
        x = relu(self.first(x))
        x = relu(self.second(max_pool2d(x, 2) if min(x.shape[2:]) > 1 else x))
        logits: torch.Tensor = self.head(relu(self.deep(self.pool(x).flatten(1))))
        return logits


def _positions(pixels: torch.Tensor) -> torch.Tensor:
    """Return two channels with the vertical and horizontal position of each pixel, from −1 to 1."""
    n, _, height, width = pixels.shape
    down = torch.linspace(-1, 1, height, device=pixels.device)[:, None].expand(height, width)
    right = torch.linspace(-1, 1, width, device=pixels.device)[None].expand(height, width)
    return torch.stack([down, right]).expand(n, -1, -1, -1)


def _image(input: Input) -> ImageInput:
    assert isinstance(input, ImageInput)
    return input
