"""A cache of the last hidden states of texts, for networks that read them."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock

import torch

from pertinent.inputs.tokens import Tokens
from pertinent.removals.base import TokenRows

CAPACITY = 2**28
"""Default capacity in bytes."""


class HiddenStates:
    """A cache of the last hidden states of whole texts, up to `capacity` bytes."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._states: dict[Tokens, torch.Tensor] = {}
        self._free, self._lock = capacity, Lock()

    def keep(self, parts: Sequence[TokenRows], hidden: torch.Tensor) -> None:
        """Store the states of rows that are whole texts, from hidden states (rows, length, width)."""
        first = 0
        for part in parts:
            row = part.whole_row()
            if row is not None:
                states = hidden[first + row, : len(part.tokens.ids)]
                with self._lock:
                    if states.nbytes <= self._free and part.tokens not in self._states:
                        self._states[part.tokens] = states.clone()  # a view would keep the whole batch alive
                        self._free -= states.nbytes
            first += len(part.attend)

    def take(self, texts: Sequence[Tokens]) -> torch.Tensor | None:
        """Remove and return the padded states (texts, length, width); ``None`` unless all are cached."""
        with self._lock:
            if not all(tokens in self._states for tokens in texts):
                return None
            states = {tokens: self._states.pop(tokens) for tokens in dict.fromkeys(texts)}
            self._free += sum(taken.nbytes for taken in states.values())
        return torch.nn.utils.rnn.pad_sequence([states[tokens] for tokens in texts], batch_first=True)
