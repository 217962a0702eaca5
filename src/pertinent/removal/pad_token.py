"""Removed tokens become the padding token and are still attended to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pertinent.array_types import Masks
from pertinent.errors import SettingError
from pertinent.inputs.base import Input
from pertinent.inputs.text import TextInput
from pertinent.removal.base import TokenRemoval, TokenRows, kept_tokens, removals


@removals.register("pad-token")
@dataclass(frozen=True)
class PadToken(TokenRemoval):
    """Each removed token is replaced by the padding token, with attention left on."""

    summary = "replaced by the padding token, attention left on"

    def check(self, input: Input) -> None:
        """The tokenizer must have a padding token."""
        super().check(input)
        assert isinstance(input, TextInput) and input.tokens is not None
        if input.tokens.pad_id is None:
            raise SettingError("The removal 'pad-token' needs a tokenizer that has a padding token.")

    def __call__(self, input: Input, masks: Masks, seed: int) -> TokenRows:
        """Rows as long as the text."""
        del seed
        assert isinstance(input, TextInput) and input.tokens is not None
        pad_id = input.tokens.pad_id
        assert pad_id is not None
        kept = kept_tokens(input, masks)
        ids = np.where(kept, input.tokens.ids, pad_id)
        return TokenRows(input.tokens, np.ones_like(kept), ids)
