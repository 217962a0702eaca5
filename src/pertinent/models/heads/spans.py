"""The span that an extractive reader answers with, and how much two spans share; rows at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from pertinent.array_types import Ints, Masks
from pertinent.models.torch import devices
from pertinent.models.torch.tokens import collate
from pertinent.removal.base import TokenRows

CONTEXT = 1
"""The segment that answers are found in: a question comes first."""


@dataclass(frozen=True, eq=False)
class Candidates:
    """The tokens of the context that each row still has, in order: arrays (rows, most candidates).

    Attributes
    ----------
    slots
        Where in the batch each of them is.
    places
        Where in the whole input it is; −1 where a row has fewer.
    unchanged
        Whether it is still the input's own token, neither replaced nor set to zero.
    """

    slots: Tensor
    places: Tensor
    unchanged: Tensor

    @classmethod
    def of(cls, parts: Sequence[TokenRows], compact: Sequence[bool], device: torch.device) -> Candidates:
        """The candidates in the batch that `collate` makes of these parts."""
        # Laid out like the batch itself, with the place of each candidate instead of its id.
        marked = [
            TokenRows(part.tokens, part.attend, _places(part), _changed(part), part.renumber)
            for part in parts
        ]
        laid = collate(marked, compact, -1)
        assert laid.zeroed is not None
        width = max(1, int((laid.ids >= 0).sum(axis=1).max()))
        slots = np.argsort(laid.ids < 0, axis=1, kind="stable")[:, :width]
        places, changed = (np.take_along_axis(own, slots, axis=1) for own in (laid.ids, laid.zeroed))
        return cls(*devices.send(np.stack([slots, places, 1 - changed]), device))


def best_spans(logits: Tensor, candidates: Candidates, longest: int, *, no_answer: bool) -> Tensor:
    """The first and last candidate of each row's answer (rows, 2), from logits (rows, length, 2).

    It is the span of at most `longest` tokens with the largest sum of its start's and its end's logits.
    It is empty, its last before its first, where no candidate is left; and, with `no_answer`, where the
    sum for the first token of all, which stands for no answer, is larger. NaN where a logit is.
    """
    start, end = _of_candidates(logits, candidates).unbind(dim=2)
    window = min(longest, start.shape[1])
    ends = torch.nn.functional.pad(end, (0, window - 1), value=-torch.inf).unfold(1, window, 1)
    best_ends, steps = ends.max(dim=2)
    scores, first = (start + best_ends).max(dim=1)
    last = first + steps.gather(1, first[:, None])[:, 0]
    empty = scores == -torch.inf
    if no_answer:
        empty |= logits[:, 0].float().sum(dim=1) > scores
    spans = torch.stack([first, torch.where(empty, first - 1, last)], dim=1).float()
    return spans.masked_fill(scores.isnan()[:, None], torch.nan)


def whole_spans(spans: Tensor, candidates: Candidates) -> Tensor:
    """Convert spans of candidates to spans of places, in rows that are whole inputs.

    There the places of candidates are consecutive.
    """
    return spans + candidates.places[:, :1]


def overlaps(spans: Tensor, candidates: Candidates, references: Tensor) -> Tensor:
    """The Jaccard index of each row's span and a span of places in its whole input (rows,).

    |A ∩ B| / |A ∪ B|, as sets of tokens: a token that was replaced is not the input's own. Two empty
    spans are the same.
    """
    number = torch.arange(candidates.places.shape[1], device=spans.device)
    shared = _within(number, spans) & _within(candidates.places, references) & candidates.unchanged.bool()
    n_shared = shared.sum(dim=1)
    n_together = (spans[:, 1] - spans[:, 0] + 1) + (references[:, 1] - references[:, 0] + 1) - n_shared
    return torch.where(n_together == 0, 1.0, n_shared / n_together)


def log_probabilities(logits: Tensor, context: Candidates, references: Tensor, *, no_answer: bool) -> Tensor:
    """The log-probabilities of spans of places in whole inputs, log p(start) + log p(end) (rows,).

    Both are softmax over the context, and with `no_answer` the first token of all.
    """
    chances = _of_candidates(logits, context)
    if no_answer:
        chances = torch.cat([chances, logits[:, :1].float()], dim=1)
    at = (references - context.places[:, :1]).nan_to_num(0).long()
    at = torch.where((at[:, 1] < at[:, 0])[:, None], chances.shape[1] - 1, at)
    return chances.log_softmax(dim=1).gather(1, at[:, None]).sum(dim=(1, 2))


def whole_row(part: TokenRows) -> int | None:
    """The number of the first row that is the whole input, if there is one."""
    rows = np.flatnonzero(part.attend.all(axis=1) & ~_changed(part).any(axis=1))
    return int(rows[0]) if len(rows) else None


def _of_candidates(logits: Tensor, candidates: Candidates) -> Tensor:
    """The logits (rows, candidates, 2), −∞ where there is none."""
    found = logits.float().gather(1, candidates.slots[..., None].expand(-1, -1, 2))
    return found.masked_fill(candidates.places[..., None] < 0, -torch.inf)


def _within(numbers: Tensor, spans: Tensor) -> Tensor:
    return (numbers >= spans[:, :1]) & (numbers <= spans[:, 1:])


def _places(part: TokenRows) -> Ints:
    """The place of each token that is a candidate, −1 for the others."""
    place = part.tokens.place
    assert place is not None
    return np.where(part.attend & (place[:, 0] == CONTEXT), np.arange(len(place)), -1)


def _changed(part: TokenRows) -> Masks:
    changed = np.zeros_like(part.attend) if part.ids is None else part.ids != part.tokens.ids
    return changed if part.zeroed is None else changed | part.zeroed
