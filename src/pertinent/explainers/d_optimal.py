"""Masks from which a linear regression learns most: a greedy D-optimal design."""

from __future__ import annotations

import numpy as np

from pertinent.array_types import Floats, Masks

SPARE = 256
"""Number of random candidates in addition to the masks that are needed."""

WORK = 1e9
"""Largest number of multiplications; beyond it, there are fewer spare candidates."""


def d_optimal_masks(n: int, d: int, rng: np.random.Generator) -> Masks:
    r"""Return n masks of d features: the full mask, and random halves that determine a linear model well.

    Each mask is the candidate z, as ±1 with a constant, whose prediction has the largest variance given the
    previous masks, :math:`z^\top (I + Z^\top Z)^{-1} z`. This maximises the determinant of the information
    matrix step by step.

    >>> d_optimal_masks(4, 3, np.random.default_rng(0)).sum(axis=0)  # each feature is kept in half of them
    array([2, 2, 2])
    """
    spare = int(np.clip(WORK / (n * (d + 1)) - n, 0, SPARE))
    masks: Masks = rng.random((n + spare, d)) < 0.5
    masks[0] = True
    if not spare:
        return masks
    x: Floats = np.hstack([np.ones((len(masks), 1)), np.where(masks, 1.0, -1.0)])
    inverse = np.eye(d + 1)
    variance: Floats = np.full(len(masks), d + 1.0)
    chosen = [0]
    while True:
        scaled = inverse @ x[chosen[-1]]
        scaled /= np.sqrt(1 + x[chosen[-1]] @ scaled)
        inverse -= np.outer(scaled, scaled)
        variance -= (x @ scaled) ** 2
        variance[chosen[-1]] = -np.inf
        if len(chosen) == n:
            return masks[chosen]
        chosen.append(int(variance.argmax()))
