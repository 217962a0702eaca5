"""A copy of a model whose layers are given random parameters, one after the other (Adebayo et al. 2018)."""

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
    """A copy of a model, whose layers `randomise` gives new parameters; the model itself never changes.

    The modules of a layer are initialised anew by their own ``reset_parameters``. Parameters of a module
    without it are permuted, which keeps their mean and spread; those that are all equal stay as they
    are. The draws depend on the seed and the name of the layer: they are the same on every device,
    whatever other layers are randomised. Torch's own random state is left as it was.
    """

    def __init__(self, model: Model, seed: int) -> None:
        module_of(model)
        shared = [model.background, model.tokenizer, model.processor]
        try:
            self.model = deepcopy(model, {id(own): own for own in shared if own is not None})
        except Exception as error:
            raise ModelError(
                f"The model cannot be copied, and its own parameters must not change: {error}"
            ) from error
        self._module = module_of(self.model)
        self._seed = seed

    def randomise(self, layer: str) -> None:
        """Give a layer that `layers_of` names random parameters, with all modules in it."""
        self.model.forget()
        whole = dict(self._module.named_modules()).get(layer, self._module)
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            # Not torch.manual_seed, which would seed the generators of all devices, too.
            torch.default_generator.manual_seed(int(generator(self._seed, "sanity", layer).integers(2**62)))
            for part in whole.modules():
                if _has_parameters(part, recurse=False):
                    _copy_into(part, _randomised(part, layer))


def module_of(model: Model) -> nn.Module:
    """The torch module that a model wraps; an error if there are no parameters to randomise."""
    module = model.module
    if not isinstance(module, nn.Module):
        raise ModelError(
            "The sanity check randomises a model's parameters, which only torch modules and transformers "
            f"models have; this is {model!r}."
        )
    if not _has_parameters(module):
        raise ModelError(f"The {type(module).__name__} has no parameters that could be randomised.")
    return module


def layers_of(model: Model, named: Sequence[str] | None = None) -> list[str]:
    """The names of the layers from the output down: in the order of their registration, reversed.

    A member of a ``Sequential`` or ``ModuleList``, such as a block of a transformer, is one layer;
    elsewhere each module with parameters of its own. With `named`, these modules alone, each with all
    that is in it.
    """
    module = module_of(model)
    layers = list(_layers(module, ""))
    if named is None:
        return layers[::-1]
    known = [name for name, part in module.named_modules() if name and _has_parameters(part)]
    for name in named:
        if name not in known:
            raise unknown("layer", name, layers)
    require(0 < len(named) == len(set(named)), "layers", "at least one, all different", list(named))
    return sorted(named, key=known.index, reverse=True)


def _layers(module: nn.Module, path: str) -> Iterator[str]:
    """Names of layers in the order of their registration; parameters of the whole are named by its class."""
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


def _randomised(part: nn.Module, layer: str) -> nn.Module:
    """A copy on the CPU, where draws are the same for every device, with random parameters of its own."""
    fresh = deepcopy(part).cpu()
    reset = getattr(fresh, "reset_parameters", None)
    if reset is None:
        for own in fresh.parameters(recurse=False):
            own.copy_(own.flatten()[torch.randperm(own.numel())].reshape(own.shape))
        return fresh
    try:
        reset()
    except Exception as error:
        raise ModelError(f"The layer {layer!r} cannot be initialised anew: {error}") from error
    return fresh


def _copy_into(part: nn.Module, fresh: nn.Module) -> None:
    """Copy the module's own parameters and buffers, such as a normalisation's statistics, from `fresh`."""
    own, new = ([*of.parameters(recurse=False), *of.buffers(recurse=False)] for of in (part, fresh))
    for mine, other in zip(own, new, strict=True):
        mine.copy_(other)
