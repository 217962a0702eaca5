"""The last hidden states of texts that a transformer has answered, for a network that reads them."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock

import torch

from pertinent.inputs.tokens import Tokens
from pertinent.removals.base import TokenRows

MOST = 2**28
"""Largest number of bytes that are kept."""


class HiddenStates:
    """Keeps the last hidden states of whole texts until they are taken, at most so many bytes."""

    def __init__(self, most: int = MOST) -> None:
        self._kept: dict[Tokens, torch.Tensor] = {}
        self._left, self._lock = most, Lock()

    def keep(self, parts: Sequence[TokenRows], hidden: torch.Tensor) -> None:
        """Keep those of the rows that are whole texts, of hidden states (rows, length, width)."""
        first = 0
        for part in parts:
            row = part.whole_row()
            if row is not None:
                own = hidden[first + row, : len(part.tokens.ids)]
                with self._lock:
                    size = own.numel() * own.element_size()
                    if size <= self._left and part.tokens not in self._kept:
                        self._kept[part.tokens] = own.clone()  # a view would keep the whole batch
                        self._left -= size
            first += len(part.attend)

    def take(self, texts: Sequence[Tokens]) -> torch.Tensor | None:
        """The hidden states (texts, length, width), zero behind each text; ``None`` unless all are kept."""
        with self._lock:
            if not all(tokens in self._kept for tokens in texts):
                return None
            found = [self._kept.pop(tokens) for tokens in dict.fromkeys(texts)]
            self._left += sum(own.numel() * own.element_size() for own in found)
        of = dict(zip(dict.fromkeys(texts), found, strict=True))
        return torch.nn.utils.rnn.pad_sequence([of[tokens] for tokens in texts], batch_first=True)
