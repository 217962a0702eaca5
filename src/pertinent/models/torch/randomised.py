"""A copy of a model whose layers are randomised one by one (Adebayo et al. 2018)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy

import torch
from torch import nn

from pertinent.config.fingerprints import generator
from pertinent.errors import ModelError, require, unknown
from pertinent.models.base import Model

_LISTS = (nn.Sequential, nn.ModuleList)
_CONTAINERS = (*_LISTS, nn.ModuleDict)


class RandomisedModel:
    """A copy of a model whose layers can be given random parameters; the model itself stays unchanged.

    Modules of a layer are reinitialised by their ``reset_parameters``. Without that method, a module's
    parameters are permuted, which keeps their mean and spread; constant parameters do not change. The draws
    depend only on the seed and the layer's name, so they are equal on every device. Torch's random state does
    not change.
    """

    def __init__(self, model: Model, seed: int) -> None:
        module_of(model)
        shared = [model.background, model.tokenizer, model.processor]
        try:
            self.model = deepcopy(model, {id(part): part for part in shared if part is not None})
        except Exception as error:
            raise ModelError(
                f"The model cannot be copied, and must not be modified in place: {error}"
            ) from error
        self._module = module_of(self.model)
        self._seed = seed

    def randomise(self, layer: str) -> None:
        """Give random parameters to a layer from `layers_of`, including all its submodules."""
        self.model.forget()
        whole = dict(self._module.named_modules()).get(layer, self._module)
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            # torch.manual_seed would also seed the generators of all devices.
            torch.default_generator.manual_seed(int(generator(self._seed, "sanity", layer).integers(2**62)))
            for part in whole.modules():
                if _has_parameters(part, recurse=False):
                    _copy_tensors(_randomised_copy(part, layer), part)


def module_of(model: Model) -> nn.Module:
    """Return the torch module that a model wraps; raise a `ModelError` if it has no parameters."""
    module = model.module
    if not isinstance(module, nn.Module):
        raise ModelError(
            "The sanity check randomises a model's parameters, so the model must be a torch module or a "
            f"transformers model; got {model!r}."
        )
    if not _has_parameters(module):
        raise ModelError(f"The {type(module).__name__} has no parameters to randomise.")
    return module


def layers_of(model: Model, named: Sequence[str] | None = None) -> list[str]:
    """Return the names of the layers from the output down, in reverse order of registration.

    A member of a ``Sequential`` or ``ModuleList``, such as a transformer block, is one layer. Elsewhere each
    module with direct parameters is one. With `named`, the layers are these modules with all their
    submodules.
    """
    module = module_of(model)
    layers = list(_layers(module, ""))
    if named is None:
        return layers[::-1]
    names = [name for name, part in module.named_modules() if name and _has_parameters(part)]
    for name in named:
        if name not in names:
            raise unknown("layer", name, layers)
    require(0 < len(named) == len(set(named)), "layers", "at least one, all different", list(named))
    return sorted(named, key=names.index, reverse=True)


def _layers(module: nn.Module, path: str) -> Iterator[str]:
    """Yield the layer names in order of registration; the module itself is named after its class."""
    if _has_parameters(module, recurse=False):
        yield path or type(module).__name__
    for name, part in module.named_children():
        inner = f"{path}.{name}" if path else name
        if not isinstance(module, _LISTS) or isinstance(part, _CONTAINERS):
            yield from _layers(part, inner)
        elif _has_parameters(part):
            yield inner


def _has_parameters(module: nn.Module, *, recurse: bool = True) -> bool:
    return next(module.parameters(recurse=recurse), None) is not None


def _randomised_copy(part: nn.Module, layer: str) -> nn.Module:
    """Return a copy with random parameters, drawn on the CPU, where draws are equal for every device."""
    fresh = deepcopy(part).cpu()
    reset = getattr(fresh, "reset_parameters", None)
    if reset is None:
        for parameter in fresh.parameters(recurse=False):
            permutation = torch.randperm(parameter.numel())
            parameter.copy_(parameter.flatten()[permutation].reshape(parameter.shape))
        return fresh
    try:
        reset()
    except Exception as error:
        raise ModelError(f"The layer {layer!r} cannot be reinitialised: {error}") from error
    return fresh


def _copy_tensors(source: nn.Module, target: nn.Module) -> None:
    """Copy a module's direct parameters and buffers, such as the statistics of a normalisation."""
    new, old = ([*m.parameters(recurse=False), *m.buffers(recurse=False)] for m in (source, target))
    for from_tensor, to_tensor in zip(new, old, strict=True):
        to_tensor.copy_(from_tensor)
