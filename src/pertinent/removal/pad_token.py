"""Removed tokens become the padding token, still looked at."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pertinent.errors import SettingError
from pertinent.inputs.base import Input
from pertinent.inputs.text import TextInput
from pertinent.removal.base import TokenRemoval, TokenRows, kept_tokens, removals
from pertinent.types import Masks


@removals.register("pad-token")
@dataclass(frozen=True)
class PadToken(TokenRemoval):
    """Each removed token is replaced by the padding token, with attention left on."""

    summary = "replaced by the padding token, attention left on"

    def check(self, given: Input) -> None:
        """The tokenizer must have a padding token."""
        super().check(given)
        assert isinstance(given, TextInput) and given.tokens is not None
        if given.tokens.pad_id is None:
            raise SettingError("The removal 'pad-token' needs a tokenizer that has a padding token.")

    def __call__(self, given: Input, masks: Masks, seed: int) -> TokenRows:
        """Rows as long as the text."""
        del seed
        assert isinstance(given, TextInput) and given.tokens is not None
        pad_id = given.tokens.pad_id
        assert pad_id is not None
        kept = kept_tokens(given, masks)
        ids = np.where(kept, given.tokens.ids, pad_id)
        return TokenRows(given.tokens, np.ones_like(kept), ids)
