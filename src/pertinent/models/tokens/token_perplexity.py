"""A language model's surprise at the tokens of its prompts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from pertinent.array_types import Ints
from pertinent.asks import BatchPart, TokenPerplexity
from pertinent.errors import ModelError
from pertinent.models.base import Answer
from pertinent.models.tokens.batches import collate, lay_out_like_ids, order_first
from pertinent.models.torch import devices
from pertinent.models.torch.rounding import log_softmax_at
from pertinent.removals.base import TokenRows

if TYPE_CHECKING:
    from pertinent.models.heads.language_model import LanguageModelHead
    from pertinent.models.transformer import TransformerModel

TOKENS_PER_PASS = 4096
"""Number of tokens whose logits, one per vocabulary entry, are in memory together."""


def prompt_surprises(model: TransformerModel, parts: Sequence[BatchPart]) -> Answer:
    """Return the mean −log p over the kept tokens of each row."""
    head: Any = model.head
    if not head.is_causal:
        raise ModelError(TokenPerplexity.refusal)
    rows = [_rows(head, part) for part in parts]
    compact = [part.renumber or model.compaction.holds(part.attend.shape[1]) for part in rows]
    batch = collate(rows, compact, model.pad_id)
    kept = [_kept_features(part, part_rows) for part, part_rows in zip(parts, rows, strict=True)]
    counted = lay_out_like_ids(rows, compact, kept, 0)
    order = order_first(np.ones(batch.ids.shape, dtype=np.bool_) if batch.attend is None else batch.attend)
    before, after = order[:, :-1], order[:, 1:]
    following = (np.take_along_axis(array, after, axis=1) for array in (batch.ids, counted))
    slots, ids, weights = devices.send(np.stack([before, *following]), model.device)
    step = max(1, TOKENS_PER_PASS // batch.ids.shape[1])

    def surprises() -> torch.Tensor:
        chunks = (tensor.split(step) for tensor in (model.answer(batch), slots, ids, weights))
        return torch.cat([_mean_surprises(head, *chunk) for chunk in zip(*chunks, strict=True)])

    with model.evaluating(batch.ids.shape):
        return devices.run(model.device, surprises)


def _mean_surprises(
    head: LanguageModelHead,
    states: torch.Tensor,
    slots: torch.Tensor,
    ids: torch.Tensor,
    weights: torch.Tensor,
) -> torch.Tensor:
    """Return the weighted mean in each row of −log p of these ids, predicted from the states in `slots`."""
    rows = torch.arange(len(states), device=states.device)[:, None]
    logs = log_softmax_at(head.logits(states[rows, slots]).float(), ids[..., None], dim=2)[..., 0]
    return -(logs * weights).sum(dim=1) / weights.sum(dim=1).clamp(min=1)


def _rows(head: LanguageModelHead, part: BatchPart) -> TokenRows:
    """Return the remaining prompts with their answers."""
    rows = part.removal(part.input, part.question.masks[part.rows], part.seed)
    assert isinstance(rows, TokenRows)
    return head.fill_empty_rows(rows.windows()[0])


def _kept_features(part: BatchPart, rows: TokenRows) -> Ints:
    """Return 1 for each token of a kept feature, else 0 (rows, tokens)."""
    feature = part.input.tokens.windows[0][1].feature
    masks = np.repeat(part.question.masks[part.rows], part.removal.draws, axis=0)
    kept = (feature >= 0) & masks[:, feature] & rows.attend
    return np.asarray(kept.astype(np.int64))
