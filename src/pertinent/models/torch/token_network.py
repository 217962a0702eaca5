"""A transformer's encoder that scores tokens, fitted to explain the transformer."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from pertinent.asks import Network
from pertinent.digests import digest
from pertinent.errors import FileError, ModelError, SettingError
from pertinent.files import check_is_file, write_json
from pertinent.inputs.base import Input
from pertinent.inputs.text import TextInput
from pertinent.models.base import Answer, Model
from pertinent.models.torch import devices
from pertinent.models.torch.evaluating import evaluating, n_weights
from pertinent.models.torch.tokens import TokenBatch, collate
from pertinent.removal.base import Removal, TokenRows
from pertinent.types import Floats, Ints

if TYPE_CHECKING:
    from pertinent.models.transformer import TransformerModel

CARD = "pertinent.json"
_WEIGHTS = "model.safetensors"


class TokenScorer(torch.nn.Module):
    """An encoder and a linear layer that gives every token a score for each column.

    Scores are in units of `deviation` (columns,), so that training does not depend on how large the
    values are that it learns.
    """

    deviation: torch.Tensor

    def __init__(self, encoder: Any, n_columns: int) -> None:
        super().__init__()
        if getattr(encoder, "pooler", None) is not None:
            encoder.pooler = None  # it would be saved, but never used
        self.encoder = encoder
        self.head = torch.nn.Linear(encoder.config.hidden_size, n_columns)
        self.register_buffer("deviation", torch.ones(n_columns))

    @classmethod
    def of(cls, model: Any, deviation: Floats, seed: int) -> TokenScorer:
        """A copy of the model's encoder with a new linear layer."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            made = cls(copy.deepcopy(model.base_model).float(), len(deviation)).to(model.device)
        made.deviation.copy_(torch.from_numpy(deviation))
        return made.requires_grad_(True)

    def forward(self, **options: Any) -> torch.Tensor:
        """Scores (rows, tokens, columns)."""
        scores: torch.Tensor = self.head(self.encoder(**options).last_hidden_state)
        return scores


class TokenNetwork(Network):
    """A scorer of tokens; a feature's score is the sum over its tokens."""

    def __init__(self, scorer: TokenScorer, card: Mapping[str, Any]) -> None:
        self.scorer, self.card = scorer.eval(), card
        self._n_weights = n_weights(scorer)

    def __repr__(self) -> str:
        return f"{type(self.scorer.encoder).__name__} {self.fingerprint.hex()[:12]}"

    @cached_property
    def fingerprint(self) -> bytes:
        """A digest of the weights and the card."""
        weights = {name: tensor.numpy() for name, tensor in self._weights().items()}
        return digest(weights, json.dumps(self.card, sort_keys=True))

    def check(self, model: Model, removal: Removal) -> None:
        """The model must be the one it was fitted to, and features must be removed in the same way."""
        if model.fingerprint.hex() != self.card["model"]:
            raise ModelError(
                "The explainer was fitted to another model: fit one to this model, or explain the model it "
                "was fitted to, with the same weights, tokenizer and `max_length`."
            )
        fitted = self.card["removal"]
        if removal.fingerprint.hex() != fitted["fingerprint"]:
            raise SettingError(
                f"The explainer was fitted with the removal {fitted['name']!r} (settings "
                f"{fitted['settings']}): explain with the same, not with {removal.name!r}."
            )

    def cost(self, input: Input) -> int:
        """All tokens of the text."""
        return len(tokens_of(input).ids)

    def submit(self, model: Model, inputs: Sequence[Input]) -> Answer:
        """Score the features of many texts at once."""
        wrapped: TransformerModel = model  # type: ignore[assignment]
        self.scorer.to(wrapped.device)
        batch, owners = token_batch(inputs, wrapped.pad_id)
        width = max(input.n_features for input in inputs)

        def forward() -> torch.Tensor:
            scores = wrapped.forward(batch, self.scorer) * self.scorer.deviation
            return feature_scores(scores, devices.send(owners, wrapped.device), width)

        with (
            evaluating(self.scorer, self._n_weights * batch.ids.size),
            devices.disable_onednn(wrapped.device, torch.float32),
        ):
            return devices.run(wrapped.device, forward)

    def read(self, outputs: Any, inputs: Sequence[Input]) -> list[Floats]:
        """The scores of each text."""
        own = zip(outputs.astype(np.float64), inputs, strict=True)
        return [scores[:, : input.n_features] for scores, input in own]

    def save(self, folder: Path) -> None:
        """Write safetensors, the encoder's configuration and the card."""
        from safetensors.torch import save_file

        if folder.exists() and not folder.is_dir():
            raise FileError(f"{str(folder)!r} is a file; name a folder.")
        folder.mkdir(parents=True, exist_ok=True)
        save_file(self._weights(), folder / _WEIGHTS)
        self.scorer.encoder.config.save_pretrained(folder)
        write_json(folder / CARD, self.card)

    def _weights(self) -> dict[str, torch.Tensor]:
        return {name: tensor.contiguous().cpu() for name, tensor in self.scorer.state_dict().items()}


def load_token_network(folder: Path, card: Mapping[str, Any]) -> TokenNetwork:
    """The network in a folder, on the CPU until it is used."""
    from safetensors.torch import load_file
    from transformers import AutoConfig

    check_is_file(folder / _WEIGHTS)
    try:
        config = AutoConfig.from_pretrained(folder, local_files_only=True)
        weights = load_file(folder / _WEIGHTS)
        with torch.random.fork_rng(devices=[]):
            scorer = TokenScorer(_encoder(config), len(weights["deviation"]))
        scorer.load_state_dict(weights)
    except Exception as error:
        raise FileError(f"The explainer in {str(folder)!r} cannot be loaded: {error}") from error
    return TokenNetwork(scorer, card)


def _encoder(config: Any) -> Any:
    from transformers import AutoModel

    return AutoModel.from_config(config).float()  # type: ignore[no-untyped-call]


def token_batch(inputs: Sequence[Input], pad_id: int) -> tuple[TokenBatch, Ints]:
    """Whole texts as one batch, and the feature that each token belongs to, −1 if to none."""
    tokens = [tokens_of(input) for input in inputs]
    rows = [TokenRows(own, np.ones((1, len(own.ids)), dtype=np.bool_)) for own in tokens]
    batch = collate(rows, [False] * len(rows), pad_id)
    owners = np.full(batch.ids.shape, -1)
    for row, own in zip(owners, tokens, strict=True):
        row[: len(own.feature)] = own.feature
    return batch, owners


def feature_scores(scores: torch.Tensor, owners: torch.Tensor, width: int) -> torch.Tensor:
    """Scores of tokens (rows, tokens, columns) summed by feature (rows, columns, width).

    Special tokens and padding belong to no feature, so they count for nothing.
    """
    n_rows, _, n_columns = scores.shape
    sums = scores.new_zeros(n_rows, width + 1, n_columns)
    places = (owners + 1)[..., None].expand(-1, -1, n_columns)
    return sums.scatter_add(1, places, scores)[:, 1:].transpose(1, 2)


def tokens_of(input: Input) -> Any:
    """The tokens of a text."""
    assert isinstance(input, TextInput) and input.tokens is not None
    return input.tokens
