"""Relative position biases of the original positions, for texts without their removed tokens.

MPNet computes the bias of its attention from the number of tokens. With removed tokens left out, the distance
between two tokens would shrink. The bias is therefore computed from the positions in the whole text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from pertinent.array_types import Ints

NEEDED = ("compute_position_bias", "relative_position_bucket", "relative_attention_bias")
"""Attributes of a module whose bias depends on relative positions."""

_PARTS: WeakKeyDictionary[Any, list[Any]] = WeakKeyDictionary()
"""For each network, its modules with these attributes."""


@contextmanager
def original_positions(module: Any, positions: Ints, send: Callable[[Ints], Tensor]) -> Iterator[None]:
    """Compute relative biases from the positions (rows, tokens) while the module runs.

    Whole texts, and modules without such a bias, are computed as usual.
    """
    parts = _parts(module)
    if not parts or (positions == np.arange(positions.shape[1])).all():
        yield
        return
    sent = send(positions)
    for part in parts:
        part.compute_position_bias = _Bias(part, sent)
    try:
        yield
    finally:
        for part in parts:
            del part.compute_position_bias


def _parts(module: Any) -> list[Any]:
    """Return the modules with a bias of relative positions; a function of a network has none."""
    if not isinstance(module, torch.nn.Module):
        return []
    if module not in _PARTS:
        _PARTS[module] = [part for part in module.modules() if all(hasattr(part, name) for name in NEEDED)]
    return _PARTS[module]


class _Bias:
    """The method `compute_position_bias` of a module, for given positions."""

    def __init__(self, part: Any, positions: Tensor) -> None:
        self._part, self._positions = part, positions

    def __call__(self, x: Tensor, position_ids: Tensor | None = None, num_buckets: int = 32) -> Tensor:
        """Return the bias (rows, heads, tokens, tokens)."""
        del x, position_ids
        distances = self._positions[:, None, :] - self._positions[:, :, None]
        buckets = self._part.relative_position_bucket(distances, num_buckets=num_buckets)
        bias: Tensor = self._part.relative_attention_bias(buckets)
        return bias.permute(0, 3, 1, 2).contiguous()
