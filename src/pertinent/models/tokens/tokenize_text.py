"""Tokenization of a text, and the tokens of each feature."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from pertinent.array_types import Ints
from pertinent.errors import InputError
from pertinent.inputs.base import Features, Truncation
from pertinent.inputs.segmentation import custom_spans, cut
from pertinent.inputs.text import Text, TextInput, text_input
from pertinent.inputs.tokens import Tokens
from pertinent.models.tokens.token_owners import assign_tokens, token_spans
from pertinent.models.tokens.windows import Windows, number_tokens


def tokenize_text(
    text: Text, features: Features, tokenizer: Any, max_length: int, windows: Windows | None = None
) -> TextInput:
    """Tokenize a text and assign its tokens to features.

    At most `max_length` tokens are read together. Further tokens are truncated or read in further windows.
    """
    granularity, spans = _cut(text, features)
    truncation = {"none": "longest_first", "first": "only_second", "second": "only_first"}[text.fixed]
    encoded = tokenizer(
        *text.segments,
        truncation=True if text.second is None else truncation,
        max_length=max_length,
    )
    overflowing = encoded.encodings[0].overflowing
    if overflowing and windows is not None:
        parts, numbers = windows.cut(text, tokenizer, max_length)
        overflowing = []
    else:
        parts, numbers = encoded.encodings[:1], number_tokens(encoded.encodings[0])
    char_spans = np.column_stack([numbers[:, 0], np.concatenate([part.offsets for part in parts])])
    removable = np.array([text.removable(0), text.removable(1), False])[char_spans[:, 0]]
    ids = np.concatenate([np.array(part.ids, dtype=np.int64) for part in parts])
    if not removable.any():
        raise InputError("No token of the text can be removed: the tokenizer finds no tokens in it.")
    if (ids[removable] == tokenizer.unk_token_id).all():
        raise InputError("Every token of the text is unknown to the tokenizer.")
    if granularity == "tokens":
        spans, owners = token_spans(numbers, char_spans, removable)
        n_all = len(spans) + sum(part.special_tokens_mask.count(0) for part in overflowing)
    else:
        n_all = len(spans)
        spans, owners = assign_tokens(spans, char_spans, gaps=granularity != "spans")
    if not len(spans):
        raise InputError("No token of the text lies in any of the spans.")
    notes: tuple[str, ...] = ()
    cut_off = Truncation(len(spans), n_all, max_length, granularity) if overflowing else None
    if cut_off is None and granularity == "spans" and len(spans) < n_all:
        notes = (f"{n_all - len(spans)} of {n_all} spans were dropped because no token belongs to them",)
    types = np.zeros_like(ids)
    if "token_type_ids" in encoded:
        types = np.concatenate([np.array(part.type_ids, dtype=np.int64) for part in parts])
    feature = np.where(removable, owners, -1)
    tokens = Tokens(ids, types, feature, tokenizer.mask_token_id, tokenizer.pad_token_id, char_spans)
    if len(parts) > 1:
        repeated = np.ones(len(ids), dtype=np.bool_)
        repeated[np.unique(numbers, axis=0, return_index=True)[1]] = False
        tokens = replace(tokens, lengths=tuple([len(part.ids) for part in parts]), repeated=repeated)
    return text_input(text, granularity, spans, tokens, notes, truncation=cut_off)


def _cut(text: Text, features: Features) -> tuple[str, Ints]:
    """Return the granularity and the spans; token spans are determined later."""
    if not isinstance(features, str):
        return "spans", custom_spans(text, features)
    return features, np.empty((0, 3), dtype=np.int64) if features == "tokens" else cut(text, features)
