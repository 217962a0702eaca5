"""The jointly trained networks of a method that learns to select, and their batches."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

import torch
from torch import nn

from pertinent.learners.networks.scorer import Approximator, Scorer

if TYPE_CHECKING:
    from pertinent.learners.network_trainer import TrainingBatch
    from pertinent.learners.training_context import ModelAnswers


class JointNetworks(nn.Module):
    """Scorers and approximators by name, reading the same batches, and values stored between steps."""

    memory: torch.Tensor

    def __init__(self, parts: Mapping[str, nn.Module], n_memory: int) -> None:
        super().__init__()
        self.parts = nn.ModuleDict(dict(parts))
        self.register_buffer("memory", torch.zeros(n_memory))

    @property
    def reader(self) -> Scorer:
        """Return a scorer whose batches all networks read."""
        return next(part for part in self.parts.values() if isinstance(part, Scorer))


class SelectionBatch:
    """One training batch, as passed to the loss of a method that learns to select features.

    Attributes
    ----------
    real
        Mask of existing features (rows, width); inputs have different numbers of features.
    predictions
        The model's answers to the whole inputs (rows, columns).
    memory
        Values stored between steps and saved with checkpoints.
    """

    real: torch.Tensor
    predictions: torch.Tensor
    memory: torch.Tensor

    def __init__(self, networks: JointNetworks, answers: ModelAnswers, batch: TrainingBatch) -> None:
        self._parts, self._batch, self._answers = networks.parts, batch, answers
        self.real, self.memory = batch.real, networks.memory
        self.predictions = batch.targets["predictions"]

    def scores(self, network: str) -> torch.Tensor:
        """Return a network's scores (rows, columns, width) of all features; zero for padding."""
        scorer = self._parts[network]
        assert isinstance(scorer, Scorer)
        return self._batch.scores(scorer)

    def approximate(self, network: str, kept: torch.Tensor) -> torch.Tensor:
        """Return a network's logits (rows, columns) given the kept share (rows, width) of each feature."""
        passes, approximator = self._batch.passes, self._parts[network]
        assert isinstance(approximator, Approximator)
        shares = torch.split(kept, [len(batch.owners) for batch in passes])
        pairs = zip(passes, shares, strict=True)
        return torch.cat([approximator.logits(self._batch.model, batch, share) for batch, share in pairs])

    def ask(self, kept: torch.Tensor) -> torch.Tensor:
        """Return the model's answers (rows, columns) or (rows, samples, columns) to masked inputs.

        The mask `kept` is (rows, width) or (rows, samples, width).
        """
        return self._answers.ask_tensor(self._batch.inputs, kept)

    def inference(self) -> AbstractContextManager[None]:
        """Disable gradients, using the training precision."""
        return self._batch.inference()
