"""A small network that scores tokens by a transformer's own hidden states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from pertinent.inputs.base import Input
from pertinent.learned.networks.scorer import Batch, Scorer
from pertinent.learned.networks.token_scorer import read_tokens
from pertinent.models.base import Model
from pertinent.models.torch.tokens import TokenBatch

if TYPE_CHECKING:
    from pertinent.models.transformer import TransformerModel


class HiddenStateScorer(Scorer):
    """A GRU over the last hidden states of the explained model, and a linear layer (MAGNEx, Fig. 2).

    The model itself is neither changed nor kept: it is there whenever it is explained.
    """

    kind = "hidden-states"

    def __init__(self, n_columns: int, width: int) -> None:
        super().__init__(n_columns)
        self.width = width
        self.recurrent = nn.GRU(width, width // 2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * (width // 2), n_columns)

    @classmethod
    def of(cls, model: Model, inputs: Sequence[Input], n_columns: int) -> HiddenStateScorer:
        """One as wide as the model's hidden states."""
        del inputs
        wrapped: TransformerModel = model  # type: ignore[assignment]
        return cls(n_columns, wrapped.model.config.hidden_size)

    @classmethod
    def from_config(cls, config: Mapping[str, Any], n_columns: int) -> HiddenStateScorer:
        """One of the same width."""
        return cls(n_columns, config["width"])

    def arguments(self) -> dict[str, Any]:
        """The width of the hidden states."""
        return {"width": self.width}

    def read(self, model: Model, inputs: Sequence[Input]) -> Batch:
        """Whole texts."""
        return read_tokens(model, inputs)

    def part_scores(self, model: Model, batch: Batch, call: Any) -> torch.Tensor:
        """Run the model, and the network on its hidden states."""
        wrapped: TransformerModel = model  # type: ignore[assignment]
        tokens: TokenBatch = batch.arrays
        whole = torch.autocast(wrapped.device.type, enabled=False)  # it is explained in its own precision
        with torch.no_grad(), whole, wrapped.evaluating(tokens.ids.shape):
            hidden = wrapped.forward(tokens, wrapped.model.base_model).last_hidden_state
        seen = np.ones(tokens.ids.shape, dtype=np.bool_) if tokens.attend is None else tokens.attend
        lengths = torch.from_numpy(seen.sum(axis=1))
        scores: torch.Tensor = call(hidden=hidden.float(), lengths=lengths)
        return scores

    def forward(self, **options: Any) -> torch.Tensor:
        """Scores (rows, tokens, columns)."""
        hidden: torch.Tensor = options["hidden"]
        packed = nn.utils.rnn.pack_padded_sequence(
            hidden, options["lengths"], batch_first=True, enforce_sorted=False
        )
        found, _ = nn.utils.rnn.pad_packed_sequence(
            self.recurrent(packed)[0], batch_first=True, total_length=hidden.shape[1]
        )
        scores: torch.Tensor = self.head(found)
        return scores
