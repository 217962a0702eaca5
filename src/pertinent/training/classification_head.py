"""A new classification layer, for classes that the model was not trained on."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch

from pertinent.errors import InputError


def with_new_head(model: Any, labels: Sequence[Any], seed: int) -> Any:
    """The same encoder with a new classification layer for the classes in `labels`.

    The classes are ordered by name, or by number where all are numbers.
    """
    names = {str(label) for label in labels if label is not None and str(label).strip()}
    numbers = all(name.isdecimal() for name in names)
    classes = sorted(names, key=int) if numbers else sorted(names)
    if len(classes) < 2:
        raise InputError(f"The labels must name at least two classes, but name {classes}.")
    config = copy.deepcopy(model.config)
    config.id2label = dict(enumerate(classes))
    config.label2id = {name: i for i, name in enumerate(classes)}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        fresh = type(model)(config)
    encoder = model.base_model_prefix
    getattr(fresh, encoder).load_state_dict(getattr(model, encoder).state_dict(), strict=False)
    return fresh.to(model.device).eval()
