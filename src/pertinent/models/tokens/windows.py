"""Windows: overlapping parts of a text that is longer than a transformer reads at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pertinent.array_types import Ints
from pertinent.errors import InputError, require, unknown
from pertinent.inputs.text import Text

LONG_TEXTS = ("truncate", "windows")
"""What can be done with a text that is longer than a model reads at once."""

LEAST_ROOM = 4
"""Smallest number of tokens of a long text in a window, beside its special tokens and the other text."""


@dataclass(frozen=True)
class Windows:
    """Cuts long texts into windows, of which each shares `overlap` tokens with the next.

    They are those of the tokenizer itself, with ``stride=overlap``. Each begins and ends with the tokenizer's
    special tokens, and of a pair each has the whole of the other text. By default a quarter of the tokens
    that a window has of the long text are shared.
    """

    overlap: int | None = None

    @classmethod
    def from_setting(cls, long_texts: str, max_length: int) -> Windows | None:
        """What ``"windows"`` or ``"windows:64"`` means; ``None`` if long texts are truncated.

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
        """The windows of a text, and which token of which segment each of their tokens is.

        The windows are encodings of the `tokenizers` library, in the order of the text. The rows of the array
        are (segment, number of the token in it); the segment of a special token is −1.
        """
        alone = [tokenizer(own, add_special_tokens=False, verbose=False) for own in text.segments]
        lengths = [len(own["input_ids"]) for own in alone]
        segment = {"first": 1, "second": 0}.get(text.fixed, int(np.argmax(lengths)))
        special = tokenizer.num_special_tokens_to_add(pair=text.second is not None)
        room = max_length - special - (sum(lengths) - lengths[segment])
        overlap = room // 4 if self.overlap is None else self.overlap
        if room < max(LEAST_ROOM, overlap + 1):
            raise InputError(
                f"The text cannot be read in windows of {max_length} tokens that overlap by {overlap}: "
                f"beside special tokens{' and the other text' if text.second else ''} there is room for "
                f"{room} tokens. Choose a smaller overlap, as in long_texts='windows:8', or 'truncate'."
            )
        only = ("only_first", "only_second")[segment]
        encoded = tokenizer(*text.segments, truncation=only, max_length=max_length, stride=overlap)
        windows = [encoded.encodings[0], *encoded.encodings[0].overflowing]
        first = np.arange(len(windows)) * (room - overlap)
        if tokenizer.truncation_side == "left":  # counted from the end of the text, where the first one is
            first = np.maximum(0, lengths[segment] - room - first)
        numbers = [numbered(window) for window in windows]
        for start, number in zip(first, numbers, strict=True):
            number[number[:, 0] == segment, 1] += start
        order = np.argsort(first)
        return [windows[i] for i in order], np.concatenate([numbers[i] for i in order])


def numbered(encoding: Any) -> Ints:
    """The segment of each token, −1 for special ones, and its number among those of the segment."""
    segment = np.array([-1 if own is None else own for own in encoding.sequence_ids], dtype=np.int64)
    number = np.empty_like(segment)
    for own in (-1, 0, 1):
        number[segment == own] = np.arange((segment == own).sum())
    return np.column_stack([segment, number])
