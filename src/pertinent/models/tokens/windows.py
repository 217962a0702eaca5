"""Overlapping windows of a text that is longer than a transformer can read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pertinent.array_types import Ints
from pertinent.errors import InputError, require, unknown
from pertinent.inputs.text import Text

LONG_TEXTS = ("truncate", "windows")
"""Ways to read a text that is longer than a model can read."""

MIN_TOKENS = 4
"""Smallest number of tokens of the long text in a window, without special tokens and the other text."""


@dataclass(frozen=True)
class Windows:
    """A way to divide long texts into windows that overlap by `overlap` tokens.

    The windows are those of the tokenizer with ``stride=overlap``. Each has the tokenizer's special tokens
    and, for a pair, the whole other text. By default, windows overlap by a quarter of their tokens of the
    long text.
    """

    overlap: int | None = None

    @classmethod
    def from_setting(cls, long_texts: str, max_length: int) -> Windows | None:
        """Parse ``"windows"`` or ``"windows:64"``; return ``None`` for ``"truncate"``.

        >>> Windows.from_setting("windows:64", 256), Windows.from_setting("truncate", 256)
        (Windows(overlap=64), None)
        """
        kind, colon, overlap = long_texts.partition(":")
        if kind not in LONG_TEXTS:
            raise unknown("way to read long texts", long_texts, LONG_TEXTS)
        if not colon:
            return cls() if kind == "windows" else None
        is_number = kind == "windows" and overlap.isdecimal() and int(overlap) < max_length
        must = f"'truncate', 'windows', or 'windows:' and a number of tokens below {max_length}"
        require(is_number, "long_texts", must, long_texts)
        return cls(int(overlap))

    def cut(self, text: Text, tokenizer: Any, max_length: int) -> tuple[list[Any], Ints]:
        """Return the windows of a text in order, and the segment and number of each of their tokens.

        The windows are encodings of the `tokenizers` library; the array is as in `number_tokens`.
        """
        segments = [tokenizer(segment, add_special_tokens=False, verbose=False) for segment in text.segments]
        lengths = [len(encoded["input_ids"]) for encoded in segments]
        segment = {"first": 1, "second": 0}.get(text.fixed, int(np.argmax(lengths)))
        special = tokenizer.num_special_tokens_to_add(pair=text.second is not None)
        available = max_length - special - (sum(lengths) - lengths[segment])
        overlap = available // 4 if self.overlap is None else self.overlap
        if available < max(MIN_TOKENS, overlap + 1):
            raise InputError(
                f"The text cannot be read in windows of {max_length} tokens that overlap by {overlap}: "
                f"without special tokens{' and the other text' if text.second else ''}, a window holds only "
                f"{available} tokens. Choose a smaller overlap, as in long_texts='windows:8', or 'truncate'."
            )
        truncation = ("only_first", "only_second")[segment]
        encoded = tokenizer(*text.segments, truncation=truncation, max_length=max_length, stride=overlap)
        windows = [encoded.encodings[0], *encoded.encodings[0].overflowing]
        first = np.arange(len(windows)) * (available - overlap)
        if tokenizer.truncation_side == "left":  # the first window is at the end of the text
            first = np.maximum(0, lengths[segment] - available - first)
        numbers = [number_tokens(window) for window in windows]
        for start, number in zip(first, numbers, strict=True):
            number[number[:, 0] == segment, 1] += start
        order = np.argsort(first)
        return [windows[i] for i in order], np.concatenate([numbers[i] for i in order])


def number_tokens(encoding: Any) -> Ints:
    """Return each token's segment (−1 for special tokens) and its number in the segment (tokens, 2)."""
    segments = np.array([-1 if i is None else i for i in encoding.sequence_ids], dtype=np.int64)
    numbers = np.empty_like(segments)
    for segment in (-1, 0, 1):
        numbers[segments == segment] = np.arange((segments == segment).sum())
    return np.column_stack([segments, numbers])
