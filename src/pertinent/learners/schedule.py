"""Default length of a network's training."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

LEAST_EPOCHS = 10
"""Smallest default number of epochs."""


@dataclass(frozen=True)
class Schedule:
    """Default length of a network's training.

    Attributes
    ----------
    epochs
        Largest number of passes over the inputs.
    learning_rate
        Learning rate of AdamW.
    measurements
        Number of times the network is measured on the validation inputs during training; ``None`` for once
        per epoch.
    steps
        Number of steps that is sufficient when there are many inputs.
    """

    epochs: int
    learning_rate: float
    measurements: int | None
    steps: int = 10**9

    def epochs_of(self, n_training: float, batch_size: int) -> int:
        """Return the number of epochs for this number of training inputs."""
        return min(self.epochs, max(LEAST_EPOCHS, ceil(self.steps / ceil(n_training / batch_size))))
