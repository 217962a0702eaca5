"""Compaction: computing only the kept tokens of a text, and a test of whether this is exact for a model.

With attention-mask removal no token attends to a removed one, so a model with position ids gives the same
answer for only the kept tokens at their original positions. Local-attention windows, relative positions and
models that ignore position ids break this, some only for texts longer than a window. Compaction is therefore
tested on texts of the length it is used for.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch

from pertinent.array_types import Ints, Masks
from pertinent.inputs.tokens import Tokens
from pertinent.models.tokens.batches import TokenBatch, collate
from pertinent.models.torch.rounding import relative_difference
from pertinent.removals.base import TokenRows

logger = logging.getLogger(__name__)

States = list[torch.Tensor]
"""Hidden states (rows, length, width) of every layer, followed by each row's answer (rows, …)."""


@dataclass
class Compaction:
    """Tests compaction, and stores the lengths for which it is exact.

    Attributes
    ----------
    states
        Function that runs the model.
    text_of
        Function that creates a text with a given number of tokens.
    longest
        Largest number of tokens.
    pad_id
        Id of the padding token.
    rounding
        Largest relative difference that counts as rounding.
    allowed
        Whether compaction may be used.
    reason
        Reason why compaction is not exact, if it is not.
    """

    states: Callable[[TokenBatch], States]
    text_of: Callable[[int], Tokens]
    longest: int
    pad_id: int
    rounding: float
    allowed: bool = True
    reason: str = ""
    _holds_to: int = field(default=0, init=False)
    _fails_from: float = field(default=float("inf"), init=False)

    def holds(self, length: int) -> bool:
        """Return whether texts of `length` tokens may be computed without their removed tokens."""
        if not self.allowed or length >= self._fails_from:
            return False
        if length > self._holds_to:
            rounded = min(max(length, 1 << (length - 1).bit_length()), self.longest)
            if not self._try(rounded) and length < rounded:
                self._try(length)
        return length <= self._holds_to

    def _try(self, length: int) -> bool:
        text = self.text_of(length)
        try:
            difference = self._difference(text, _trial_masks(text))
        except (RuntimeError, IndexError, TypeError, ValueError) as error:
            self.reason = f"the model cannot be run with only the kept tokens: {error}"
        else:
            if difference <= self.rounding:
                self._holds_to = max(self._holds_to, length)
                return True
            self.reason = (
                f"at {length} tokens its hidden states differ from the padded form by {difference:.1e}"
            )
        self._fails_from = min(self._fails_from, length)
        logger.warning(
            "Removed tokens are also computed for texts of %d tokens or more, because %s.",
            length,
            self.reason,
        )
        return False

    def _difference(self, text: Tokens, keep: Masks) -> float:
        """Return the largest relative difference over layers, rows of kept tokens, and answers."""
        rows = TokenRows(text, keep)
        *padded, answer = self.states(collate([rows], [False], self.pad_id))
        *compact, short_answer = self.states(collate([rows], [True], self.pad_id))
        kept = torch.from_numpy(keep).to(answer.device)
        differences = [relative_difference(short_answer, answer)]
        for full, short in zip(padded, compact, strict=True):
            differences += [
                relative_difference(short[r, : int(kept[r].sum())], full[r][kept[r]])
                for r in range(len(keep))
            ]
        return max(differences)


def _trial_masks(text: Tokens) -> Masks:
    """Return masks that keep half, a tenth, and only the two ends of the text, plus the fixed tokens."""
    rng = np.random.default_rng(0)
    length = len(text.ids)
    removable = np.flatnonzero(text.feature >= 0)
    keep = np.broadcast_to(text.feature < 0, (3, length)).copy()
    keep[0] |= rng.random(length) < 0.5
    keep[1] |= rng.random(length) < 0.1
    keep[:, removable[[0, -1]]] = True
    return keep


def stretch(ids: Ints, special: Masks, vocabulary: Ints, length: int) -> Tokens:
    """Create a text of `length` tokens: special tokens at its ends, random tokens between them."""
    first = int(np.argmin(special))
    head, tail = ids[:first], ids[first:][special[first:]]
    middle = max(2, length - len(head) - len(tail))
    words = np.random.default_rng(length).choice(vocabulary, middle)
    feature = np.concatenate([np.full(len(head), -1), np.arange(middle), np.full(len(tail), -1)])
    body = np.concatenate([head, words, tail])
    return Tokens(body, np.zeros_like(body), feature, None, None)
