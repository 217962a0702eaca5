"""Gradients of a transformer: through its attention mask, and at its word embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from pertinent.asks import Part
from pertinent.errors import ModelError, SettingError
from pertinent.inputs.text import TextInput
from pertinent.masks import empty_mask
from pertinent.models.base import Answer
from pertinent.models.torch import devices, weighted_attention
from pertinent.models.torch.gradients import (
    baseline_of,
    differentiate,
    draws_of,
    length_of,
    row_weights,
    shares_of,
    sum_by_feature,
)
from pertinent.models.torch.tokens import TokenBatch, collate
from pertinent.removal.base import TokenRows, kept_tokens
from pertinent.types import Array, Ints

if TYPE_CHECKING:
    from pertinent.models.transformer import TransformerModel


@dataclass(frozen=True)
class Padded:
    """Rows of several texts, and the feature that each token belongs to (−1: none)."""

    batch: TokenBatch
    owner: torch.Tensor
    n_features: int


def token_mask_gradients(model: TransformerModel, parts: Sequence[Part]) -> Answer:
    """∂ log p / ∂ mask, with attention = softmax × mask, renormalised, in every layer (Hase et al. 2021)."""
    for part in parts:
        if part.removal.hides != "tokens":
            raise SettingError(
                "Gradients along a mask go through attention: this method needs the removal "
                f"'attention-mask', but got {part.removal.name!r}."
            )
    texts = padded(model, parts)
    if not model.weighs_attention(texts.batch.ids.shape[1]):
        raise ModelError(
            "Gradients along a mask need a model that adds a given bias to its attention scores, in "
            "float32 or bfloat16, which this one does not, at least for texts of this length; choose "
            "parallel-local-search or kernel-shap."
        )
    kept = _lay([kept_tokens(_text(s), _masks(s)) for s in parts], texts, fill=False)
    hidden = None if texts.batch.attend is None else devices.send(~texts.batch.attend, model.device)

    def scores(weights: torch.Tensor) -> torch.Tensor:
        bias = weighted_attention.attention_bias(weights, hidden, model.dtype)
        # Fused attention supports the backward pass only if the queries require a gradient, too.
        words = model.embed(texts.batch).detach().requires_grad_()
        with weighted_attention.in_use(model.model):
            return model.forward(texts.batch, inputs_embeds=words, attention_mask=bias).logits  # type: ignore[no-any-return]

    return differentiate(
        model,
        parts,
        devices.send(kept.astype(np.float32), model.device),
        scores,
        lambda gradient: sum_by_feature(gradient, texts.owner, texts.n_features),
    )


def token_path_gradients(model: TransformerModel, parts: Sequence[Part]) -> Answer:
    """∂ log p / ∂ word embeddings at points between the baseline and the text."""
    texts = padded(model, parts)
    baseline = collate([_baseline(model, s) for s in parts], [False] * len(parts), model.pad_id)
    shares = np.concatenate([shares_of(s) for s in parts]).astype(np.float32)
    with torch.no_grad():
        text, plain = model.embed(texts.batch), model.embed(baseline)
    share = devices.send(shares, model.device).to(text.dtype)[:, None, None]
    weights = devices.send(row_weights(parts).astype(np.float32), model.device).to(text.dtype)
    of_text, of_baseline, of_one, of_itself = weights.T[..., None, None]

    def total(gradient: torch.Tensor) -> torch.Tensor:
        factor = of_text * text + of_baseline * plain + of_one + of_itself * gradient
        parts = (gradient * factor).float().sum(dim=-1)
        return length_of(sum_by_feature(parts, texts.owner, texts.n_features), of_itself[..., 0])

    return differentiate(
        model,
        parts,
        plain + share * (text - plain),
        lambda point: model.forward(texts.batch, inputs_embeds=point).logits,
        total,
    )


def padded(model: TransformerModel, parts: Sequence[Part]) -> Padded:
    """The texts of all parts as one batch."""
    rows = []
    for part in parts:
        tokens = _text(part).tokens
        assert tokens is not None
        rows.append(TokenRows(tokens, np.ones((len(part.rows), len(tokens.ids)), dtype=np.bool_)))
    batch = collate(rows, [False] * len(rows), model.pad_id)
    n_features = max(part.input.n_features for part in parts)
    owner = np.full(batch.ids.shape, -1, dtype=np.int64)
    _fill(owner, [np.tile(own.tokens.feature, (len(own.attend), 1)) for own in rows])
    return Padded(batch, devices.send(owner, model.device), n_features)


def _lay(parts: Sequence[Array], texts: Padded, *, fill: bool) -> Array:
    laid = np.full(texts.batch.ids.shape, fill)
    _fill(laid, parts)
    return laid


def _fill(laid: Array, parts: Sequence[Array]) -> None:
    first = 0
    for part in parts:
        laid[first : first + len(part), : part.shape[1]] = part
        first += len(part)


def _baseline(model: TransformerModel, part: Part) -> TokenRows:
    """The baseline of each row, as tokens."""
    input = _text(part)
    ask = part.question
    assert input.tokens is not None
    if isinstance(ask.baseline, np.ndarray):
        raise SettingError("The baseline of a text must be the name of a removal, such as 'mask-token'.")
    removal = baseline_of(ask, input, model)
    known: dict[int, TokenRows] = {}
    ids: list[Ints] = []
    zeroed: list[Array] = []
    for seed, place in draws_of(part, removal):
        if seed not in known:
            known[seed] = _made(removal(input, empty_mask(input.n_features), seed), removal.name)
        rows = known[seed]
        ids.append(input.tokens.ids if rows.ids is None else rows.ids[place])
        zeroed.append(np.zeros(len(ids[-1]), dtype=np.bool_) if rows.zeroed is None else rows.zeroed[place])
    everything = np.ones((len(ids), len(input.tokens.ids)), dtype=np.bool_)
    return TokenRows(input.tokens, everything, np.array(ids), np.array(zeroed))


def _made(rows: object, name: str) -> TokenRows:
    if not isinstance(rows, TokenRows) or rows.renumber or not rows.attend.all():
        raise SettingError(
            f"The removal {name!r} leaves tokens out, so it makes no baseline; "
            "choose 'mask-token', 'zero-vector' or 'random-token'."
        )
    return rows


def _text(part: Part) -> TextInput:
    assert isinstance(part.input, TextInput)
    return part.input


def _masks(part: Part) -> Array:
    return np.asarray(part.question.masks[part.rows])
