"""Gradients of a transformer: through its attention mask, and at its word embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from pertinent.array_types import Array, Ints, Masks
from pertinent.asks import BatchPart
from pertinent.errors import ModelError, SettingError
from pertinent.masks import empty_mask
from pertinent.models.base import Answer
from pertinent.models.gradients import base
from pertinent.models.tokens import attention_bias
from pertinent.models.tokens.batches import TokenBatch, collate, whole_rows
from pertinent.models.torch import devices
from pertinent.removals.base import Removal, TokenRows, kept_tokens

if TYPE_CHECKING:
    from pertinent.models.transformer import TransformerModel


@dataclass(frozen=True)
class Padded:
    """Rows of several texts as one batch, with one batch row per window of a text.

    Attributes
    ----------
    batch
        The tokens.
    owner
        Feature of each token, −1 for none (batch rows, tokens).
    n_features
        Largest number of features.
    row
        For each batch row, the index of the row it belongs to, in the order of the parts.
    """

    batch: TokenBatch
    owner: Tensor
    n_features: int
    row: Ints

    def sum_by_feature(self, values: Tensor) -> Tensor:
        """Sum token values (batch rows, tokens) by row and feature (rows, features)."""
        sums = base.sum_by_feature(values, self.owner, self.n_features)
        if len(self.row) == self.row[-1] + 1:
            return sums
        row = devices.send(self.row, sums.device)
        return sums.new_zeros(int(self.row[-1]) + 1, self.n_features).index_add_(0, row, sums)


def token_mask_gradients(model: TransformerModel, parts: Sequence[BatchPart]) -> Answer:
    """Compute ∂ log p / ∂ mask.

    If the removal hides tokens, attention is softmax × mask, renormalised, in every layer (Hase et al. 2021);
    if it fills them in, word embeddings are mask · x + (1 − mask) · filler.
    """
    texts = pad_texts(model, parts)
    hides = [part.removal.hides == "tokens" for part in parts]
    hiding = np.repeat(hides, [len(part.rows) for part in parts])[texts.row][:, None]
    if any(hides) and not model.weighs_attention(texts.batch.ids.shape[1]):
        raise ModelError(
            "Mask gradients need a model that adds a bias to its attention scores, in float32 or bfloat16, "
            "which this model does not support, at least for texts of this length; choose "
            "parallel-local-search or kernel-shap."
        )
    kept = np.zeros(texts.batch.ids.shape, dtype=np.float32)
    _lay_out(kept, parts, [kept_tokens(part.input, part.question.masks[part.rows]) for part in parts])
    hidden = None if texts.batch.attend is None else devices.send(~texts.batch.attend, model.device)
    by_attention = devices.send(hiding, model.device)
    follow = model.head.followed_scores(lambda: [_visible_rows(part) for part in parts], model)
    fillers = (make_filler(part.input, part.removal, len(part.rows), part.seed) for part in parts)
    filler = None if all(hides) else _collate(list(fillers), model.pad_id)

    def scores(weights: Tensor) -> Tensor:
        words = model.embed(texts.batch).detach()
        if filler is not None:
            share = torch.where(by_attention, 1.0, weights).to(words.dtype)[..., None]
            words = torch.lerp(model.embed(filler).detach(), words, share)
        if not any(hides):
            return follow(model.answer(texts.batch, inputs_embeds=words), None)
        attended = torch.where(by_attention, weights, 1.0)
        bias = attention_bias.attention_bias(attended, hidden, model.dtype)
        if not words.requires_grad:
            # Fused attention supports the backward pass only if the queries require a gradient too.
            words.requires_grad_()
        with attention_bias.in_use(model.model):
            return follow(model.answer(texts.batch, inputs_embeds=words, attention_mask=bias), bias)

    return base.differentiate(model, parts, devices.send(kept, model.device), scores, texts.sum_by_feature)


def token_path_gradients(model: TransformerModel, parts: Sequence[BatchPart]) -> Answer:
    """Compute ∂ log p / ∂ word embeddings at points between the baseline and the text."""
    texts = pad_texts(model, parts)
    baseline = _collate([_baseline(model, part) for part in parts], model.pad_id)
    with torch.no_grad():
        text, plain = model.embed(texts.batch), model.embed(baseline)
    shares = np.concatenate([part.question.shares[part.rows] for part in parts])
    share = devices.send_floats(shares[texts.row], model.device).to(text.dtype)[:, None, None]
    factors = devices.send_floats(base.row_factors(parts), model.device)
    row_factors = factors[devices.send(texts.row, model.device)].to(text.dtype).T[..., None, None]
    unit, noise = _noise(parts, text)
    follow = model.head.followed_scores(
        lambda: [whole_rows(part.input.tokens, len(part.rows)) for part in parts], model
    )

    def total(gradient: Tensor) -> Tensor:
        values = base.multiply(gradient, row_factors, text, plain, unit).float().sum(dim=-1)
        sums = texts.sum_by_feature(base.root_where(values, row_factors[4, ..., 0] > 0))
        return base.root_where(sums, factors[:, 3:4] > 0)

    return base.differentiate(
        model,
        parts,
        plain + share * (text - plain) + noise,
        lambda point: follow(model.answer(texts.batch, inputs_embeds=point), None),
        total,
    )


def _noise(parts: Sequence[BatchPart], text: Tensor) -> tuple[Tensor, Tensor]:
    """Return the standard deviation of the noise on each row (1 without noise), and the noise."""
    if not any(part.question.noise for part in parts):
        return text.new_ones(1), text.new_zeros(1)
    units, first = [], 0
    draws = np.zeros(text.shape, dtype=np.float32)
    _lay_out(draws, parts, [base.draw_noise(p, (len(p.input.tokens.ids), text.shape[-1])) for p in parts])
    for part in parts:
        n, windows = len(part.rows), part.input.tokens.windows
        words = [text[first + i * n, : len(window.ids)] for i, (_, window) in enumerate(windows)]
        spread = torch.cat(words).float().std(correction=0)
        noise = part.question.noise
        units.append((noise * spread if noise else torch.ones_like(spread)).expand(n * len(windows)))
        first += n * len(windows)
    unit = torch.cat(units)[:, None, None].to(text.dtype)
    return unit, unit * devices.send(draws, text.device).to(text.dtype)


def pad_texts(model: TransformerModel, parts: Sequence[BatchPart]) -> Padded:
    """Return the texts of all parts as one batch."""
    batch = _collate([whole_rows(part.input.tokens, len(part.rows)) for part in parts], model.pad_id)
    n_features = max(part.input.n_features for part in parts)
    owner = np.full(batch.ids.shape, -1, dtype=np.int64)
    _lay_out(owner, parts, [np.tile(part.input.tokens.feature, (len(part.rows), 1)) for part in parts])
    ends = np.cumsum([len(part.rows) for part in parts]).tolist()
    rows = [
        np.tile(np.arange(end - len(part.rows), end), len(part.input.tokens.windows))
        for end, part in zip(ends, parts, strict=True)
    ]
    return Padded(batch, devices.send(owner, model.device), n_features, np.concatenate(rows))


def _collate(parts: Sequence[TokenRows], pad_id: int) -> TokenBatch:
    """Return the rows of all windows of all parts as one batch, including removed tokens."""
    windows = [window for part in parts for window in part.windows()]
    return collate(windows, [False] * len(windows), pad_id)


def _lay_out(target: Array, parts: Sequence[BatchPart], arrays: Sequence[Array]) -> None:
    """Copy each part's array (rows, tokens, …) into the layout of the batch, by window and row."""
    first = 0
    for part, array in zip(parts, arrays, strict=True):
        for window, tokens in part.input.tokens.windows:
            target[first : first + len(array), : len(tokens.ids)] = array[:, window]
            first += len(array)


