"""Batches of tokens, collated from rows of many texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pertinent.array_types import Array, Ints, Masks
from pertinent.errors import InputError
from pertinent.inputs.tokens import Tokens
from pertinent.removals.base import TokenRows


@dataclass(frozen=True, eq=False)
class TokenBatch:
    """Rows of tokens with equal lengths.

    Attributes
    ----------
    ids, types, positions
        Token ids, token types and positions (rows, length).
    attend
        Mask of the tokens that may be attended to (rows, length); ``None`` if all.
    zeroed
        Mask of the word embeddings that are zeroed (rows, length); ``None`` if none.
    """

    ids: Ints
    types: Ints
    positions: Ints
    attend: Masks | None
    zeroed: Masks | None

    def __getitem__(self, index: Any) -> TokenBatch:
        """Return the selected rows, or rows and tokens."""
        arrays = [None if array is None else array[index] for array in vars(self).values()]
        return TokenBatch(*arrays)  # type: ignore[arg-type]

    def pick(self, rows: Ints) -> TokenBatch:
        """Return the selected rows."""
        return self[rows]


def without_needless_mask(batch: TokenBatch) -> TokenBatch:
    """Return the batch for a causal network, without its mask if that hides only padding at the end.

    Otherwise the batch always has a mask: without one, transformers interprets gaps between positions as
    boundaries between several texts.
    """
    attend = np.ones(batch.ids.shape, dtype=np.bool_) if batch.attend is None else batch.attend
    order = np.arange(attend.shape[1])
    is_first = order < np.count_nonzero(attend, axis=1)[:, None]
    plain = bool((attend == is_first).all() and (batch.positions == order)[attend].all())
    return replace(batch, attend=None if plain else attend)


def one_row(ids: Sequence[int]) -> TokenBatch:
    """Return a batch with one row of these tokens, with nothing hidden."""
    row = np.array(ids)[None]
    return TokenBatch(row, np.zeros_like(row), np.arange(row.shape[1])[None], None, None)


def whole_rows(tokens: Tokens, n: int = 1) -> TokenRows:
    """Return n rows of the whole text."""
    return TokenRows(tokens, np.ones((n, len(tokens.ids)), dtype=np.bool_))


def collate(parts: Sequence[TokenRows], compact: Sequence[bool], pad_id: int) -> TokenBatch:
    """Return the rows of all parts as one batch; `compact` parts omit tokens that are not attended to."""
    if all(compact) and all(p.ids is None and p.zeroed is None and not p.renumber for p in parts):
        flattened = [_flatten_compact(parts)]
    else:
        flattened = [_flatten(part, is_compact) for part, is_compact in zip(parts, compact, strict=True)]
    lengths = np.concatenate([lengths for lengths, _ in flattened])
    flats = [flat for _, flat in flattened]
    if not lengths.all():
        raise InputError(
            "No tokens of this text remain when all its features are removed, because the tokenizer adds no "
            "special tokens; choose the removal 'mask-token' or 'pad-token'."
        )
    shape = (len(lengths), int(lengths.max()))
    is_full = bool((lengths == shape[1]).all())
    slots = None if is_full else (np.repeat(np.arange(len(lengths)), lengths), _count_within(lengths))

    def lay_out(values: Sequence[Array | None], padding: int, default: bool = False) -> Array:
        """Return rows of equal length; parts without values are filled with the default."""
        concatenated = np.concatenate(
            [
                np.full(len(flat.ids), default) if array is None else array
                for flat, array in zip(flats, values, strict=True)
            ]
        )
        if slots is None:
            return concatenated.reshape(shape)
        rows = np.full(shape, padding, dtype=concatenated.dtype)
        rows[slots] = concatenated
        return rows

    attend, zeroed = [flat.attend for flat in flats], [flat.zeroed for flat in flats]
    attends_to_all = is_full and all(array is None for array in attend)
    return TokenBatch(
        lay_out([flat.ids for flat in flats], pad_id),
        lay_out([flat.types for flat in flats], 0),
        lay_out([flat.positions for flat in flats], 0),
        None if attends_to_all else lay_out(attend, 0, default=True),
        None if all(array is None for array in zeroed) else lay_out(zeroed, 0),
    )


def lay_out_like_ids(
    parts: Sequence[TokenRows], compact: Sequence[bool], values: Sequence[Ints], padding: int
) -> Ints:
    """Return token values, (rows, length) for each part, in the layout of a batch from `collate`."""
    rows = [replace(part, ids=ids, zeroed=None) for part, ids in zip(parts, values, strict=True)]
    return collate(rows, compact, padding).ids


def order_first(chosen: Masks) -> Ints:
    """Return the slots of each row with the chosen slots first, otherwise in their original order."""
    return np.argsort(~chosen, axis=1, kind="stable")


def _flatten(rows: TokenRows, compact: bool) -> tuple[Ints, TokenBatch]:
    """Return the length of each row, and the concatenated tokens of all rows."""
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
        _count_within(lengths) if rows.renumber else column,
        rows.attend.ravel() if hides else None,
        None if rows.zeroed is None else rows.zeroed.ravel()[flat],
    )


def _flatten_compact(parts: Sequence[TokenRows]) -> tuple[Ints, TokenBatch]:
    """Flatten many compact parts with unchanged tokens together (see `_flatten`)."""
    n_rows, widths = np.array([part.attend.shape for part in parts]).T
    flat = np.concatenate([part.attend.ravel() for part in parts]).nonzero()[0]
    ends = np.cumsum(np.repeat(widths, n_rows))
    starts = ends - np.repeat(widths, n_rows)
    lengths = np.diff(np.searchsorted(flat, ends), prepend=0)
    column = flat - np.repeat(starts, lengths)
    first = np.repeat(np.repeat(np.cumsum(widths) - widths, n_rows), lengths)
    ids, types = (np.concatenate([getattr(p.tokens, name) for p in parts]) for name in ("ids", "types"))
    return lengths, TokenBatch(ids[first + column], types[first + column], column, None, None)


def _count_within(lengths: Ints) -> Ints:
    """Return 0, 1, 2 … within each row."""
    return np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
