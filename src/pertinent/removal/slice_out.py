"""Removed features are cut out of the text and the rest is joined."""

from __future__ import annotations

from dataclasses import dataclass

from pertinent.array_types import Masks
from pertinent.inputs.base import Input
from pertinent.inputs.text import TextInput
from pertinent.removal.base import Removal, Rows, TokenRows, kept_tokens, rebuild, removals


@removals.register("slice-out")
@dataclass(frozen=True)
class SliceOut(Removal):
    """Hase et al. 2021, Sec. 5: the kept tokens as a shorter text, with new positions."""

    kinds = ("text",)
    summary = "cut out, and the rest is joined (Hase et al. 2021)"
    hides = "tokens and positions"

    def __call__(self, input: Input, masks: Masks, seed: int) -> Rows:
        """Shorter rows of tokens, or shorter strings where the model reads strings."""
        del seed
        assert isinstance(input, TextInput)
        if input.tokens is None:
            return rebuild(input, masks, "")
        return TokenRows(input.tokens, kept_tokens(input, masks), renumber=True)
