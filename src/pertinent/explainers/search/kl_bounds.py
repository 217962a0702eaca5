"""Confidence bounds of Bernoulli means by their Kullback–Leibler divergence."""

from __future__ import annotations

from math import log

import numpy as np

from pertinent.array_types import Floats

BISECTIONS = 32
TINY = 1e-12


def exploration(rounds: int, arms: int, delta: float) -> float:
    """β(t, δ) of KL-LUCB with α = 1.1 and k₁ = 405.5 (Kaufmann & Kalyanakrishnan 2013, Thm. 2)."""
    first = log(405.5 * arms * rounds**1.1 / delta)
    return first + log(first)


def upper_bounds(means: Floats, n: Floats, level: float) -> Floats:
    """For each mean p of n draws, the largest q with n · KL(p ‖ q) ≤ level; 1 where n is 0."""
    p = np.clip(means, TINY, 1 - TINY)
    # KL(p ‖ q) = p log p + (1 − p) log(1 − p) − p log q − (1 − p) log(1 − q); the first two are constant.
    most = level - n * (p * np.log(p) + (1 - p) * np.log1p(-p))
    in_p, in_rest = -n * p, -n * (1 - p)
    low, high = p, np.ones_like(p)
    for _ in range(BISECTIONS):
        q = np.minimum((low + high) / 2, 1 - TINY)
        inside = in_p * np.log(q) + in_rest * np.log1p(-q) <= most
        low, high = np.where(inside, q, low), np.where(inside, high, q)
    return high


def lower_bounds(means: Floats, n: Floats, level: float) -> Floats:
    """The smallest such q; 0 where n is 0."""
    return 1 - upper_bounds(1 - means, n, level)
