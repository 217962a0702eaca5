"""A small classifier of handwritten digits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from torch import nn
from torch.nn.functional import adaptive_avg_pool2d

from pertinent._optional import optional
from pertinent.array_types import Array
from pertinent.inputs.base import Features, Input
from pertinent.inputs.image import unit_pixels
from pertinent.models.embedded.tables import SplitData
from pertinent.models.module import ModuleModel

SIDE = 8
_EXAMPLE = 3


class DigitsModel(ModuleModel):
    """A classifier of the ten digits: light strokes on a dark background, 8 × 8 pixels in [0, 1]."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__(module, kind="image", classes=[str(i) for i in range(10)], output="logit")

    def prepare(self, raw: Any, features: Features | None = None) -> Input:
        """Divide an image into features; larger images are averaged to one channel of 8 × 8 pixels."""
        pixels, notes = unit_pixels(raw)
        if pixels.shape == (1, SIDE, SIDE):
            return super().prepare(raw, features)
        grey = torch.from_numpy(pixels.mean(axis=0, keepdims=True))
        input = super().prepare(adaptive_avg_pool2d(grey, SIDE).numpy(), features)
        shape = " × ".join(map(str, pixels.shape))
        note = f"averaged from {shape} to the {SIDE} × {SIDE} grey pixels that the model reads"
        return replace(input, notes=(*notes, *input.notes, note))


def digits_model(folder: Path, device: str = "cpu", dtype: torch.dtype = torch.float32) -> DigitsModel:
    """Return the classifier with the weights in a folder."""
    network = digits_network()
    network.load_state_dict(load_file(folder / "model.safetensors"))
    return DigitsModel(network.to(device=device, dtype=dtype).eval())


def digits_network() -> nn.Module:
    """Return the network, initialised from a fixed seed without changing torch's global random state."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(32 * (SIDE // 2) ** 2, 64),
            nn.ReLU(),
            nn.Linear(64, 10),
        )


def digits_data() -> SplitData:
    """Return scikit-learn's digits as images (1, 8, 8) in [0, 1], split into training and test data."""
    data = optional("sklearn.datasets").load_digits()
    images = (data.images[:, None] / 16).astype(np.float32)
    return SplitData.from_rows(images, data.target, len(images) * 4 // 5)


def example_digit() -> Array:
    """Return a digit from the test data, (1, 8, 8) in [0, 1]."""
    return np.asarray(digits_data().test_rows[_EXAMPLE])
