"""A text as tokens, and the tokens that belong to each of its features."""

from __future__ import annotations

from typing import Any

import numpy as np

from pertinent.array_types import Ints
from pertinent.errors import InputError
from pertinent.inputs.base import Features, Truncation
from pertinent.inputs.text import Text, TextInput, Tokens, cut, own_spans, text_input


def tokenised(text: Text, features: Features, tokenizer: Any, max_length: int) -> TextInput:
    """Tokenise a text of at most `max_length` tokens, and find the tokens of each feature."""
    granularity, spans = _cut(text, features)
    encoded = tokenizer(
        *text.segments,
        truncation={"none": "longest_first", "first": "only_second", "second": "only_first"}[text.fixed]
        if text.second is not None
        else True,
        max_length=max_length,
        return_offsets_mapping=True,
    )
    sequence = np.array([-1 if s is None else s for s in encoded.sequence_ids(0)], dtype=np.int64)
    place = np.column_stack([sequence, np.array(encoded["offset_mapping"], dtype=np.int64)])
    removable = np.array([text.removable(0), text.removable(1), False])[sequence]
    ids = np.array(encoded["input_ids"], dtype=np.int64)
    if not removable.any():
        raise InputError("No token of the text can be removed: the tokenizer finds no tokens in it.")
    if (ids[removable] == tokenizer.unk_token_id).all():
        raise InputError("Every token of the text is unknown to the tokenizer.")
    overflowing = encoded.encodings[0].overflowing
    if granularity == "tokens":
        spans, feature = place[removable], np.cumsum(removable) - 1
        n_all = len(spans) + sum(rest.special_tokens_mask.count(0) for rest in overflowing)
    else:
        n_all = len(spans)
        spans, feature = _owners(spans, place, gaps=granularity != "spans")
    if not len(spans):
        raise InputError("No token of the text lies in any of the spans.")
    notes: tuple[str, ...] = ()
    truncation = Truncation(len(spans), n_all, max_length, granularity) if overflowing else None
    if truncation is None and granularity == "spans" and len(spans) < n_all:
        notes = (f"{n_all - len(spans)} of {n_all} spans are left out: they have no token of their own",)
    tokens = Tokens(
        ids,
        np.array(encoded.get("token_type_ids", np.zeros_like(ids)), dtype=np.int64),
        np.where(removable, feature, -1),
        tokenizer.mask_token_id,
        tokenizer.pad_token_id,
        place,
    )
    return text_input(text, granularity, spans, tokens, notes, truncation=truncation)


def _cut(text: Text, features: Features) -> tuple[str, Ints]:
    """The granularity and the spans; those of tokens are known once the text is tokenised."""
    if not isinstance(features, str):
        return "spans", own_spans(text, features)
    return features, np.empty((0, 3), dtype=np.int64) if features == "tokens" else cut(text, features)


def _owners(spans: Ints, place: Ints, *, gaps: bool) -> tuple[Ints, Ints]:
    """The spans that have a token, and the span that each token belongs to, −1 if to none.

    A token belongs to the first span that it shares a character with. One in a gap belongs to the next
    span if `gaps`, else to none.
    """
    owner = np.full(len(place), -1)
    for segment in (0, 1):
        tokens = np.flatnonzero(place[:, 0] == segment)
        mine = np.flatnonzero(spans[:, 0] == segment)
        if len(mine):
            found = mine[
                np.minimum(np.searchsorted(spans[mine, 2], place[tokens, 1], side="right"), len(mine) - 1)
            ]
            inside = (spans[found, 1] < place[tokens, 2]) & (place[tokens, 1] < spans[found, 2])
            owner[tokens] = found if gaps else np.where(inside, found, -1)
    seen = np.unique(owner[owner >= 0])
    return spans[seen], np.where(owner >= 0, np.searchsorted(seen, owner), -1)
