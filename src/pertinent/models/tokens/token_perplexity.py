"""How surprised a language model is by the tokens of its prompts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from pertinent.array_types import Masks
from pertinent.asks import BatchPart, TokenPerplexity
from pertinent.errors import ModelError
from pertinent.models.base import Answer
from pertinent.models.tokens.batches import collate
from pertinent.models.torch import devices
from pertinent.removals.base import TokenRows

if TYPE_CHECKING:
    from pertinent.models.heads.language_model import LanguageModelHead
    from pertinent.models.transformer import TransformerModel

AT_ONCE = 4096
"""Number of tokens whose logits, one for each word of the vocabulary, are in memory at once."""


def prompt_surprises(model: TransformerModel, parts: Sequence[BatchPart]) -> Answer:
    """The mean −log p of the kept tokens of each row."""
    head: Any = model.head
    if not head.is_causal:
        raise ModelError(TokenPerplexity.refusal)
    rows = [_rows(head, part) for part in parts]
    compact = [own.renumber or model.compaction.holds(own.attend.shape[1]) for own in rows]
    batch = collate(rows, compact, model.pad_id)
    marked = [
        replace(own, ids=(_counted(part) & own.attend).astype(np.int64), zeroed=None)
        for part, own in zip(parts, rows, strict=True)
    ]
    counted = collate(marked, compact, 0).ids
    attend = np.ones(batch.ids.shape, dtype=np.bool_) if batch.attend is None else batch.attend
    order = np.argsort(~attend, axis=1, kind="stable")  # the slots that are attended to come first
    before, after = order[:, :-1], order[:, 1:]
    following = (np.take_along_axis(own, after, axis=1) for own in (batch.ids, counted))
    slots, ids, weights = devices.send(np.stack([before, *following]), model.device)
    step = max(1, AT_ONCE // batch.ids.shape[1])

    def surprises() -> torch.Tensor:
        split = (own.split(step) for own in (model.answer(batch), slots, ids, weights))
        return torch.cat([_means(head, *some) for some in zip(*split, strict=True)])

    with model.evaluating(batch.ids.shape):
        return devices.run(model.device, surprises)


def _means(
    head: LanguageModelHead,
    states: torch.Tensor,
    slots: torch.Tensor,
    ids: torch.Tensor,
    weights: torch.Tensor,
) -> torch.Tensor:
    """The weighted mean in each row of −log p of these ids, each predicted from the state in a slot."""
    each = torch.arange(len(states), device=states.device)[:, None]
    logits = head.logits(states[each, slots]).float()
    lost = logits.logsumexp(dim=-1) - logits.gather(2, ids[..., None])[..., 0]
    return (lost * weights).sum(dim=1) / weights.sum(dim=1).clamp(min=1)


def _rows(head: LanguageModelHead, part: BatchPart) -> TokenRows:
    """What is left of the prompt, with its answer."""
    rows = part.removal(part.input, part.question.masks[part.rows], part.seed)
    assert isinstance(rows, TokenRows)
    return head.fill_empty_rows(rows.windows()[0])


def _counted(part: BatchPart) -> Masks:
    """The tokens of kept features (rows, tokens)."""
    feature = part.input.tokens.windows[0][1].feature
    masks = np.repeat(part.question.masks[part.rows], part.removal.draws, axis=0)
    return np.asarray((feature >= 0) & masks[:, feature])
