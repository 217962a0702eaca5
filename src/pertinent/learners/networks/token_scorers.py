"""Networks that score a transformer's tokens: its encoder, or a small network on its hidden states."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

import numpy as np
import torch
from torch import nn

from pertinent.errors import SettingError
from pertinent.inputs.base import Input
from pertinent.inputs.text import TextInput
from pertinent.inputs.tokens import Tokens
from pertinent.learners.networks.scorer import (
    Approximator,
    Scorer,
    ScorerBatch,
    run_recurrent,
    small_scorer_for,
)
from pertinent.learners.schedule import Schedule
from pertinent.models.base import Model
from pertinent.models.heads.text_classification import ClassificationHead
from pertinent.models.tokens.batches import TokenBatch, collate
from pertinent.models.transformer import TransformerModel
from pertinent.removals.base import TokenRows


class TransformerScorer(Scorer):
    """Base class of scorers that read a transformer's tokens."""

    def read(self, model: Model, inputs: Sequence[Input]) -> ScorerBatch:
        """Read whole texts; special tokens and padding belong to no feature."""
        tokens = [_tokens(input) for input in inputs]
        rows = [TokenRows(text, np.ones((1, len(text.ids)), dtype=np.bool_)) for text in tokens]
        batch = collate(rows, [False] * len(rows), _transformer(model).pad_id)
        owners = np.full(batch.ids.shape, -1)
        for row, text in zip(owners, tokens, strict=True):
            row[: len(text.feature)] = text.feature
        return ScorerBatch(batch, owners)


class TokenScorer(TransformerScorer):
    """An encoder with a linear layer that scores every token for each column."""

    kind = "tokens"
    schedule = Schedule(epochs=10, learning_rate=5e-5, measurements=None)
    most_classes = 0

    def __init__(self, encoder: Any, n_columns: int) -> None:
        super().__init__(n_columns)
        if getattr(encoder, "pooler", None) is not None:
            encoder.pooler = None  # would be saved but never used
        self.encoder = encoder
        self.head = torch.nn.Linear(encoder.config.hidden_size, n_columns)

    @classmethod
    def from_model(
        cls, model: Model, inputs: Sequence[Input], n_columns: int, **options: bool
    ) -> TokenScorer:
        """Return a copy of the model's encoder with a new linear layer."""
        network, _ = _transformer(model).in_transformers()
        encoder = copy.deepcopy(network.base_model)
        return cls(encoder.float(), n_columns).requires_grad_(True)

    @classmethod
    def from_config(cls, config: Mapping[str, Any], n_columns: int) -> TokenScorer:
        """Return an encoder from a transformers configuration."""
        from transformers import CONFIG_MAPPING, AutoModel

        encoder_config = CONFIG_MAPPING[config["model_type"]].from_dict(dict(config))
        return cls(AutoModel.from_config(encoder_config).float(), n_columns)  # type: ignore[no-untyped-call]

    def save_config(self, folder: Path) -> None:
        """Write the configuration in the transformers format."""
        self.encoder.config.save_pretrained(folder)

    def approximator(self, model: Model, n_columns: int) -> TokenApproximator:
        """Return a copy of the model, which must be a classifier or a regressor."""
        if not isinstance(_transformer(model).head, ClassificationHead):
            raise SettingError("`surrogate` must be False for a model that is not a classifier.")
        return TokenApproximator(model)

    @property
    def title(self) -> str:
        """Return the name of the encoder."""
        return type(self.encoder).__name__

    def part_scores(self, model: Model, batch: ScorerBatch, call: Any) -> torch.Tensor:
        """Return the scores of all tokens; the model selects the encoder's arguments."""
        scores: torch.Tensor = _transformer(model).forward(batch.arrays, call)
        return scores

    def forward(self, **options: Any) -> torch.Tensor:
        """Return scores (rows, tokens, columns)."""
        scores: torch.Tensor = self.head(self.encoder(**options).last_hidden_state)
        return scores


