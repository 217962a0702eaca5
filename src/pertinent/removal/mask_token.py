"""Removed tokens become the tokenizer's mask token."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pertinent.array_types import Masks
from pertinent.errors import SettingError
from pertinent.inputs.base import Input
from pertinent.inputs.text import TextInput
from pertinent.removal.base import Removal, Rows, TokenRows, kept_tokens, rebuild, removals


@removals.register("mask-token")
@dataclass(frozen=True)
class MaskToken(Removal):
    """Hase et al. 2021, Sec. 5: each removed token is replaced by the mask token.

    If the model reads strings, each removed feature is replaced by `text`.
    """

    kinds = ("text",)
    summary = "replaced by the mask token (Hase et al. 2021)"
    text: str = "[MASK]"

    def check(self, input: Input) -> None:
        """A transformer's tokenizer must have a mask token."""
        super().check(input)
        assert isinstance(input, TextInput)
        if input.tokens is not None and input.tokens.mask_id is None:
            raise SettingError("The removal 'mask-token' needs a tokenizer that has a mask token.")

    def __call__(self, input: Input, masks: Masks, seed: int) -> Rows:
        """Rows as long as the text."""
        del seed
        assert isinstance(input, TextInput)
        if input.tokens is None:
            return rebuild(input, masks, self.text)
        mask_id = input.tokens.mask_id
        assert mask_id is not None
        kept = kept_tokens(input, masks)
        ids = np.where(kept, input.tokens.ids, mask_id)
        return TokenRows(input.tokens, np.ones_like(kept), ids)
