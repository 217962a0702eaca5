"""Metrics with one feature and one call at a time."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from math import ceil, log

import numpy as np


def set_size(sparsity: float, d: int) -> int:
    """Return k = ceil(s·d), in exact decimal arithmetic."""
    return ceil(Fraction(str(sparsity)) * d)


def ranked(scores) -> list[int]:
    """Return feature indices by falling score, with ties in the order of the input."""
    return sorted(range(len(scores)), key=lambda i: (-scores[i], i))


def probability(game, kept, target: int) -> float:
    mask = np.zeros((1, game.d), dtype=bool)
    mask[0, list(kept)] = True
    return float(game.values(mask)[0, target])


def log_odds(p: float) -> float:
    return log(p / (1 - p))


def _difference(game, kept, target: int, scale: str) -> float:
    before, after = probability(game, range(game.d), target), probability(game, kept, target)
    return before - after if scale == "natural" else log_odds(before) - log_odds(after)


def sufficiency(game, scores, target: int, sparsity: float, scale: str = "natural") -> float:
    chosen = ranked(scores)[: set_size(sparsity, game.d)]
    return _difference(game, chosen, target, scale)


def comprehensiveness(game, scores, target: int, sparsity: float, scale: str = "natural") -> float:
    chosen = ranked(scores)[: set_size(sparsity, game.d)]
    return _difference(game, [i for i in range(game.d) if i not in chosen], target, scale)


def insertion(game, scores, target: int) -> float:
    """Return the area under the curve with a point after every feature."""
    order, kept = ranked(scores), []
    curve = [probability(game, kept, target)]
    for feature in order:
        kept.append(feature)
        curve.append(probability(game, kept, target))
    return sum((a + b) / 2 for a, b in pairwise(curve)) / game.d


def deletion(game, scores, target: int) -> float:
    order = ranked(scores)
    curve = [probability(game, order[gone:], target) for gone in range(game.d + 1)]
    return sum((a + b) / 2 for a, b in pairwise(curve)) / game.d
