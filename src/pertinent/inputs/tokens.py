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
        The feature of each token; −1 if it is fixed.
    mask_id, pad_id
        The ids of the mask token and of padding; ``None`` if the tokenizer has none.
    char_spans
        The characters of each token, rows of (segment, start, end); the segment of a special token is −1.
    lengths
        The number of tokens of each window of a long text. Windows are concatenated, each with its special
        tokens.
    repeated
        Whether each token is also in an earlier window.
    scored
        Whether the likelihood of each token is computed. The answer of a language model and its alternative
        are two windows with the same prompt.
    variants
        For each feature, the tokens that may replace it.
    answers
        The tokens of the answer and of its alternative, if a separate decoder reads them; then no other token
        is scored.
    span
        The start and end token of the explained span of the answer; (0, 0) without a span.
    """

    ids: Ints
    types: Ints
    feature: Ints
    mask_id: int | None
    pad_id: int | None
    char_spans: Ints | None = None
    lengths: tuple[int, ...] = ()
    repeated: Masks | None = None
    scored: Masks | None = None
    variants: tuple[tuple[Ints, ...], ...] = ()
    answers: tuple[Ints, ...] = ()
    span: tuple[int, int] = (0, 0)

    @cached_property
    def windows(self) -> tuple[tuple[slice, Tokens], ...]:
        """Return the slice and the tokens of each window; one for a text without windows."""
        if not self.lengths:
            return ((slice(0, len(self.ids)), self),)
        ends = np.cumsum(self.lengths).tolist()
        return tuple((window, self._window(window)) for window in map(slice, [0, *ends[:-1]], ends))

    @property
    def longest(self) -> int:
        """Return the number of tokens of the longest window."""
        return max(self.lengths, default=len(self.ids))

    def _window(self, window: slice) -> Tokens:
        char_spans = None if self.char_spans is None else self.char_spans[window]
        ids, types, feature = self.ids[window], self.types[window], self.feature[window]
        tokens = Tokens(ids, types, feature, self.mask_id, self.pad_id, char_spans)
        return tokens if self.scored is None else replace(tokens, scored=self.scored[window])
