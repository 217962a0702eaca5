"""Masks: rows of booleans over the removable features of an input; ``True`` keeps."""

from __future__ import annotations

import numpy as np

from pertinent.array_types import Masks


def full_mask(n_features: int) -> Masks:
    """The mask that keeps everything, (1, features)."""
    return np.ones((1, n_features), dtype=np.bool_)


def empty_mask(n_features: int) -> Masks:
    """The mask that keeps nothing, (1, features)."""
    return np.zeros((1, n_features), dtype=np.bool_)


def mask_bytes(masks: Masks) -> list[bytes]:
    """A hashable key for each mask."""
    packed = np.ascontiguousarray(np.packbits(masks, axis=1))
    if packed.shape[1] == 0:
        return [b""] * len(masks)
    keys: list[bytes] = packed.view(f"V{packed.shape[1]}").ravel().tolist()
    return keys
