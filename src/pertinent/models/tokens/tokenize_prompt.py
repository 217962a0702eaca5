"""Tokenization of a prompt and its answer, and the tokens of each feature."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from pertinent.array_types import Ints
from pertinent.errors import InputError, safe_repr
from pertinent.inputs.base import Features
from pertinent.inputs.rendered_prompt import PromptInput, RenderedPrompt, cut_prompt, prompt_input
from pertinent.inputs.tokens import Tokens
from pertinent.models.tokens.token_owners import assign_tokens, token_spans


@dataclass(frozen=True)
class EncodedText:
    """Token ids and the characters (start, end) of each token; (−1, −1) for special tokens."""

    ids: Ints
    offsets: Ints

    @classmethod
    def from_text(cls, text: str, tokenizer: Any, *, adds_special: bool, ends: bool = False) -> EncodedText:
        """Tokenize a text; special tokens at its end are dropped unless `ends`."""
        encoding = tokenizer(text, add_special_tokens=adds_special, verbose=False).encodings[0]
        is_special = np.array([segment is None for segment in encoding.sequence_ids], dtype=np.bool_)
        plain = np.flatnonzero(~is_special)
        n = plain[-1] + 1 if len(plain) and not ends else len(encoding.ids)
        offsets = np.array(encoding.offsets[:n], dtype=np.int64).reshape(-1, 2)
        offsets[is_special[:n]] = -1
        return cls(np.array(encoding.ids[:n], dtype=np.int64), offsets)


def prompt_tokens(prompt: RenderedPrompt, tokenizer: Any, *, ends: bool = False) -> EncodedText:
    """Return the tokens of a prompt without its answer."""
    text = "".join(prompt.segments)
    return EncodedText.from_text(text, tokenizer, adds_special=prompt.adds_special, ends=ends)


def answer_tokens(
    prompt: RenderedPrompt, before: EncodedText | None, answer: str, tokenizer: Any
) -> EncodedText:
    """Return the tokens of an answer when prompt and answer are tokenized together.

    The answer is tokenized separately if a decoder reads it (`before` is ``None``), or if the tokenizer would
    merge the end of the prompt with the start of the answer, because the model reads the prompt before it
    answers.
    """
    encoded = None
    if before is not None:
        text, n = "".join(prompt.segments), len(before.ids)
        together = EncodedText.from_text(text + answer, tokenizer, adds_special=prompt.adds_special)
        if len(together.ids) > n and np.array_equal(together.ids[:n], before.ids):
            encoded = EncodedText(together.ids[n:], np.maximum(together.offsets[n:] - len(text), 0))
    encoded = encoded or EncodedText.from_text(answer, tokenizer, adds_special=False)
    if not len(encoded.ids):
        raise InputError(f"The tokenizer finds no tokens in the answer {safe_repr(answer)}.")
    unknown = np.flatnonzero(encoded.ids == tokenizer.unk_token_id)
    if len(unknown):
        start, end = encoded.offsets[unknown[0]]
        raise InputError(
            f"The tokenizer cannot encode {safe_repr(answer[start:end])} in the answer {safe_repr(answer)}, "
            "so the model can never write it. Pass an answer in the model's vocabulary."
        )
    return encoded


def generated_tokens(prompt: RenderedPrompt, before: EncodedText | None, tokenizer: Any) -> EncodedText:
    """Return the tokens of an answer written by the model, each with the characters that it adds."""
    earlier = [] if before is None else before.ids.tolist()
    ids = [*earlier, *prompt.answer_ids]
    lengths = [len(decode_text(ids[:n], tokenizer)) for n in range(len(earlier), len(ids) + 1)]
    ends = np.maximum.accumulate(np.array(lengths) - lengths[0]).clip(0, len(prompt.answer))
    return EncodedText(np.array(prompt.answer_ids, dtype=np.int64), np.column_stack([ends[:-1], ends[1:]]))


def decode_text(ids: Sequence[int], tokenizer: Any) -> str:
    """Return the text of tokens, without special tokens."""
    return str(tokenizer.decode(list(ids), skip_special_tokens=True))


def split_answer(answer: str, tokens: EncodedText) -> tuple[str, ...]:
    """Return the answer split into one string per token."""
    ends = np.maximum.accumulate(tokens.offsets[:, 1])
    ends[-1] = len(answer)
    return tuple(answer[start:end] for start, end in pairwise([0, *ends.tolist()]))


def tokenize_prompt(
    prompt: RenderedPrompt, features: Features | None, tokenizer: Any, max_length: int, *, has_decoder: bool
) -> PromptInput:
    """Tokenize a prompt with its answer, and assign the tokens to features.

    If the model `has_decoder`, the answer does not follow the tokens of the prompt.
    """
    before = prompt_tokens(prompt, tokenizer, ends=has_decoder)
    earlier = None if has_decoder else before
    if prompt.answer_ids:
        answers = [generated_tokens(prompt, earlier, tokenizer)]
    else:
        answers = [answer_tokens(prompt, earlier, prompt.answer, tokenizer)]
    prompt = replace(prompt, answer_tokens=split_answer(prompt.answer, answers[0]))
    if prompt.rather_than is not None:
        answers.append(answer_tokens(prompt, earlier, prompt.rather_than, tokenizer))
    n_answer = max(len(answer.ids) for answer in answers)
    check_length(len(before.ids), n_answer, max_length, has_decoder=has_decoder)
    granularity, spans, notes = cut_prompt(prompt, features)
    char_spans = _char_spans_in_segments(prompt, before)
    if granularity == "tokens":
        spans, owners = token_spans(np.arange(len(char_spans))[:, None], char_spans, char_spans[:, 0] >= 0)
    else:
        spans, owners = assign_tokens(spans, char_spans, gaps=granularity != "spans")
    if not len(spans):
        raise InputError(
            "No token of the prompt can be removed: the tokenizer finds no tokens in its segments."
        )
    if (before.ids[owners >= 0] == tokenizer.unk_token_id).all():
        raise InputError("Every token of the prompt is unknown to the tokenizer.")
    tokens = _join_answers(before, owners, answers, tokenizer, has_decoder=has_decoder)
    tokens = replace(tokens, span=prompt.span_tokens)
    if prompt.alternatives and granularity == "slots":
        variants = _tokenize_alternatives(prompt, before, owners, tokenizer, ends=has_decoder)
        added = [max(map(len, ids)) - int((owners == slot).sum()) for slot, ids in enumerate(variants)]
        n_prompt = len(before.ids) + sum(n for n in added if n > 0)
        check_length(n_prompt, n_answer, max_length, has_decoder=has_decoder)
        tokens = replace(tokens, variants=variants)
    return prompt_input(prompt, granularity, spans, tokens, notes)


def _tokenize_alternatives(
    prompt: RenderedPrompt, before: EncodedText, owners: Ints, tokenizer: Any, *, ends: bool
) -> tuple[tuple[Ints, ...], ...]:
    """Return the tokens of each slot's alternatives, in the slot's context."""
    variants: list[tuple[Ints, ...]] = []
    for slot, (part, alternatives) in enumerate(zip(prompt.parts, prompt.alternatives, strict=True)):
        indices = np.flatnonzero(owners == slot)
        first = indices[0]
        head, tail = before.ids[:first], before.ids[indices[-1] + 1 :]
        tokenized = []
        for alternative in alternatives:
            segments = (*prompt.segments[:part], alternative, *prompt.segments[part + 1 :])
            ids = prompt_tokens(replace(prompt, segments=segments), tokenizer, ends=ends).ids
            end = len(ids) - len(tail)
            if end <= first or not (np.array_equal(ids[:first], head) and np.array_equal(ids[end:], tail)):
                raise InputError(
                    f"The tokenizer merges the alternative {safe_repr(alternative)} with the text around its "
                    "slot: make each slot a whole word."
                )
            if (ids[first:end] == tokenizer.unk_token_id).any():
                raise InputError(f"The tokenizer cannot encode the alternative {safe_repr(alternative)}.")
            tokenized.append(ids[first:end])
        variants.append(tuple(tokenized))
    return tuple(variants)


def check_length(n_prompt: int, n_answer: int, max_length: int, *, has_decoder: bool) -> None:
    """Raise an `InputError` if a prompt and its answer have more tokens than the model can read."""
    if (max(n_prompt, n_answer) if has_decoder else n_prompt + n_answer) > max_length:
        raise InputError(
            f"The prompt has {n_prompt:,} tokens and the answer {n_answer:,}, but the model reads at most "
            f"{max_length:,}: shorten the prompt or omit sources."
        )


def _join_answers(
    before: EncodedText, owners: Ints, answers: Sequence[EncodedText], tokenizer: Any, *, has_decoder: bool
) -> Tokens:
    """Return the tokens of prompt and answer, for each answer; a decoder's answers stay separate."""
    mask_id, pad_id = getattr(tokenizer, "mask_token_id", None), tokenizer.pad_token_id
    if has_decoder:
        ids, types = before.ids, np.zeros_like(before.ids)
        return Tokens(ids, types, owners, mask_id, pad_id, answers=tuple(answer.ids for answer in answers))
    n = len(before.ids)
    ids = np.concatenate([ids for answer in answers for ids in (before.ids, answer.ids)])
    feature = np.concatenate([part for answer in answers for part in (owners, np.full(len(answer.ids), -1))])
    scored = np.concatenate([np.arange(n + len(answer.ids)) >= n for answer in answers])
    tokens = Tokens(ids, np.zeros_like(ids), feature, mask_id, pad_id, scored=scored)
    if len(answers) == 1:
        return tokens
    lengths = tuple(n + len(answer.ids) for answer in answers)
    return replace(tokens, lengths=lengths, repeated=~scored & (np.arange(len(ids)) >= lengths[0]))


def _char_spans_in_segments(prompt: RenderedPrompt, before: EncodedText) -> Ints:
    """Return the characters of each token as (segment, start, end).

    A token belongs to the first removable segment that shares a character with it; −1 if there is none.
    """
    bounds = np.cumsum([0, *map(len, prompt.segments)])
    start, end = before.offsets.T
    segments = np.full(len(before.ids), -1)
    for part in prompt.parts[::-1]:
        shares = (start < bounds[part + 1]) & (np.maximum(end, start + 1) > bounds[part]) & (start >= 0)
        segments[shares] = part
    first, last = bounds[segments], bounds[segments + 1]
    char_spans = np.clip(before.offsets, first[:, None], last[:, None]) - first[:, None]
    return np.column_stack([segments, char_spans])
