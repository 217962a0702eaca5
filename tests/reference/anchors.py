"""Plain anchors: precision by enumeration, bounds by small steps, sets one at a time."""

from __future__ import annotations

from itertools import product
from math import log

import numpy as np


def precision(game, anchor, target: int = 0, keep: float = 0.5) -> float:
    """Return P(the target is predicted | the anchor is kept), over all masks that contain it."""
    masks = [bits for bits in product([False, True], repeat=game.d) if all(bits[i] for i in anchor)]
    total = 0.0
    for bits, values in zip(masks, game.values(np.array(masks)), strict=True):
        chance = 1.0
        for i, bit in enumerate(bits):
            if i not in anchor:
                chance *= keep if bit else 1 - keep
        total += chance * (int(np.argmax(values)) == target)
    return total


def beam_search(game, most: int, beam: int, target: int = 0) -> list[dict[frozenset, float]]:
    """Return the beam of each size by the true precisions, the limit of many samples."""
    beams: list[dict[frozenset, float]] = [{frozenset(): precision(game, (), target)}]
    while len(beams) <= most:
        sets = {s | {j} for s in beams[-1] for j in range(game.d) if j not in s}
        known = {s: precision(game, s, target) for s in sets}
        beams.append({s: known[s] for s in sorted(known, key=lambda s: (-known[s], sorted(s)))[:beam]})
    return beams


def divergence(p: float, q: float) -> float:
    """Return KL(p ‖ q) of Bernoulli distributions, with 0 log 0 = 0."""
    first = p * log(p / q) if p > 0 else 0.0
    second = (1 - p) * log((1 - p) / (1 - q)) if p < 1 else 0.0
    return first + second


def upper_bound(p: float, n: int, level: float, step: float = 1e-4) -> float:
    """Increase q from p while n · KL(p ‖ q) is within the level."""
    q = p
    while q + step < 1 and n * divergence(p, q + step) <= level:
        q += step
    return q


def lower_bound(p: float, n: int, level: float, step: float = 1e-4) -> float:
    q = p
    while q - step > 0 and n * divergence(p, q - step) <= level:
        q -= step
    return q


def fair_samples(drawn: list[tuple[frozenset, frozenset]], anchor: frozenset) -> list[int]:
    """Return those pairs (drawn for, kept) that are also samples of the anchor."""
    return [i for i, (origin, kept) in enumerate(drawn) if origin <= anchor <= kept]
