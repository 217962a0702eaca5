"""Tokenising a text into features, and collating the rows of many texts into one batch."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from pertinent.array_types import Ints, Masks
from pertinent.errors import InputError
from pertinent.inputs.base import Features, Truncation
from pertinent.inputs.segmentation import custom_spans, cut
from pertinent.inputs.text import Text, TextInput, text_input
from pertinent.inputs.tokens import Tokens
from pertinent.models.tokens.windows import Windows, numbered


def tokenize_text(
    text: Text, features: Features, tokenizer: Any, max_length: int, windows: Windows | None = None
) -> TextInput:
    """Tokenise a text, and find the tokens of each feature.

    At most `max_length` tokens are read together; the others are truncated, or in further windows.
    """
    granularity, spans = _cut(text, features)
    truncated = {"none": "longest_first", "first": "only_second", "second": "only_first"}[text.fixed]
    encoded = tokenizer(
        *text.segments,
        truncation=True if text.second is None else truncated,
        max_length=max_length,
    )
    overflowing = encoded.encodings[0].overflowing
    if overflowing and windows is not None:
        parts, number = windows.cut(text, tokenizer, max_length)
        overflowing = []
    else:
        parts, number = encoded.encodings[:1], numbered(encoded.encodings[0])
    place = np.column_stack([number[:, 0], np.concatenate([part.offsets for part in parts])])
    removable = np.array([text.removable(0), text.removable(1), False])[place[:, 0]]
    ids = np.concatenate([np.array(part.ids, dtype=np.int64) for part in parts])
    if not removable.any():
        raise InputError("No token of the text can be removed: the tokenizer finds no tokens in it.")
    if (ids[removable] == tokenizer.unk_token_id).all():
        raise InputError("Every token of the text is unknown to the tokenizer.")
    if granularity == "tokens":
        spans, feature = _each_once(number, place, removable)
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
    types = np.zeros_like(ids)
    if "token_type_ids" in encoded:
        types = np.concatenate([np.array(part.type_ids, dtype=np.int64) for part in parts])
    feature = np.where(removable, feature, -1)
    tokens = Tokens(ids, types, feature, tokenizer.mask_token_id, tokenizer.pad_token_id, place)
    if len(parts) > 1:
        repeated = np.ones(len(ids), dtype=np.bool_)
        repeated[np.unique(number, axis=0, return_index=True)[1]] = False
        tokens = replace(tokens, lengths=tuple([len(part.ids) for part in parts]), repeated=repeated)
    return text_input(text, granularity, spans, tokens, notes, truncation=truncation)


def _each_once(number: Ints, place: Ints, removable: Masks) -> tuple[Ints, Ints]:
    """The places of all removable tokens in the order of the text, and each token's number among them."""
    _, first, feature = np.unique(number[removable], axis=0, return_index=True, return_inverse=True)
    owner = np.full(len(number), -1)
    owner[removable] = feature.ravel()
    return place[removable][first], owner


def _cut(text: Text, features: Features) -> tuple[str, Ints]:
    """The granularity and the spans; for tokens no spans, which are known once the text is tokenised."""
    if not isinstance(features, str):
        return "spans", custom_spans(text, features)
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
            after = np.searchsorted(spans[mine, 2], place[tokens, 1], side="right")
            found = mine[np.minimum(after, len(mine) - 1)]
            inside = (spans[found, 1] < place[tokens, 2]) & (place[tokens, 1] < spans[found, 2])
            owner[tokens] = found if gaps else np.where(inside, found, -1)
    seen = np.unique(owner[owner >= 0])
    return spans[seen], np.where(owner >= 0, np.searchsorted(seen, owner), -1)
