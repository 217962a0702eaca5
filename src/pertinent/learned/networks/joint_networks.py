"""The networks of a method that learns to select, which are trained together, and their batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from pertinent.errors import require
from pertinent.inputs.base import Input
from pertinent.learned.networks.scorer import Approximator, Scorer, ScorerBatch, device_of, small_scorer_for
from pertinent.learned.networks.token_scorers import HiddenStateScorer
from pertinent.learned.networks.word_scorer import PaperWordScorer, WordScorer
from pertinent.models.base import Model
from pertinent.models.torch import devices

if TYPE_CHECKING:
    from pertinent.learned.context import ModelAnswers
    from pertinent.learned.network_trainer import TrainingBatch


class JointNetworks(nn.Module):
    """Scorers and approximators by name, which read the same batches, and a `memory` of numbers."""

    memory: torch.Tensor

    def __init__(self, parts: Mapping[str, nn.Module], n_memory: int) -> None:
        super().__init__()
        self.parts = nn.ModuleDict(dict(parts))
        self.register_buffer("memory", torch.zeros(n_memory))

    @property
    def reader(self) -> Scorer:
        """A scorer whose batches all networks read."""
        return next(part for part in self.parts.values() if isinstance(part, Scorer))

    def batch(self, batch: TrainingBatch, answers: ModelAnswers) -> SelectionBatch:
        """A batch as the loss of a method sees it; `answers` asks the model."""
        return SelectionBatch(self, batch, answers)

    def scores(self, name: str, model: Model, batch: ScorerBatch, width: int) -> torch.Tensor:
        """Scores (rows, columns, width) of features by a network."""
        scorer = self.parts[name]
        assert isinstance(scorer, Scorer)
        return scorer.scores(model, batch, width)

    def approximate(self, name: str, batch: ScorerBatch, kept: torch.Tensor) -> torch.Tensor:
        """Logits (rows, columns) of a network for inputs that keep a share (rows, width) of each feature."""
        approximator = self.parts[name]
        assert isinstance(approximator, Approximator)
        owners = devices.send(batch.owners, kept.device)
        of_parts = kept.gather(1, owners.clamp(min=0)).masked_fill(owners < 0, 1.0)
        arrays = {key: devices.send(each, kept.device) for key, each in batch.arrays.items()}
        logits: torch.Tensor = approximator(of_parts, **arrays)
        return logits


class SelectionBatch:
    """One batch of training, as the loss of a method that learns to select sees it.

    Attributes
    ----------
    real
        Which features exist (rows, width), because inputs have different numbers of them.
    predictions
        The model's answers to the whole inputs (rows, columns).
    memory
        Numbers that are kept from step to step, and with checkpoints.
    """

    real: torch.Tensor
    predictions: torch.Tensor
    memory: torch.Tensor

    def __init__(self, networks: JointNetworks, batch: TrainingBatch, answers: ModelAnswers) -> None:
        self._networks, self._batch, self._answers = networks, batch, answers
        self.real, self.memory = batch.real, networks.memory
        self.predictions = batch.targets["predictions"]

    def scores(self, network: str) -> torch.Tensor:
        """The scores (rows, columns, width) of all features by a network; zero where there is none."""
        width, model = self.real.shape[1], self._batch.model
        return torch.cat([self._networks.scores(network, model, own, width) for own in self._batch.passes])

    def approximate(self, network: str, kept: torch.Tensor) -> torch.Tensor:
        """The logits (rows, columns) of a network for inputs that keep a share (rows, width) of a feature."""
        shares = torch.split(kept, [len(own.owners) for own in self._batch.passes])
        pairs = zip(self._batch.passes, shares, strict=True)
        return torch.cat([self._networks.approximate(network, batch, own) for batch, own in pairs])

    def ask(self, kept: torch.Tensor) -> torch.Tensor:
        """The model's answers (rows, columns) or (rows, samples, columns).

        Inputs keep the features in `kept` (rows, width) or (rows, samples, width) alone.
        """
        return self._answers.ask_tensor(self._batch.inputs, kept)

    def inference(self) -> AbstractContextManager[None]:
        """Compute without gradients, in the precision of the training."""
        return self._batch.inference()


def new_joint_networks(
    layouts: Mapping[str, Any],
    model: Model,
    inputs: Sequence[Input],
    n_columns: int,
    *,
    n_memory: int,
    seed: int,
) -> JointNetworks:
    """Make networks with random weights, on the model's device; `layouts` say what each of them is.

    A layout with `columns` is a scorer; one without is an approximator.
    """
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        scorers = {
            name: _scorer(layout, model, inputs, n_columns)
            for name, layout in layouts.items()
            if hasattr(layout, "columns")
        }
        first = next(iter(scorers.values()))
        others = {name: first.approximator(n_columns) for name in layouts if name not in scorers}
    return JointNetworks({**scorers, **others}, n_memory).to(device_of(model))


def _scorer(layout: Any, model: Model, inputs: Sequence[Input], n_columns: int) -> Scorer:
    """The scorer of a layout, for inputs like these."""
    columns = n_columns if layout.columns is None else layout.columns
    if layout.hidden and HiddenStateScorer.suits(model):
        return HiddenStateScorer.of(model, inputs, columns)
    kind = small_scorer_for(inputs)
    if layout.layers == "paper":
        require(kind is WordScorer, "layers", "'own' for other inputs than texts", "paper")
        kind = PaperWordScorer
    return kind.of(model, inputs, columns, context=layout.context, bias=layout.bias)
