"""Tokenising a prompt with its answer, and finding the tokens of each feature."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from pertinent.array_types import Ints, Masks
from pertinent.errors import InputError, safe_repr
from pertinent.inputs.base import Features
from pertinent.inputs.rendered_prompt import PromptInput, RenderedPrompt, cut_prompt, prompt_input
from pertinent.inputs.tokens import Tokens


@dataclass(frozen=True)
class EncodedText:
    """Token ids, and the characters (start, end) that each token covers; (−1, −1) of a special one."""

    ids: Ints
    places: Ints

    @classmethod
    def from_text(cls, text: str, tokenizer: Any, *, adds_special: bool, ends: bool = False) -> EncodedText:
        """The tokens of a text; unless it `ends`, special tokens at its end are left out."""
        found = tokenizer(text, add_special_tokens=adds_special, verbose=False).encodings[0]
        own = [i for i, sequence in enumerate(found.sequence_ids) if sequence is not None]
        n = own[-1] + 1 if own and not ends else len(found.ids)
        places = np.array(found.offsets[:n], dtype=np.int64).reshape(-1, 2)
        places[[sequence is None for sequence in found.sequence_ids[:n]]] = -1
        return cls(np.array(found.ids[:n], dtype=np.int64), places)


def prompt_tokens(prompt: RenderedPrompt, tokenizer: Any, *, ends: bool = False) -> EncodedText:
    """The tokens of a prompt without its answer."""
    return EncodedText.from_text(
        "".join(prompt.segments), tokenizer, adds_special=prompt.adds_special, ends=ends
    )


def answer_tokens(
    prompt: RenderedPrompt, before: EncodedText | None, answer: str, tokenizer: Any
) -> EncodedText:
    """The tokens of an answer, as they are if prompt and answer are tokenised together.

    Where the tokenizer would merge the end of the prompt with the beginning of the answer, and where nothing
    is read before the answer, it is tokenised alone: the model has read the prompt before it answers.
    """
    if before is None:
        return _spelt(EncodedText.from_text(answer, tokenizer, adds_special=False), answer, tokenizer)
    text, n = "".join(prompt.segments), len(before.ids)
    together = EncodedText.from_text(text + answer, tokenizer, adds_special=prompt.adds_special)
    if len(together.ids) > n and np.array_equal(together.ids[:n], before.ids):
        found = EncodedText(together.ids[n:], np.maximum(together.places[n:] - len(text), 0))
    else:
        found = EncodedText.from_text(answer, tokenizer, adds_special=False)
    return _spelt(found, answer, tokenizer)


def _spelt(found: EncodedText, answer: str, tokenizer: Any) -> EncodedText:
    """The tokens of an answer, or an error if there are none or the tokenizer does not know one."""
    if not len(found.ids):
        raise InputError(f"The tokenizer finds no tokens in the answer {safe_repr(answer)}.")
    unspelt = np.flatnonzero(found.ids == tokenizer.unk_token_id)
    if len(unspelt):
        start, end = found.places[unspelt[0]]
        raise InputError(
            f"The tokenizer cannot spell {safe_repr(answer[start:end])} in the answer {safe_repr(answer)}: "
            "the model can never write it. Give an answer in the words of the model."
        )
    return found


def written_tokens(prompt: RenderedPrompt, before: EncodedText | None, tokenizer: Any) -> EncodedText:
    """The tokens of an answer that the model wrote, each with the characters that it adds."""
    earlier = [] if before is None else before.ids.tolist()
    ids = [*earlier, *prompt.answer_ids]
    lengths = [len(decoded(ids[:n], tokenizer)) for n in range(len(earlier), len(ids) + 1)]
    ends = np.maximum.accumulate(np.array(lengths) - lengths[0]).clip(0, len(prompt.answer))
    return EncodedText(np.array(prompt.answer_ids, dtype=np.int64), np.column_stack([ends[:-1], ends[1:]]))


def decoded(ids: Sequence[int], tokenizer: Any) -> str:
    """The text of tokens, without special ones."""
    return str(tokenizer.decode(list(ids), skip_special_tokens=True))


def pieces(answer: str, tokens: EncodedText) -> tuple[str, ...]:
    """The answer in pieces, one for each token; together they are the answer."""
    ends = np.maximum.accumulate(tokens.places[:, 1])
    ends[-1] = len(answer)
    return tuple(answer[start:end] for start, end in pairwise([0, *ends.tolist()]))


def tokenize_prompt(
    prompt: RenderedPrompt, features: Features | None, tokenizer: Any, max_length: int, *, apart: bool = False
) -> PromptInput:
    """Tokenise a prompt with its answer, and find the tokens of each feature.

    If the answer is read `apart`, by a decoder, it does not follow the tokens of the prompt.
    """
    before = prompt_tokens(prompt, tokenizer, ends=apart)
    earlier = None if apart else before
    if prompt.answer_ids:
        answers = [written_tokens(prompt, earlier, tokenizer)]
    else:
        answers = [answer_tokens(prompt, earlier, prompt.answer, tokenizer)]
    prompt = replace(prompt, answer_tokens=pieces(prompt.answer, answers[0]))
    if prompt.rather_than is not None:
        answers.append(answer_tokens(prompt, earlier, prompt.rather_than, tokenizer))
    n_answer = max(len(own.ids) for own in answers)
    check_room(len(before.ids), n_answer, max_length, apart=apart)
    granularity, spans, notes = cut_prompt(prompt, features)
    if granularity == "tokens":
        spans, owner = _each(prompt, before)
    else:
        spans, owner = _owners(prompt, spans, before, gaps=granularity != "spans")
    if not len(spans):
        raise InputError("No token of the prompt can be removed: the tokenizer finds no tokens in its parts.")
    if (before.ids[owner >= 0] == tokenizer.unk_token_id).all():
        raise InputError("Every token of the prompt is unknown to the tokenizer.")
    tokens = replace(_with_answers(before, owner, answers, tokenizer, apart=apart), span=prompt.span_tokens)
    if prompt.alternatives and granularity == "slots":
        variants = _variants(prompt, before, owner, tokenizer, ends=apart)
        more = [max(map(len, own)) - int((owner == slot).sum()) for slot, own in enumerate(variants)]
        n_most = len(before.ids) + sum(n for n in more if n > 0)
        check_room(n_most, n_answer, max_length, apart=apart)
        tokens = replace(tokens, variants=variants)
    return prompt_input(prompt, granularity, spans, tokens, notes)


def _variants(
    prompt: RenderedPrompt, before: EncodedText, owner: Ints, tokenizer: Any, *, ends: bool
) -> tuple[tuple[Ints, ...], ...]:
    """For each slot the tokens of its alternatives, as they are in the place of its own."""
    found: list[tuple[Ints, ...]] = []
    for feature, (part, others) in enumerate(zip(prompt.parts, prompt.alternatives, strict=True)):
        own = np.flatnonzero(owner == feature)
        first, after = own[0], len(owner) - own[-1] - 1
        made = []
        for other in others:
            segments = (*prompt.segments[:part], other, *prompt.segments[part + 1 :])
            ids = prompt_tokens(replace(prompt, segments=segments), tokenizer, ends=ends).ids
            end = len(ids) - after
            fits = np.array_equal(ids[:first], before.ids[:first]) and np.array_equal(
                ids[end:], before.ids[own[-1] + 1 :]
            )
            if end <= first or not fits:
                raise InputError(
                    f"The tokenizer joins the alternative {safe_repr(other)} with the text around its slot: "
                    "let slots be whole words."
                )
            if (ids[first:end] == tokenizer.unk_token_id).any():
                raise InputError(f"The tokenizer cannot spell the alternative {safe_repr(other)}.")
            made.append(ids[first:end])
        found.append(tuple(made))
    return tuple(found)


def check_room(n_prompt: int, n_answer: int, max_length: int, *, apart: bool) -> None:
    """Raise an error if a prompt and its answer have more tokens than the model reads."""
    if (max(n_prompt, n_answer) if apart else n_prompt + n_answer) > max_length:
        raise InputError(
            f"The prompt has {n_prompt:,} tokens and the answer {n_answer:,}, but the model reads "
            f"{max_length:,} at once: shorten the prompt, or leave out sources."
        )


def _with_answers(
    before: EncodedText, owner: Ints, answers: Sequence[EncodedText], tokenizer: Any, *, apart: bool
) -> Tokens:
    """The tokens of the prompt, followed by those of the answer unless these are apart; once for each."""
    mask_id, pad_id = getattr(tokenizer, "mask_token_id", None), tokenizer.pad_token_id
    if apart:
        ids = before.ids
        own_ids = tuple(own.ids for own in answers)
        return Tokens(ids, np.zeros_like(ids), owner, mask_id, pad_id, answers=own_ids)
    n = len(before.ids)
    ids = np.concatenate([ids for own in answers for ids in (before.ids, own.ids)])
    feature = np.concatenate([part for own in answers for part in (owner, np.full(len(own.ids), -1))])
    scored = np.concatenate([np.arange(n + len(own.ids)) >= n for own in answers])
    tokens = Tokens(ids, np.zeros_like(ids), feature, mask_id, pad_id, scored=scored)
    if len(answers) == 1:
        return tokens
    lengths = tuple(n + len(own.ids) for own in answers)
    return replace(tokens, lengths=lengths, repeated=~scored & (np.arange(len(ids)) >= lengths[0]))


def _bounds(prompt: RenderedPrompt) -> Ints:
    """Where each segment begins in the whole text, and where the last ends."""
    return np.cumsum([0, *map(len, prompt.segments)])


def _parts_of(prompt: RenderedPrompt, before: EncodedText) -> Ints:
    """The first removable segment that each token shares a character with, −1 if none."""
    bounds, found = _bounds(prompt), np.full(len(before.ids), -1)
    start, end = before.places.T
    for part in prompt.parts[::-1]:
        found[_shared(start, end, bounds[part], bounds[part + 1])] = part
    return found


def _shared(start: Ints, end: Ints, first: int, last: int) -> Masks:
    """Whether tokens share a character with a part; one without characters, whether it lies in it."""
    return np.asarray((start < last) & (np.maximum(end, start + 1) > first) & (start >= 0))


def _each(prompt: RenderedPrompt, before: EncodedText) -> tuple[Ints, Ints]:
    """The place of each removable token, and its number among them."""
    part, bounds = _parts_of(prompt, before), _bounds(prompt)
    own = np.flatnonzero(part >= 0)
    first, last = bounds[part[own]], bounds[part[own] + 1]
    places = np.clip(before.places[own], first[:, None], last[:, None]) - first[:, None]
    owner = np.full(len(part), -1)
    owner[own] = np.arange(len(own))
    return np.column_stack([part[own], places]), owner


def _owners(prompt: RenderedPrompt, spans: Ints, before: EncodedText, *, gaps: bool) -> tuple[Ints, Ints]:
    """The spans that have a token, and the span that each token belongs to, −1 if to none.

    A token belongs to the first span that it shares a character with. One in a gap of a removable segment
    belongs to the next span of the segment, or the last, if `gaps`, else to none.
    """
    part, bounds = _parts_of(prompt, before), _bounds(prompt)
    start, end = before.places.T
    owner = np.full(len(before.ids), -1)
    for segment in prompt.parts:
        mine = np.flatnonzero(spans[:, 0] == segment)
        tokens = np.flatnonzero(part == segment)
        if len(mine) and len(tokens):
            first, last = spans[mine, 1:].T + bounds[segment]
            after = np.searchsorted(last, start[tokens], side="right")
            found = np.minimum(after, len(mine) - 1)
            inside = _shared(start[tokens], end[tokens], first[found], last[found])
            owner[tokens] = mine[found] if gaps else np.where(inside, mine[found], -1)
    seen = np.unique(owner[owner >= 0])
    return spans[seen], np.where(owner >= 0, np.searchsorted(seen, owner), -1)
