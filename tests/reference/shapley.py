"""Shapley and Banzhaf values by their definitions, and KernelSHAP as a textbook regression."""

from __future__ import annotations

from itertools import chain, combinations, permutations
from math import comb, factorial

import numpy as np


def subsets(items):
    return chain.from_iterable(combinations(items, size) for size in range(len(items) + 1))


def value(game, members) -> np.ndarray:
    mask = np.zeros((1, game.d), dtype=bool)
    mask[0, list(members)] = True
    return game.values(mask)[0]


def shapley_by_permutations(game) -> np.ndarray:
    """Return the mean marginal contribution over all d! orders, (classes, features)."""
    known = {frozenset(s): value(game, s) for s in subsets(range(game.d))}
    total = np.zeros((game.d, len(known[frozenset()])))
    for order in permutations(range(game.d)):
        for place, feature in enumerate(order):
            before = frozenset(order[:place])
            total[feature] += known[before | {feature}] - known[before]
    return total.T / factorial(game.d)


def banzhaf_by_definition(game) -> np.ndarray:
    """Return the mean marginal contribution over all subsets of the others, (classes, features)."""
    columns = []
    for i in range(game.d):
        others = [j for j in range(game.d) if j != i]
        gains = [value(game, (*s, i)) - value(game, s) for s in subsets(others)]
        columns.append(np.mean(gains, axis=0))
    return np.array(columns).T


def kernel_shap_with_all_coalitions(game) -> np.ndarray:
    """Solve weighted least squares with a Lagrange multiplier for efficiency, (classes, features)."""
    d = game.d
    empty, full = value(game, ()), value(game, range(d))
    proper = [s for s in subsets(range(d)) if 0 < len(s) < d]
    normal, right = np.zeros((d + 1, d + 1)), np.zeros((d + 1, len(empty)))
    for s in proper:
        z = np.zeros(d)
        z[list(s)] = 1.0
        weight = (d - 1) / (comb(d, len(s)) * len(s) * (d - len(s)))
        normal[:d, :d] += weight * np.outer(z, z)
        right[:d] += weight * np.outer(z, value(game, s) - empty)
    normal[:d, d] = normal[d, :d] = 1.0
    right[d] = full - empty
    return np.linalg.solve(normal, right)[:d].T
