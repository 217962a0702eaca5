"""Removed tokens are hidden from attention in every layer; the others keep their positions."""

from __future__ import annotations

from dataclasses import dataclass

from pertinent.array_types import Masks
from pertinent.inputs.base import Input
from pertinent.inputs.text import TextInput
from pertinent.removal.base import TokenRemoval, TokenRows, kept_tokens, removals


@removals.register("attention-mask")
@dataclass(frozen=True)
class AttentionMask(TokenRemoval):
    """Hase et al. 2021, Sec. 5: the attention distribution times the mask, renormalised.

    This equals running the model on the kept tokens alone at their original positions, which is how
    it is computed wherever the architecture allows.
    """

    summary = "hidden from attention, positions kept (Hase et al. 2021)"
    hides = "tokens"

    def __call__(self, input: Input, masks: Masks, seed: int) -> TokenRows:
        """Rows with the same ids, attending only to the kept tokens."""
        del seed
        assert isinstance(input, TextInput) and input.tokens is not None
        return TokenRows(input.tokens, kept_tokens(input, masks))
