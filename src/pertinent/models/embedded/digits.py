"""A small classifier of handwritten digits, trained on first use and kept in the cache folder."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import stat
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load as read_tensors
from safetensors.torch import save as tensor_bytes
from torch import nn
from torch.nn import functional

from pertinent._optional import optional
from pertinent.array_types import Array
from pertinent.errors import FileError
from pertinent.files import write_bytes, write_json
from pertinent.inputs.base import Features, Input
from pertinent.inputs.image import unit_pixels
from pertinent.models.embedded.tables import SplitData
from pertinent.models.module import ModuleModel

logger = logging.getLogger(__name__)

RECIPE = 1
"""Increase this with any change below that affects the weights, so that old ones are not used."""

_WEIGHTS, _CARD = "digits.safetensors", "digits.json"
SIDE = 8
_SEED = 0
_EPOCHS = 12
_BATCH = 64
_LEARNING_RATE = 2e-3
_EXAMPLE = 3


class DigitsModel(ModuleModel):
    """A classifier of the ten digits: light strokes on a dark background, as 8 × 8 pixels in [0, 1]."""

    def __init__(self, module: nn.Module, card: Mapping[str, Any]) -> None:
        super().__init__(module, kind="image", classes=[str(i) for i in range(10)], output="logit")
        self.card = dict(card)

    def prepare(self, raw: Any, features: Features | None = None) -> Input:
        """Divide an image into features, after averaging it down to one channel of 8 × 8 pixels if needed."""
        pixels, notes = unit_pixels(raw)
        if pixels.shape == (1, SIDE, SIDE):
            return super().prepare(raw, features)
        grey = torch.from_numpy(pixels.mean(axis=0, keepdims=True))
        input = super().prepare(functional.adaptive_avg_pool2d(grey, SIDE).numpy(), features)
        was = " × ".join(map(str, pixels.shape))
        note = f"averaged from {was} to the {SIDE} × {SIDE} grey pixels it reads"
        return replace(input, notes=(*notes, *input.notes, note))


def digits_model(device: str = "cpu", dtype: torch.dtype = torch.float32) -> DigitsModel:
    """The classifier, from the cache folder; if it is not there, it is trained in seconds and saved."""
    folder = own_cache_folder()
    network = _network()
    card = None if folder is None else _restored(network, folder)
    if card is None:
        network = _network()
        card = _train(network)
        if folder is not None:
            _keep(network, card, folder)
    return DigitsModel(network.to(device=device, dtype=dtype), card)


def example_digit() -> Array:
    """A handwritten digit that the model was not trained on, (1, 8, 8) in [0, 1]."""
    return np.asarray(_data().test_rows[_EXAMPLE])


def _data() -> SplitData:
    """The digits that come with scikit-learn, (1, 8, 8) in [0, 1]."""
    found = optional("sklearn.datasets").load_digits()
    images = (found.images[:, None] / 16).astype(np.float32)
    return SplitData.from_rows(images, found.target, len(images) * 4 // 5)


def _network() -> nn.Module:
    """A network initialised from a seed, without changing torch's global random state."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(_SEED)
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


def _train(network: nn.Module) -> dict[str, Any]:
    """Train in place; return the card."""
    data = _data()
    rng = np.random.default_rng(_SEED)
    optimizer = torch.optim.Adam(network.parameters(), lr=_LEARNING_RATE)
    network.train()
    for _ in range(_EPOCHS):
        for batch in np.array_split(rng.permutation(len(data.rows)), len(data.rows) // _BATCH):
            logits = network(torch.from_numpy(data.rows[batch]))
            optimizer.zero_grad()
            functional.cross_entropy(logits, torch.from_numpy(data.targets[batch])).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    network.eval()
    with torch.inference_mode():
        guessed = network(torch.from_numpy(data.test_rows)).argmax(dim=1).numpy()
    return {
        "name": "digits",
        "recipe": RECIPE,
        "data": "scikit-learn's load_digits (UCI optical recognition of handwritten digits)",
        "trained_on": len(data.rows),
        "tested_on": len(data.test_rows),
        "test_accuracy": float((guessed == data.test_targets).mean()),
    }


def _restored(network: nn.Module, folder: Path) -> dict[str, Any] | None:
    """Load kept weights in place and return their card; ``None`` if there are none that can be used."""
    try:
        card: dict[str, Any] = json.loads(_read_kept(folder / _CARD))
        if card["recipe"] == RECIPE:
            data = _read_kept(folder / _WEIGHTS)
            if hashlib.sha256(data).hexdigest() != card["sha256"]:
                raise FileError("the weights are not those that the card describes")  # noqa: TRY301
            network.load_state_dict(read_tensors(data))
            network.eval()
            return card
    except FileNotFoundError:
        pass
    except Exception as error:  # noqa: BLE001  whatever is wrong with it, it can be trained again
        logger.warning("The digits model in %s is damaged (%s): it is trained again.", folder, error)
    return None


def _keep(network: nn.Module, card: dict[str, Any], folder: Path) -> None:
    """Write weights and card atomically; if that fails, log a warning and continue."""
    data = tensor_bytes(network.state_dict())
    card["sha256"] = hashlib.sha256(data).hexdigest()
    try:
        write_bytes(folder / _WEIGHTS, data)
        write_json(folder / _CARD, card)
    except OSError as error:
        logger.warning("The digits model could not be kept, so it will be trained again next time: %s", error)


# -- the folder where the trained model is kept between runs ----------------------------------------


def cache_folder() -> Path:
    """``$PERTINENT_CACHE``, else ``pertinent`` in the system's cache folder; it may not exist yet."""
    chosen = os.environ.get("PERTINENT_CACHE")
    return Path(chosen).expanduser() if chosen else _system_caches() / "pertinent"


def own_cache_folder() -> Path | None:
    """The cache folder, created if need be; ``None``, with a warning, if others could write to it."""
    folder = cache_folder()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check_is_own(folder)
    except OSError as error:
        logger.warning("The cache folder is not used, so a model is trained each time: %s", error)
        return None
    return folder


def _read_kept(path: Path) -> bytes:
    """Read a file of the cache folder, which must not be a link to somewhere else."""
    with os.fdopen(os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0)), "rb") as file:
        return file.read()


def _check_is_own(folder: Path) -> None:
    if not hasattr(os, "getuid"):  # Windows
        return
    for found in (folder.lstat(), folder.stat()):
        if found.st_uid != os.getuid():
            raise FileError(f"{str(folder)!r} belongs to another user: set PERTINENT_CACHE to one of yours.")
    if folder.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise FileError(f"others may write to {str(folder)!r}: run chmod 700 on it.")


def _system_caches() -> Path:
    home = Path.home()
    local = Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    own = {"darwin": home / "Library" / "Caches", "win32": local}.get(sys.platform, home / ".cache")
    return Path(os.environ.get("XDG_CACHE_HOME") or own)
