"""Rows of tokens from many texts, put together into one rectangular batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pertinent.errors import InputError
from pertinent.removal.base import TokenRows
from pertinent.types import Array, Ints, Masks


@dataclass(frozen=True, eq=False)
class TokenBatch:
    """Arrays (rows, length); `attend` is ``None`` where every row looks at all of its tokens."""

    ids: Ints
    types: Ints
    positions: Ints
    attend: Masks | None
    zeroed: Masks | None


@dataclass(frozen=True, eq=False)
class _Flat:
    """The tokens of several rows one after the other."""

    lengths: Ints
    ids: Ints
    types: Ints
    positions: Ints
    attend: Masks
    zeroed: Masks


def collate(parts: Sequence[TokenRows], compact: Sequence[bool], pad_id: int) -> TokenBatch:
    """One batch of all rows; where `compact`, tokens out of sight are left out of it."""
    flats = [_flatten(rows, drop) for rows, drop in zip(parts, compact, strict=True)]
    lengths = np.concatenate([flat.lengths for flat in flats])
    if not lengths.all():
        raise InputError(
            "Nothing is left of this text when all its features are removed, as the tokenizer adds no "
            "special tokens; choose the removal 'mask-token' or 'pad-token'."
        )
    place = _places(lengths)

    def lay(name: str, fill: int) -> Array:
        values = np.concatenate([getattr(flat, name) for flat in flats])
        if place is None:
            return values.reshape(len(lengths), -1)
        laid = np.full((len(lengths), lengths.max()), fill, dtype=values.dtype)
        laid[place] = values
        return laid

    attend, zeroed = lay("attend", fill=0), lay("zeroed", fill=0)
    return TokenBatch(
        lay("ids", pad_id),
        lay("types", 0),
        lay("positions", 0),
        None if attend.all() else attend,
        zeroed if zeroed.any() else None,
    )


def _flatten(rows: TokenRows, compact: bool) -> _Flat:
    kept = rows.attend if compact or rows.renumber else np.ones_like(rows.attend)
    row, column = np.nonzero(kept)
    lengths = np.bincount(row, minlength=len(rows.attend))
    zeroed = np.zeros(len(row), dtype=np.bool_) if rows.zeroed is None else rows.zeroed[row, column]
    return _Flat(
        lengths,
        rows.ids[row, column],
        rows.tokens.types[column],
        _within(lengths) if rows.renumber else column,
        rows.attend[row, column],
        zeroed,
    )


def _within(lengths: Ints) -> Ints:
    """0, 1, 2 … within each row."""
    return np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)


def _places(lengths: Ints) -> tuple[Ints, Ints] | None:
    """Where flat tokens go in the rectangle; ``None`` if the rows fill it."""
    if (lengths == lengths[0]).all():
        return None
    return np.repeat(np.arange(len(lengths)), lengths), _within(lengths)