def make_filler(input: Any, removal: Removal, n: int = 1, seed: int = 0) -> TokenRows:
    """Return n rows of the tokens that the removal fills in, or of the text's tokens if it hides them.

    Raise a `SettingError` for removals without gradients along a mask.
    """
    if removal.hides == "tokens":
        return whole_rows(input.tokens, n)
    rows = removal(input, np.repeat(empty_mask(input.n_features), n, axis=0), seed)
    if removal.is_random or removal.draws > 1 or not isinstance(rows, TokenRows) or rows.renumber:
        raise SettingError(
            "Mask gradients go through attention or word embeddings: the removal must be 'attention-mask', "
            f"'mask-token', 'pad-token' or 'zero-vector', but got {removal.name!r}."
        )
    return rows


def _baseline(model: TransformerModel, part: BatchPart) -> TokenRows:
    """Return each row's baseline, as tokens."""
    if isinstance(part.question.baseline, np.ndarray):
        raise SettingError("The baseline of a text must be the name of a removal, such as 'mask-token'.")
    removal, tokens = base.make_baseline(part, model), part.input.tokens
    ids: list[Ints] = []
    zeroed: list[Masks] = []
    for rows, index in base.iterate_baselines(part, removal):
        if not isinstance(rows, TokenRows) or rows.renumber or not rows.attend.all():
            raise SettingError(
                f"The removal {removal.name!r} drops tokens, so it cannot create a baseline; choose "
                "'mask-token', 'zero-vector' or 'random-token'."
            )
        ids.append(tokens.ids if rows.ids is None else rows.ids[index])
        zeroed.append(np.zeros(len(tokens.ids), np.bool_) if rows.zeroed is None else rows.zeroed[index])
    return replace(whole_rows(tokens, len(ids)), ids=np.array(ids), zeroed=np.array(zeroed))


def _visible_rows(part: BatchPart) -> TokenRows:
    """Return the rows as seen by the network, with removed tokens hidden or zeroed."""
    kept = kept_tokens(part.input, part.question.masks[part.rows] > 0)
    attended = kept if part.removal.hides == "tokens" else np.ones_like(kept)
    return TokenRows(part.input.tokens, attended, zeroed=~kept)
