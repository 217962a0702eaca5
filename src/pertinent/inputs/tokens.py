"""The tokens of a text or a prompt, as a transformer reads them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from pertinent.array_types import Ints, Masks


@dataclass(frozen=True, eq=False)
class Tokens:
    """The tokens of a text, one entry per token, special tokens included.

    Attributes
    ----------
    ids, types
        The id of each token, and its token type (segment embedding).
    feature
        The mask column of each token; −1 if it is fixed.
    mask_id, pad_id
        The ids of the mask token and of padding; ``None`` if the tokenizer has none.
    place
        The characters of each token, rows of (segment, start, end); the segment of a special token is −1.
    lengths
        The number of tokens of each window, for a text that is read in windows: their tokens follow each
        other, each window with its special tokens.
    repeated
        Whether each token is also in an earlier window.
    scored
        Whether the likelihood of each token is asked for. The answer of a language model and its alternative
        are two windows, each after the same prompt.
    variants
        For each feature, the tokens that it may be replaced by.
    answers
        The tokens of the answer and of its alternative, if a separate decoder reads them; then no other token
        is scored.
    span
        The first token of the explained span of the answer, and the one after the last; (0, 0) without one.
    """

    ids: Ints
    types: Ints
    feature: Ints
    mask_id: int | None
    pad_id: int | None
    place: Ints | None = None
    lengths: tuple[int, ...] = ()
    repeated: Masks | None = None
    scored: Masks | None = None
    variants: tuple[tuple[Ints, ...], ...] = ()
    answers: tuple[Ints, ...] = ()
    span: tuple[int, int] = (0, 0)

    @cached_property
    def windows(self) -> tuple[tuple[slice, Tokens], ...]:
        """Return each window's position among the tokens, and its tokens; a text without windows is one."""
        if not self.lengths:
            return ((slice(0, len(self.ids)), self),)
        ends = np.cumsum(self.lengths).tolist()
        return tuple((window, self._window(window)) for window in map(slice, [0, *ends[:-1]], ends))

    @property
    def longest(self) -> int:
        """Return the number of tokens of the longest window."""
        return max(self.lengths, default=len(self.ids))

    def _window(self, window: slice) -> Tokens:
        place = None if self.place is None else self.place[window]
        ids, types, feature = self.ids[window], self.types[window], self.feature[window]
        tokens = Tokens(ids, types, feature, self.mask_id, self.pad_id, place)
        return tokens if self.scored is None else replace(tokens, scored=self.scored[window])
