"""The networks of a method that learns to select, trained together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from pertinent.inputs.base import Input
from pertinent.learned.networks.approximators import Approximator, approximator_for
from pertinent.learned.networks.fitted_network import device_of, small_scorer_for
from pertinent.learned.networks.hidden_state_scorer import HiddenStateScorer
from pertinent.learned.networks.scorer import Batch, Scorer
from pertinent.learned.networks.word_scorer import WordScorer
from pertinent.models.base import Model
from pertinent.models.torch import devices
from pertinent.models.transformer import TransformerModel


class Networks(nn.Module):
    """Scorers and approximators by name, which read the same batches, and numbers to remember."""

    memory: torch.Tensor

    def __init__(self, parts: Mapping[str, nn.Module], n_memory: int) -> None:
        super().__init__()
        self.parts = nn.ModuleDict(dict(parts))
        self.register_buffer("memory", torch.zeros(n_memory))

    @property
    def reader(self) -> Scorer:
        """A scorer whose batches all networks read."""
        return next(part for part in self.parts.values() if isinstance(part, Scorer))

    def scores(self, name: str, model: Model, batch: Batch, width: int) -> torch.Tensor:
        """Scores of features (rows, columns, width)."""
        scorer = self.parts[name]
        assert isinstance(scorer, Scorer)
        return scorer.scores(model, batch, width)

    def approximate(self, name: str, batch: Batch, kept: torch.Tensor) -> torch.Tensor:
        """Logits (rows, columns) of inputs that keep a share (rows, width) of each feature."""
        approximator = self.parts[name]
        assert isinstance(approximator, Approximator)
        owners = devices.send(batch.owners, kept.device)
        of_parts = kept.gather(1, owners.clamp(min=0)).masked_fill(owners < 0, 1.0)
        arrays = {key: devices.send(each, kept.device) for key, each in batch.arrays.items()}
        logits: torch.Tensor = approximator(of_parts, **arrays)
        return logits


def new_networks(
    layouts: Mapping[str, Any],
    model: Model,
    inputs: Sequence[Input],
    n_columns: int,
    *,
    n_memory: int,
    seed: int,
) -> Networks:
    """Networks that are to be trained, on the model's device; `layouts` say what each of them is.

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
        others = {name: approximator_for(first, n_columns) for name in layouts if name not in scorers}
    return Networks({**scorers, **others}, n_memory).to(device_of(model))


def _has_hidden_states(module: Any) -> bool:
    """Whether it is a head on a body of its own, as in transformers."""
    return getattr(module, "base_model", module) is not module


def _scorer(layout: Any, model: Model, inputs: Sequence[Input], n_columns: int) -> Scorer:
    """The scorer of a layout, for inputs like these."""
    columns = n_columns if layout.columns is None else layout.columns
    if layout.hidden and isinstance(model, TransformerModel) and _has_hidden_states(model.model):
        return HiddenStateScorer.of(model, inputs, columns)
    kind = small_scorer_for(inputs)
    if issubclass(kind, WordScorer):
        return kind.of(model, inputs, columns, context=layout.context)
    return kind.of(model, inputs, columns)
