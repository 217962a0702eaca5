"""Masks: rows of booleans over the removable features of an input; ``True`` keeps."""

from __future__ import annotations

from math import comb

import numpy as np

from pertinent.array_types import Floats, Masks


def full_mask(n_features: int) -> Masks:
    """Return the mask that keeps all features, (1, features)."""
    return np.ones((1, n_features), dtype=np.bool_)


def empty_mask(n_features: int) -> Masks:
    """Return the mask that keeps no feature, (1, features)."""
    return np.zeros((1, n_features), dtype=np.bool_)


def mask_bytes(masks: Masks) -> list[bytes]:
    """Return a hashable key for each mask."""
    packed = np.ascontiguousarray(np.packbits(masks, axis=1))
    if packed.shape[1] == 0:
        return [b""] * len(masks)
    keys: list[bytes] = packed.view(f"V{packed.shape[1]}").ravel().tolist()
    return keys


def all_coalitions(n_features: int) -> Masks:
    """Return every mask (2^features, features); row r keeps the features whose bits are set in r."""
    return (np.arange(2**n_features)[:, None] >> np.arange(n_features) & 1).astype(np.bool_)


def subset_sums(values: Floats) -> Floats:
    """Return for every mask the sum of the values of all its subsets; masks are in binary order (masks, …).

    >>> subset_sums(np.array([1.0, 2.0, 4.0, 8.0]))
    array([ 1.,  3.,  5., 15.])
    """
    sums = values.copy()
    for bit in range(len(values).bit_length() - 1):
        pairs = sums.reshape(-1, 2, 1 << bit, *values.shape[1:])
        pairs[:, 1] += pairs[:, 0]
    return sums


def shapley_values_of(values: Floats) -> Floats:
    """Return the Shapley values (features, …) of a game from its values for all masks in binary order."""
    d = len(values).bit_length() - 1
    masks = all_coalitions(d)
    size = masks.sum(axis=1)
    weight = np.array([1.0 / (d * comb(d - 1, s)) for s in range(d)])
    phi = np.empty((d, *values.shape[1:]))
    for i in range(d):
        without = np.flatnonzero(~masks[:, i])
        gain = values[without + 2**i] - values[without]
        phi[i] = np.tensordot(weight[size[without]], gain, axes=1)
    return phi