class TokenApproximator(Approximator):
    """A copy of a transformer and its head that does not attend to removed tokens."""

    copies_model = True

    def __init__(self, model: Model) -> None:
        super().__init__()
        network, _ = _transformer(model).in_transformers()
        self.network = copy.deepcopy(network).float().requires_grad_(True)

    def part_logits(self, model: Model, batch: ScorerBatch, kept: torch.Tensor) -> torch.Tensor:
        """Return logits (rows, columns); a token is attended to if its share is not 0."""
        tokens: TokenBatch = batch.arrays
        attend = kept.detach().bool().cpu().numpy()
        attend = attend if tokens.attend is None else attend & tokens.attend
        wrapped = _transformer(model)
        return wrapped.head.answer_of(wrapped.forward(replace(tokens, attend=attend), self.network)).float()


class _Texts(NamedTuple):
    """The tokens of texts, and their hidden states if the model has cached them."""

    tokens: TokenBatch
    hidden: torch.Tensor | None


class HiddenStateScorer(TransformerScorer):
    """A GRU and a linear layer on the last hidden states of the explained model (MAGNEx, Fig. 2).

    The explained model is neither changed nor saved with the network.
    """

    kind = "hidden-states"
    config_names = ("width",)

    def __init__(self, n_columns: int, width: int) -> None:
        super().__init__(n_columns)
        self.width = width
        self.recurrent = nn.GRU(width, width // 2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * (width // 2), n_columns)

    @classmethod
    def suits(cls, model: Model) -> bool:
        """Return whether the model is a transformer with a separate encoder that reads whole texts."""
        return reads_whole_texts(model) and (
            getattr(model.model, "base_model", model.model) is not model.model
        )

    @classmethod
    def from_model(
        cls, model: Model, inputs: Sequence[Input], n_columns: int, **options: bool
    ) -> HiddenStateScorer:
        """Return a network with the width of the model's hidden states."""
        return cls(n_columns, _transformer(model).model.config.hidden_size)

    def sharing_passes(self, model: Model) -> AbstractContextManager[None]:
        """Return a context in which the model caches its hidden states when it evaluates whole texts."""
        return _transformer(model).keeping_hidden_states() if self.suits(model) else nullcontext()

    def read(self, model: Model, inputs: Sequence[Input]) -> ScorerBatch:
        """Read whole texts, with their hidden states if the model has cached them."""
        batch = super().read(model, inputs)
        cached = _transformer(model).hidden_states
        hidden = None if cached is None else cached.take([_tokens(input) for input in inputs])
        return ScorerBatch(_Texts(batch.arrays, hidden), batch.owners)

    def part_scores(self, model: Model, batch: ScorerBatch, call: Any) -> torch.Tensor:
        """Run the network on the hidden states, and the model first if they are not cached."""
        wrapped = _transformer(model)
        texts: _Texts = batch.arrays
        tokens, hidden = texts.tokens, texts.hidden
        if hidden is None:
            unchanged = torch.autocast(wrapped.device.type, enabled=False)  # the model keeps its precision
            with torch.no_grad(), unchanged, wrapped.evaluating(tokens.ids.shape):
                hidden = wrapped.forward(tokens, wrapped.model.base_model).last_hidden_state
        seen = np.ones(tokens.ids.shape, dtype=np.bool_) if tokens.attend is None else tokens.attend
        lengths = torch.from_numpy(seen.sum(axis=1))
        scores: torch.Tensor = call(hidden=hidden.float(), lengths=lengths)
        return scores

    def forward(self, **options: Any) -> torch.Tensor:
        """Return scores (rows, tokens, columns)."""
        hidden: torch.Tensor = options["hidden"]
        scores: torch.Tensor = self.head(run_recurrent(self.recurrent, hidden, options["lengths"]))
        return scores


def scorer_for(model: Model, inputs: Sequence[Input]) -> type[Scorer]:
    """Return the network that learns scores: the encoder of a transformer without windows, or a small one."""
    small = small_scorer_for(inputs)
    return TokenScorer if reads_whole_texts(model) else small


def reads_whole_texts(model: Model) -> TypeGuard[TransformerModel]:
    """Return whether the model is a transformer whose encoder reads whole texts instead of windows."""
    return isinstance(model, TransformerModel) and model.windows is None


def _transformer(model: Model) -> TransformerModel:
    assert isinstance(model, TransformerModel)
    return model


def _tokens(input: Input) -> Tokens:
    assert isinstance(input, TextInput) and input.tokens is not None
    return input.tokens
