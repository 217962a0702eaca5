"""A transformer's encoder that scores tokens, fitted to explain the transformer."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from pertinent.inputs.base import Input
from pertinent.inputs.text import TextInput
from pertinent.learned.networks.scorer import Batch, Scorer
from pertinent.models.base import Model
from pertinent.models.torch.tokens import collate
from pertinent.removal.base import TokenRows

if TYPE_CHECKING:
    from pertinent.models.transformer import TransformerModel


class TokenScorer(Scorer):
    """An encoder and a linear layer that gives every token a score for each column."""

    kind = "tokens"
    epochs = 10
    learning_rate = 5e-5
    checks = None

    def __init__(self, encoder: Any, n_columns: int) -> None:
        super().__init__(n_columns)
        if getattr(encoder, "pooler", None) is not None:
            encoder.pooler = None  # it would be saved, but never used
        self.encoder = encoder
        self.head = torch.nn.Linear(encoder.config.hidden_size, n_columns)

    @classmethod
    def of(cls, model: Model, inputs: Sequence[Input], n_columns: int) -> TokenScorer:
        """A copy of the model's encoder with a new linear layer."""
        del inputs
        wrapped: TransformerModel = model  # type: ignore[assignment]
        return cls(copy.deepcopy(wrapped.model.base_model).float(), n_columns).requires_grad_(True)

    @classmethod
    def from_config(cls, config: Mapping[str, Any], n_columns: int) -> TokenScorer:
        """An encoder of transformers' configuration."""
        from transformers import CONFIG_MAPPING, AutoModel

        own = CONFIG_MAPPING[config["model_type"]].from_dict(dict(config))
        return cls(AutoModel.from_config(own).float(), n_columns)  # type: ignore[no-untyped-call]

    def arguments(self) -> dict[str, Any]:
        """The encoder's own."""
        return dict(self.encoder.config.to_dict())

    def save_config(self, folder: Path) -> None:
        """As transformers has it."""
        self.encoder.config.save_pretrained(folder)

    @property
    def title(self) -> str:
        """The name of the encoder."""
        return type(self.encoder).__name__

    def read(self, model: Model, inputs: Sequence[Input]) -> Batch:
        """Whole texts."""
        return read_tokens(model, inputs)

    def part_scores(self, model: Model, batch: Batch, call: Any) -> torch.Tensor:
        """The scores of all tokens; the model knows which arguments its encoder takes."""
        wrapped: TransformerModel = model  # type: ignore[assignment]
        scores: torch.Tensor = wrapped.forward(batch.arrays, call)
        return scores

    def forward(self, **options: Any) -> torch.Tensor:
        """Scores (rows, tokens, columns)."""
        scores: torch.Tensor = self.head(self.encoder(**options).last_hidden_state)
        return scores


def read_tokens(model: Model, inputs: Sequence[Input]) -> Batch:
    """Whole texts; special tokens and padding belong to no feature."""
    wrapped: TransformerModel = model  # type: ignore[assignment]
    tokens = [tokens_of(input) for input in inputs]
    rows = [TokenRows(own, np.ones((1, len(own.ids)), dtype=np.bool_)) for own in tokens]
    batch = collate(rows, [False] * len(rows), wrapped.pad_id)
    owners = np.full(batch.ids.shape, -1)
    for row, own in zip(owners, tokens, strict=True):
        row[: len(own.feature)] = own.feature
    return Batch(batch, owners)


def tokens_of(input: Input) -> Any:
    """The tokens of a text."""
    assert isinstance(input, TextInput) and input.tokens is not None
    return input.tokens
