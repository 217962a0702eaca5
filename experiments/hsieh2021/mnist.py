"""Convolutional networks of MNIST and Fashion-MNIST."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import nn

import pertinent
from experiments.shared.data import read_images
from experiments.shared.networks import train_by_adam
from experiments.shared.stages import Run
from pertinent.array_types import Array


def network() -> nn.Sequential:
    """Return two convolutions and two linear layers."""
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64 * 49, 128),
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.Linear(128, 10),
    )


class Normalized(nn.Module):
    """Pixels from 0 to 1, normalized by a mean and a deviation."""

    def __init__(self, mean: float, deviation: float) -> None:
        super().__init__()
        self.mean, self.deviation = mean, deviation

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        """Return the normalized pixels."""
        return (pixels - self.mean) / self.deviation


def authors_network() -> nn.Sequential:
    """Return the network of the authors' public code, whose trained weights they publish."""
    layers = {
        "normalised": Normalized(0.1307, 0.3081),
        "conv1": nn.Conv2d(1, 20, 5),
        "relu1": nn.ReLU(),
        "pool1": nn.MaxPool2d(2),
        "conv2": nn.Conv2d(20, 50, 5),
        "relu2": nn.ReLU(),
        "pool2": nn.MaxPool2d(2),
        "flat": nn.Flatten(),
        "fc1": nn.Linear(800, 500),
        "relu3": nn.ReLU(),
        "fc2": nn.Linear(500, 10),
    }
    return nn.Sequential(OrderedDict(layers))


def read_network(path: Path) -> nn.Sequential:
    """Return the trained network in a file: the authors', or one that `train_network` has saved."""
    weights = load_file(path)
    module = authors_network() if "conv1.weight" in weights else network()
    module.load_state_dict(weights)
    return module.eval()


def wrap_network(module: nn.Module) -> Any:
    """Return a network of ten classes as the library explains it."""
    return pertinent.wrap(module.eval(), kind="image", output="logit", classes=[str(i) for i in range(10)])


def load(path: Path, device: str) -> Any:
    """Return the trained network in a file, wrapped."""
    return wrap_network(read_network(path).to(device))


def fit_network(folder: Path, *, epochs: int, device: str) -> tuple[nn.Sequential, float]:
    """Train a network by Adam, and return it with its accuracy on the test images."""
    torch.manual_seed(0)
    images, labels = (torch.from_numpy(array).to(device) for array in read_images(folder, "train"))
    module = network().to(device)

    def loss_of(batch: torch.Tensor) -> torch.Tensor:
        return nn.functional.cross_entropy(module(images[batch]), labels[batch])

    train_by_adam(module, loss_of, len(images), epochs=epochs, batch_size=128, device=device)
    module.eval()
    test, truth = (torch.from_numpy(array).to(device) for array in read_images(folder, "t10k"))
    with torch.inference_mode():
        predicted = torch.cat([module(part).argmax(dim=1) for part in test.split(1000)])
    return module, float((predicted == truth).float().mean())


def train_network(run: Run, dataset: str, epochs: int) -> dict[str, Any]:
    """Train a network on a data set, and save it in the work folder."""
    module, accuracy = fit_network(run.data / dataset, epochs=epochs, device=run.device)
    save_file(module.state_dict(), run.work / f"{dataset}.safetensors")
    return {"accuracy": accuracy}


def random_test_images(folder: Path, n: int) -> Array:
    """Return n random test images."""
    images = read_images(folder, "t10k")[0]
    return np.asarray(images[np.random.default_rng(0).permutation(len(images))[:n]])
