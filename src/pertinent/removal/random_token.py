"""Removed tokens become random tokens of the vocabulary."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from pertinent.array_types import Ints, Masks
from pertinent.errors import SettingError
from pertinent.inputs.base import Input
from pertinent.inputs.text import TextInput
from pertinent.removal.base import TokenRemoval, TokenRows, kept_tokens, removals, row_generators
from pertinent.settings import Count

if TYPE_CHECKING:
    from pertinent.models.base import Model


@removals.register("random-token")
@dataclass(frozen=True)
class RandomToken(TokenRemoval):
    """Each removed token is drawn uniformly from the vocabulary, special tokens left out.

    The prediction is averaged over `samples` draws per mask.
    """

    summary = "replaced by random tokens and averaged"
    samples: Count = 10
    vocabulary: Ints | None = field(default=None, init=False, compare=False, repr=False)

    @property
    def draws(self) -> int:
        """Rows per mask."""
        return self.samples

    @property
    def is_random(self) -> bool:
        """It draws."""
        return True

    def bind(self, model: Model) -> RandomToken:
        """The same removal with the token ids of the model's vocabulary."""
        bound = replace(self)
        object.__setattr__(bound, "vocabulary", getattr(model, "words", None))
        return bound

    def __call__(self, input: Input, masks: Masks, seed: int) -> TokenRows:
        """`samples` rows per mask."""
        assert isinstance(input, TextInput) and input.tokens is not None
        if self.vocabulary is None:
            raise SettingError("The removal 'random-token' must be bound to a transformer first.")
        kept = np.repeat(kept_tokens(input, masks), self.samples, axis=0)
        shape = (self.samples, kept.shape[1])
        generators = row_generators(input, masks, seed, self.name)
        drawn = np.concatenate(
            [self.vocabulary[g.integers(len(self.vocabulary), size=shape)] for g in generators]
        )
        return TokenRows(input.tokens, np.ones_like(kept), np.where(kept, input.tokens.ids, drawn))
