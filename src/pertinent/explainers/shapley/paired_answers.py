"""Answers to pairs of a mask and its complement, requested in one or several rounds."""

from __future__ import annotations

import numpy as np

from pertinent.array_types import Floats
from pertinent.asks import Asking, Values
from pertinent.explainers.base import Task
from pertinent.explainers.shapley.mask_design import design, spread_pairs
from pertinent.masks import full_mask


class PairedAnswers:
    """Answers to pairs of a mask and its complement; the first pair is the full and the empty mask.

    With early stopping, each round draws new pairs; otherwise all rounds share one design of `n_pairs`.

    Attributes
    ----------
    masks
        One mask of each pair (pairs, features).
    values, complements
        Answers to the masks and to their complements (pairs, columns).
    """

    def __init__(self, task: Task, ends: Floats, n_pairs: int) -> None:
        d = task.n_features
        self.masks, self.values, self.complements = full_mask(d), ends[1:], ends[:1]
        self._rng = task.rng
        self._design = None if task.stops_early else design(d, n_pairs, int(task.rng.integers(2**62)))

    def extend(self, n_pairs: int) -> Asking[None]:
        """Request more pairs, up to `n_pairs` in addition to the first."""
        pairs = self.masks[1:]
        if self._design is None:
            new = spread_pairs(pairs, n_pairs, self._rng)
        else:
            new = self._design[len(pairs) : n_pairs]
        values, complements = np.split((yield Values(np.concatenate([new, ~new]))), 2)
        self.masks = np.concatenate([self.masks, new])
        self.values = np.concatenate([self.values, values])
        self.complements = np.concatenate([self.complements, complements])

    @property
    def all(self) -> Floats:
        """Return the answers to the masks followed by those to their complements."""
        return np.concatenate([self.values, self.complements])

    @property
    def odd(self) -> Floats:
        """Return the odd part of the game (pairs, columns)."""
        return (self.values - self.complements) / 2

    @property
    def even(self) -> Floats:
        """Return the even part of the game (pairs, columns)."""
        return (self.values + self.complements) / 2
