"""Tokenising a text into features, and collating the rows of many texts into one batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pertinent.array_types import Array, Ints, Masks
from pertinent.errors import InputError
from pertinent.inputs.tokens import Tokens
from pertinent.removals.base import TokenRows


@dataclass(frozen=True, eq=False)
class TokenBatch:
    """Arrays (rows, length); `attend` is ``None`` if all tokens are attended to, `zeroed` if none is zero."""

    ids: Ints
    types: Ints
    positions: Ints
    attend: Masks | None
    zeroed: Masks | None

    def first(self, n: int) -> TokenBatch:
        """A batch of the first n tokens of each row."""
        own = vars(self).values()
        return TokenBatch(*(None if array is None else array[:, :n] for array in own))  # type: ignore[arg-type]

    def pick(self, rows: Ints) -> TokenBatch:
        """A batch of some of the rows, with the same length."""
        own = vars(self).values()
        return TokenBatch(*(None if array is None else array[rows] for array in own))  # type: ignore[arg-type]


def without_needless_mask(batch: TokenBatch) -> TokenBatch:
    """The batch for a network whose tokens attend to earlier ones alone: padding at the end hides itself.

    If the tokens of every row are the first ones at the first positions, nothing must be hidden. Otherwise
    there is always a mask: without one, transformers takes gaps between positions for several texts.
    """
    attend = np.ones(batch.ids.shape, dtype=np.bool_) if batch.attend is None else batch.attend
    order = np.arange(attend.shape[1])
    is_first = order < np.count_nonzero(attend, axis=1)[:, None]
    plain = bool((attend == is_first).all() and (batch.positions == order)[attend].all())
    return replace(batch, attend=None if plain else attend)


def one_row(ids: Sequence[int]) -> TokenBatch:
    """A batch of one row of these tokens, with nothing hidden."""
    plain = np.array(ids)[None]
    return TokenBatch(plain, np.zeros_like(plain), np.arange(plain.shape[1])[None], None, None)


def whole_rows(tokens: Tokens, n: int = 1) -> TokenRows:
    """The whole text, in each of n rows."""
    return TokenRows(tokens, np.ones((n, len(tokens.ids)), dtype=np.bool_))


def collate(parts: Sequence[TokenRows], compact: Sequence[bool], pad_id: int) -> TokenBatch:
    """One batch of the rows of all parts; of `compact` parts the tokens not attended to are left out."""
    alike = all(compact) and all(p.ids is None and p.zeroed is None and not p.renumber for p in parts)
    own = [_flatten_alike(parts)] if alike else map(_flatten, parts, compact)
    each, flats = zip(*own, strict=True)
    lengths = np.concatenate(each)
    if not lengths.all():
        raise InputError(
            "Nothing is left of this text when all its features are removed, as the tokenizer adds no "
            "special tokens; choose the removal 'mask-token' or 'pad-token'."
        )
    shape = (len(lengths), int(lengths.max()))
    full = bool((lengths == shape[1]).all())
    place = None if full else (np.repeat(np.arange(len(lengths)), lengths), _within(lengths))

    def lay(values: Sequence[Array | None], padding: int, default: bool = False) -> Array:
        """Rows of equal length; a part without values of its own has the default for each token."""
        known = [
            np.full(len(flat.ids), default) if own is None else own
            for flat, own in zip(flats, values, strict=True)
        ]
        concatenated = np.concatenate(known)
        if place is None:
            return concatenated.reshape(shape)
        laid = np.full(shape, padding, dtype=concatenated.dtype)
        laid[place] = concatenated
        return laid

    attend, zeroed = [flat.attend for flat in flats], [flat.zeroed for flat in flats]
    return TokenBatch(
        lay([flat.ids for flat in flats], pad_id),
        lay([flat.types for flat in flats], 0),
        lay([flat.positions for flat in flats], 0),
        None if full and all(own is None for own in attend) else lay(attend, 0, default=True),
        None if all(own is None for own in zeroed) else lay(zeroed, 0),
    )


def _flatten(rows: TokenRows, compact: bool) -> tuple[Ints, TokenBatch]:
    """The length of each row, and the tokens of all rows, concatenated."""
    n, length = rows.attend.shape
    if compact or rows.renumber:
        flat = rows.attend.ravel().nonzero()[0]
        lengths = np.count_nonzero(rows.attend, axis=1)
        column = flat - np.repeat(np.arange(n) * length, lengths)
    else:
        flat, column = np.arange(n * length), np.tile(np.arange(length), n)
        lengths = np.full(n, length)
    hides = not (compact or rows.renumber or rows.attend.all())
    return lengths, TokenBatch(
        rows.tokens.ids[column] if rows.ids is None else rows.ids.ravel()[flat],
        rows.tokens.types[column],
        _within(lengths) if rows.renumber else column,
        rows.attend.ravel() if hides else None,
        None if rows.zeroed is None else rows.zeroed.ravel()[flat],
    )


def _flatten_alike(parts: Sequence[TokenRows]) -> tuple[Ints, TokenBatch]:
    """Like `_flatten`, of many compact parts at once, whose rows differ from their texts in nothing else."""
    n_rows, widths = np.array([part.attend.shape for part in parts]).T
    flat = np.concatenate([part.attend.ravel() for part in parts]).nonzero()[0]
    ends = np.cumsum(np.repeat(widths, n_rows))
    starts = ends - np.repeat(widths, n_rows)
    lengths = np.diff(np.searchsorted(flat, ends), prepend=0)
    column = flat - np.repeat(starts, lengths)
    first = np.repeat(np.repeat(np.cumsum(widths) - widths, n_rows), lengths)
    ids, types = (np.concatenate([getattr(p.tokens, name) for p in parts]) for name in ("ids", "types"))
    return lengths, TokenBatch(ids[first + column], types[first + column], column, None, None)


def _within(lengths: Ints) -> Ints:
    """0, 1, 2 … within each row."""
    return np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
