"""MNIST and Fashion-MNIST, and the convolutional network that is explained.

python experiments/hsieh2021/mnist.py --data DATA/mnist --out mnist.safetensors
"""

from __future__ import annotations

import argparse
import gzip
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import nn

import pertinent


def read_idx(path: Path) -> Any:
    """An array in the format of the original files, gzipped."""
    with gzip.open(path) as file:
        content = file.read()
    n_axes = content[3]
    shape = [int.from_bytes(content[4 + 4 * i : 8 + 4 * i], "big") for i in range(n_axes)]
    return np.frombuffer(content, dtype=np.uint8, offset=4 + 4 * n_axes).reshape(shape)


def read_set(folder: Path, split: str) -> tuple[Any, Any]:
    """Images (n, 1, 28, 28) from 0 to 1, and their classes; `split` is ``"train"`` or ``"t10k"``."""
    images = read_idx(folder / f"{split}-images-idx3-ubyte.gz")[:, None].astype(np.float32) / 255
    return images, read_idx(folder / f"{split}-labels-idx1-ubyte.gz").astype(np.int64)


def network() -> nn.Sequential:
    """Two convolutions and two linear layers."""
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


class Normalised(nn.Module):
    """Images by the mean and the deviation of the training images, as the authors' network takes them."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """From images of 0 to 1."""
        return (images - 0.1307) / 0.3081


def authors_network() -> nn.Sequential:
    """The network of the authors' public code, whose trained weights they give."""
    layers = {
        "normalised": Normalised(),
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
    """The trained network in a file: the authors', or one trained here."""
    weights = load_file(path)
    module = authors_network() if "conv1.weight" in weights else network()
    module.load_state_dict(weights)
    return module.eval()


def train(folder: Path, *, epochs: int, device: str, seed: int = 0) -> tuple[nn.Sequential, float]:
    """A network trained by Adam, and its accuracy on the test images."""
    torch.manual_seed(seed)
    images, labels = (torch.from_numpy(array).to(device) for array in read_set(folder, "train"))
    module = network().to(device)
    optimizer = torch.optim.Adam(module.parameters(), 1e-3)
    for _ in range(epochs):
        for batch in torch.randperm(len(images), device=device).split(128):
            loss = nn.functional.cross_entropy(module(images[batch]), labels[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    module.eval()
    test, truth = (torch.from_numpy(array).to(device) for array in read_set(folder, "t10k"))
    with torch.inference_mode():
        predicted = torch.cat([module(part).argmax(dim=1) for part in test.split(1000)])
    return module, float((predicted == truth).float().mean())


def load(path: Path, device: str) -> Any:
    """The trained network, wrapped."""
    return wrapped(read_network(path).to(device))


def wrapped(module: nn.Module) -> Any:
    """A network of digits, as the library explains it."""
    return pertinent.wrap(module.eval(), kind="image", output="logit", classes=[str(i) for i in range(10)])


def main() -> None:
    """Train and save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    arguments = parser.parse_args()
    module, accuracy = train(arguments.data, epochs=arguments.epochs, device=arguments.device)
    save_file(module.state_dict(), arguments.out)
    print(f"accuracy {accuracy:.2%}, written: {arguments.out}")


if __name__ == "__main__":
    main()
