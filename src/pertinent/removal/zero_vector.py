"""Removed tokens have their word embedding set to zero."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pertinent.array_types import Masks
from pertinent.inputs.base import Input
from pertinent.inputs.text import TextInput
from pertinent.removal.base import TokenRemoval, TokenRows, kept_tokens, removals


@removals.register("zero-vector")
@dataclass(frozen=True)
class ZeroVector(TokenRemoval):
    """Hase et al. 2021, Sec. 5: the word embedding of each removed token is the zero vector.

    Only the word embedding: position and type embeddings stay.
    """

    summary = "word embedding set to zero (Hase et al. 2021)"

    def __call__(self, input: Input, masks: Masks, seed: int) -> TokenRows:
        """Rows as long as the text."""
        del seed
        assert isinstance(input, TextInput) and input.tokens is not None
        kept = kept_tokens(input, masks)
        return TokenRows(input.tokens, np.ones_like(kept), zeroed=~kept)
