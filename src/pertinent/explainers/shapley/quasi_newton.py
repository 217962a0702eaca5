"""Maximise a smooth function of many variables by L-BFGS."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pertinent.array_types import Floats

STEPS = 30
ENOUGH = 0.1
"""Largest number of steps, and the gain below which it stops."""


def climb(function: Callable[[Floats], tuple[float, Floats]], point: Floats) -> Floats:
    """Maximise a function that returns its value and gradient, by quasi-Newton steps (L-BFGS)."""
    value, slope = function(point)
    curvature = InverseCurvature(1 / max(1.0, float(np.abs(slope).max())))
    for _ in range(STEPS):
        move = curvature @ slope
        move *= min(1.0, 2.0 / float(np.abs(move).max() + 1e-300))
        for _ in range(6):
            new_value, new_slope = function(point + move)
            if new_value > value + 1e-4 * float(slope @ move):
                break
            move = move / 3
        else:
            return point
        gain, change = new_value - value, slope - new_slope
        point, value, slope = point + move, new_value, new_slope
        if gain < ENOUGH:
            return point
        curvature.update(move, change)
    return point


class InverseCurvature:
    """The inverse of a function's negative Hessian, estimated by BFGS from the latest moves and slopes.

    The product with a vector is computed from the moves (two-loop recursion), without a matrix.
    """

    def __init__(self, scale: float) -> None:
        self._scale = scale
        self._pairs: list[tuple[Floats, Floats, float]] = []

    def update(self, move: Floats, change: Floats) -> None:
        """Add a move and the decrease of the slope along it; ignore it if the slope did not decrease."""
        product = float(move @ change)
        if product > 0:
            if not self._pairs:
                self._scale = product / float(change @ change)
            self._pairs.append((move, change, product))

    def __matmul__(self, vector: Floats) -> Floats:
        weights = []
        for move, change, product in reversed(self._pairs):
            weights.append(float(move @ vector) / product)
            vector = vector - weights[-1] * change
        vector = self._scale * vector
        for (move, change, product), weight in zip(self._pairs, reversed(weights), strict=True):
            vector = vector + (weight - float(change @ vector) / product) * move
        return vector
