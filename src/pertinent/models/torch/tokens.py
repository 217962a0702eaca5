"""Rows of tokens from many texts, combined into one rectangular batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pertinent.array_types import Array, Ints, Masks
from pertinent.errors import InputError
from pertinent.inputs.text import Tokens
from pertinent.removal.base import TokenRows


@dataclass(frozen=True, eq=False)
class TokenBatch:
    """Arrays (rows, length); `attend` is ``None`` if every row attends to all of its tokens."""

    ids: Ints
    types: Ints
    positions: Ints
    attend: Masks | None
    zeroed: Masks | None

    def pick(self, rows: Ints) -> TokenBatch:
        """Some of the rows, as wide as before."""
        own = (self.ids, self.types, self.positions, self.attend, self.zeroed)
        return TokenBatch(*(None if array is None else array[rows] for array in own))  # type: ignore[arg-type]


def whole_rows(tokens: Tokens, n: int = 1) -> TokenRows:
    """The whole text, in each of n rows."""
    return TokenRows(tokens, np.ones((n, len(tokens.ids)), dtype=np.bool_))


def collate(parts: Sequence[TokenRows], compact: Sequence[bool], pad_id: int) -> TokenBatch:
    """One batch of all rows; where `compact`, tokens that are not attended to are left out."""
    flats = [_flatten(rows, drop) for rows, drop in zip(parts, compact, strict=True)]
    lengths = np.concatenate([flat.lengths for flat in flats])
    if not lengths.all():
        raise InputError(
            "Nothing is left of this text when all its features are removed, as the tokenizer adds no "
            "special tokens; choose the removal 'mask-token' or 'pad-token'."
        )
    shape = (len(lengths), int(lengths.max()))
    full = bool((lengths == shape[1]).all())
    place = None if full else (np.repeat(np.arange(len(lengths)), lengths), _within(lengths))

    def lay(values: Sequence[Array], fill: int) -> Array:
        flat = np.concatenate(values)
        if place is None:
            return flat.reshape(shape)
        laid = np.full(shape, fill, dtype=flat.dtype)
        laid[place] = flat
        return laid

    seen = full and all(flat.attend is None for flat in flats)
    return TokenBatch(
        lay([flat.ids for flat in flats], pad_id),
        lay([flat.types for flat in flats], 0),
        lay([flat.positions for flat in flats], 0),
        None if seen else lay([_or(flat.attend, flat, fill=True) for flat in flats], 0),
        None
        if all(flat.zeroed is None for flat in flats)
        else lay([_or(flat.zeroed, flat, fill=False) for flat in flats], 0),
    )


@dataclass(frozen=True, eq=False)
class _Flat:
    """The tokens of several rows, concatenated; ``None`` if all are attended to, or none is zeroed."""

    lengths: Ints
    ids: Ints
    types: Ints
    positions: Ints
    attend: Masks | None
    zeroed: Masks | None


def _flatten(rows: TokenRows, compact: bool) -> _Flat:
    n, length = rows.attend.shape
    if compact or rows.renumber:
        flat = rows.attend.ravel().nonzero()[0]
        lengths = np.count_nonzero(rows.attend, axis=1)
        column = flat - np.repeat(np.arange(n) * length, lengths)
    else:
        flat, column = np.arange(n * length), np.tile(np.arange(length), n)
        lengths = np.full(n, length)
    hides = not (compact or rows.renumber or rows.attend.all())
    return _Flat(
        lengths,
        rows.tokens.ids[column] if rows.ids is None else rows.ids.ravel()[flat],
        rows.tokens.types[column],
        _within(lengths) if rows.renumber else column,
        rows.attend.ravel() if hides else None,
        None if rows.zeroed is None else rows.zeroed.ravel()[flat],
    )


def _within(lengths: Ints) -> Ints:
    """0, 1, 2 … within each row."""
    return np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)


def _or(values: Masks | None, flat: _Flat, *, fill: bool) -> Masks:
    return np.full(len(flat.ids), fill) if values is None else values
