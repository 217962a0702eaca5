"""Interaction indices of order 2 by their definitions: sums over all sets, and Faith-Shap's regression."""

from itertools import combinations
from math import comb, factorial

import numpy as np


def of_sets(table, weight):
    """Return Σ_S weight(|S|) · second difference at S, for each pair (features, features)."""
    d = len(table).bit_length() - 1
    found = np.zeros((d, d))
    for i, j in combinations(range(d), 2):
        for members in range(2**d):
            if not members >> i & 1 and not members >> j & 1:
                with_i, with_j = members | 1 << i, members | 1 << j
                second = table[with_i | with_j] - table[with_i] - table[with_j] + table[members]
                found[i, j] += weight(members.bit_count()) * second
        found[j, i] = found[i, j]
    return found


def shapley_pairs(table):
    """Return the index of Grabisch & Roubens 1999."""
    d = len(table).bit_length() - 1
    return of_sets(table, lambda s: factorial(s) * factorial(d - s - 2) / factorial(d - 1))


def taylor_pairs(table):
    """Return the index of Sundararajan et al. 2020, Eqn. 3."""
    d = len(table).bit_length() - 1
    return of_sets(table, lambda s: 2 / d / comb(d - 1, s))


def banzhaf_pairs(table):
    """Return the mean over all sets."""
    d = len(table).bit_length() - 1
    return of_sets(table, lambda s: 2.0 ** -(d - 2))


def triples_of_sets(table, weight):
    """Return Σ_S weight(|S|) · third difference at S, for each triple in order."""
    d = len(table).bit_length() - 1
    found = []
    for triple in combinations(range(d), 3):
        inside = sum(1 << i for i in triple)
        total = 0.0
        for members in range(2**d):
            if not members & inside:
                for part in range(8):
                    chosen = sum(1 << i for place, i in enumerate(triple) if part >> place & 1)
                    sign = (-1) ** (3 - part.bit_count())
                    total += weight(members.bit_count()) * sign * table[members | chosen]
        found.append(total)
    return np.array(found)


def shapley_triples(table):
    """Return the index of Grabisch & Roubens 1999."""
    d = len(table).bit_length() - 1
    return triples_of_sets(table, lambda s: factorial(s) * factorial(d - s - 3) / factorial(d - 2))


def banzhaf_triples(table):
    """Return the mean over all sets."""
    d = len(table).bit_length() - 1
    return triples_of_sets(table, lambda s: 2.0 ** -(d - 3))


def faith_shap(table):
    """Return the values of features and pairs, by the regression of Tsai et al. 2023, exact at both ends."""
    d = len(table).bit_length() - 1
    pairs = list(combinations(range(d), 2))
    sets = [(i,) for i in range(d)] + pairs
    masks = np.arange(2**d)[:, None] >> np.arange(d) & 1
    design = np.stack([masks[:, list(members)].prod(axis=1) for members in sets], axis=1).astype(float)
    size = masks.sum(axis=1)
    inner = (size > 0) & (size < d)
    weight = np.array([1 / (comb(d, s) * s * (d - s)) for s in size[inner].tolist()])
    gram = design[inner].T @ (weight[:, None] * design[inner])
    right = design[inner].T @ (weight * (table[inner] - table[0]))
    ones = np.ones(len(sets))  # all values together are the gain
    system = np.block([[gram, ones[:, None]], [ones[None], np.zeros((1, 1))]])
    found = np.linalg.solve(system, np.append(right, table[-1] - table[0]))[:-1]
    matrix = np.zeros((d, d))
    for (i, j), value in zip(pairs, found[d:], strict=True):
        matrix[i, j] = matrix[j, i] = value
    return found[:d], matrix
