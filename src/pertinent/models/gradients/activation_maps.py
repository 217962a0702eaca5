"""Gradients of torch modules over images and table rows, and what they share with those of transformers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
import torch

from pertinent.asks import ActivationMaps, BatchPart
from pertinent.errors import InputError, ModelError, unknown
from pertinent.models.base import Answer
from pertinent.models.gradients.base import differentiate, sum_by_feature
from pertinent.models.torch import devices

if TYPE_CHECKING:
    from pertinent.models.module import ModuleModel


NO_IMAGE = "Grad-CAM explains images, but the input is a {}."


def array_activation_maps(model: ModuleModel, parts: Sequence[BatchPart]) -> Answer:
    """ReLU of a layer's maps weighted by their mean gradients (Grad-CAM), averaged over each feature."""
    if not all(part.input.is_picture for part in parts):
        raise InputError(NO_IMAGE.format(parts[0].input.kind))
    layer = _convolution(model.module, parts[0].question.layer)
    batch = devices.send_floats(np.stack([part.input.array for part in parts]), model.device)
    made: list[torch.Tensor] = []
    # Clones here and below, because the next layer may work in place.
    keep: Callable[[torch.Tensor], None] = lambda maps: made.append(maps.detach().clone())  # noqa: E731
    with model.evaluating(batch.shape), torch.no_grad(), _hooked(layer, keep):
        model.scores(batch)
    if len(made) != 1 or made[0].ndim != 4:
        raise ModelError(
            "Grad-CAM needs a layer that is computed once for an image and gives maps (rows, channels, "
            "height, width): name another with `layer`."
        )
    owner = devices.send(np.stack([part.input.labels.ravel() for part in parts]), model.device)
    n_features = max(part.input.n_features for part in parts)

    def scores(maps: torch.Tensor) -> torch.Tensor:
        with _hooked(layer, lambda _: maps.clone()):
            return model.scores(batch)

    def total(gradient: torch.Tensor) -> torch.Tensor:
        weighted = (gradient.mean(dim=(2, 3), keepdim=True) * made[0]).sum(dim=1, keepdim=True).relu().float()
        heat = torch.nn.functional.interpolate(weighted, batch.shape[2:], mode="bilinear").flatten(1)
        sizes = sum_by_feature(torch.ones_like(heat), owner, n_features)
        return sum_by_feature(heat, owner, n_features) / sizes.clamp_min(1)

    return differentiate(model, parts, made[0], scores, total)


def _convolution(module: torch.nn.Module, name: str | None) -> torch.nn.Module:
    """The layer of this name, by default the last convolution."""
    named: dict[str, torch.nn.Module] = dict(module.named_modules())
    if name is not None:
        if name not in named:
            raise unknown("layer of the module", name, [each for each in named if each])
        return named[name]
    found = [each for each in named.values() if isinstance(each, torch.nn.Conv2d)]
    if not found:
        raise ModelError(ActivationMaps.refusal)
    return found[-1]


@contextmanager
def _hooked(layer: torch.nn.Module, use: Callable[[torch.Tensor], torch.Tensor | None]) -> Iterator[None]:
    """Show what the layer answers to `use`, and put what that returns in its place, if anything."""
    hook = layer.register_forward_hook(lambda _module, _inputs, answer: use(answer))
    try:
        yield
    finally:
        hook.remove()
