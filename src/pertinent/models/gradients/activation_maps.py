"""Activation maps of convolutions, weighted by gradients (Grad-CAM)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from pertinent.asks import ActivationMaps, BatchPart
from pertinent.errors import InputError, ModelError, unknown
from pertinent.models.base import Answer
from pertinent.models.gradients.base import differentiate, sum_by_feature
from pertinent.models.torch import devices

if TYPE_CHECKING:
    from pertinent.models.module import ModuleModel

NO_IMAGE = "Grad-CAM only explains images, but the input is a {}."


def array_activation_maps(model: ModuleModel, parts: Sequence[BatchPart]) -> Answer:
    """Compute the ReLU of a layer's maps weighted by mean gradients, averaged over each feature."""
    if any(part.input.kind != "image" for part in parts):
        raise InputError(NO_IMAGE.format(parts[0].input.kind))
    layer = _find_convolution(model.module, parts[0].question.layer)
    batch = devices.send_floats(np.stack([part.input.array for part in parts]), model.device)
    computed: list[Tensor] = []
    # Cloned here and below, because the next layer may modify its input in place.
    keep: Callable[[Tensor], None] = lambda maps: computed.append(maps.detach().clone())  # noqa: E731
    with model.evaluating(batch.shape), torch.no_grad(), _hook(layer, keep):
        model.scores(batch)
    if len(computed) != 1 or computed[0].ndim != 4:
        raise ModelError(
            "Grad-CAM needs a layer that runs once per image and returns maps (rows, channels, height, "
            "width): choose another one with `layer`."
        )
    owner = devices.send(np.stack([part.input.labels.ravel() for part in parts]), model.device)
    n_features = max(part.input.n_features for part in parts)

    def scores(maps: Tensor) -> Tensor:
        with _hook(layer, lambda _: maps.clone()):
            return model.scores(batch)

    def total(gradient: Tensor) -> Tensor:
        weights = gradient.mean(dim=(2, 3), keepdim=True)
        weighted = (weights * computed[0]).sum(dim=1, keepdim=True).relu().float()
        heat = torch.nn.functional.interpolate(weighted, batch.shape[2:], mode="bilinear").flatten(1)
        sizes = sum_by_feature(torch.ones_like(heat), owner, n_features)
        return sum_by_feature(heat, owner, n_features) / sizes.clamp_min(1)

    return differentiate(model, parts, computed[0], scores, total)


def _find_convolution(module: torch.nn.Module, name: str | None) -> torch.nn.Module:
    """Return the layer of this name, by default the last convolution."""
    layers: dict[str, torch.nn.Module] = dict(module.named_modules())
    if name is not None:
        if name not in layers:
            raise unknown("layer of the module", name, filter(None, layers))
        return layers[name]
    convolutions = [layer for layer in layers.values() if isinstance(layer, torch.nn.Conv2d)]
    if not convolutions:
        raise ModelError(ActivationMaps.refusal)
    return convolutions[-1]


@contextmanager
def _hook(layer: torch.nn.Module, use: Callable[[Tensor], Tensor | None]) -> Iterator[None]:
    """Register a forward hook that passes the output to `use` and substitutes its return value."""
    hook = layer.register_forward_hook(lambda _module, _inputs, answer: use(answer))
    try:
        yield
    finally:
        hook.remove()
