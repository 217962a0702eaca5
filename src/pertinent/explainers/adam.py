"""Adam, the optimiser of methods that learn a mask."""

from __future__ import annotations

import numpy as np

from pertinent.array_types import Floats


class AdamW:
    """Loshchilov & Hutter 2019, Alg. 2, with torch's defaults; without `decay` it is Adam.

    In numpy, because for a state of a few hundred numbers torch's optimiser takes five times as long.
    """

    def __init__(self, rate: float, n: int, decay: float = 0.01) -> None:
        self.rate = rate
        self.decay = decay
        self.steps = 0
        self.mean, self.square = np.zeros(n), np.zeros(n)

    def __call__(self, state: Floats, gradient: Floats) -> Floats:
        """The state after one step."""
        self.steps += 1
        self.mean = 0.9 * self.mean + 0.1 * gradient
        self.square = 0.999 * self.square + 0.001 * gradient**2
        mean = self.mean / (1 - 0.9**self.steps)
        square = self.square / (1 - 0.999**self.steps)
        kept = 1 - self.decay * self.rate
        return np.asarray(state * kept - self.rate * mean / (np.sqrt(square) + 1e-8))
