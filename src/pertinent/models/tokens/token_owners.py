"""Assignment of tokens to features."""

from __future__ import annotations

import numpy as np

from pertinent.array_types import Ints, Masks


def token_spans(numbers: Ints, char_spans: Ints, removable: Masks) -> tuple[Ints, Ints]:
    """Return a span for each distinct removable token, in text order, and the span of each token.

    Parameters
    ----------
    numbers
        Number of each token, in rows (tokens, …); a token in two windows has the same number twice.
    char_spans
        Characters of each token (segment, start, end).
    removable
        Mask of the tokens that may be removed.
    """
    _, first, span = np.unique(numbers[removable], axis=0, return_index=True, return_inverse=True)
    owners = np.full(len(numbers), -1)
    owners[removable] = span.ravel()
    return char_spans[removable][first], owners


def assign_tokens(spans: Ints, char_spans: Ints, *, gaps: bool) -> tuple[Ints, Ints]:
    """Return the spans that have a token, and the span of each token (−1 for none).

    A token belongs to the first span that shares a character with it. With `gaps`, a token between spans
    belongs to the next span of its segment, or else the last; otherwise to none. Spans and `char_spans` of
    tokens are rows of (segment, start, end).
    """
    owners = np.full(len(char_spans), -1)
    for segment in np.unique(spans[:, 0]):
        tokens, indices = (np.flatnonzero(rows[:, 0] == segment) for rows in (char_spans, spans))
        starts, ends = char_spans[tokens, 1:].T
        nearest = indices[np.minimum(np.searchsorted(spans[indices, 2], starts, "right"), len(indices) - 1)]
        _, first, last = spans[nearest].T
        overlaps = (first < np.maximum(ends, starts + 1)) & (starts < last)
        owners[tokens] = nearest if gaps else np.where(overlaps, nearest, -1)
    used = np.unique(owners[owners >= 0])
    return spans[used], np.where(owners >= 0, np.searchsorted(used, owners), -1)
