"""A prompt as a language model reads it, and the input that is made of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, TypeAlias

import numpy as np

from pertinent.array_types import Ints
from pertinent.config.fingerprints import digest
from pertinent.errors import InputError, safe_repr
from pertinent.inputs.base import Features
from pertinent.inputs.segmentation import GRANULARITIES, custom_spans, cut, default_features, long_text_notes
from pertinent.inputs.text import TextInput
from pertinent.inputs.tokens import Tokens
from pertinent.outputs.log_likelihoods import ANSWER, CONTRAST, SPAN

Unit: TypeAlias = Literal["", "sources", "messages", "slots"]

UNITS: tuple[Unit, ...] = ("sources", "messages", "slots")
"""Parts of a prompt that may be features."""


@dataclass(frozen=True)
class RenderedPrompt:
    """A prompt as a model reads it: strings that together are its text, and the answer.

    Attributes
    ----------
    segments
        The strings.
    parts
        The numbers of the segments that can be removed.
    unit
        What these are.
    alternatives
        For each of them, what it may be replaced by; empty if nothing was given.
    adds_special
        Whether the tokenizer adds its special tokens; a chat template has them already.
    answer, rather_than
        The answer, and the one that it is compared with; empty before the model has answered.
    span
        The part of the answer that is explained, if not the whole.
    answer_tokens
        The answer in pieces, one for each of its tokens.
    answer_ids
        The ids of these tokens, if the model wrote them; else those are found by the tokenizer.
    generation
        How the model found the answer; empty if the user gave it.
    """

    segments: tuple[str, ...]
    parts: tuple[int, ...]
    unit: Unit = ""
    alternatives: tuple[tuple[str, ...], ...] = ()
    adds_special: bool = True
    answer: str = ""
    rather_than: str | None = None
    span: str | None = None
    answer_tokens: tuple[str, ...] = ()
    answer_ids: tuple[int, ...] = ()
    generation: str = ""

    def removable(self, segment: int) -> bool:
        """Whether features of this segment may be removed."""
        return segment in self.parts

    @property
    def columns(self) -> tuple[str, ...]:
        """The contrast or the span, if there is one, the whole answer, and each of its tokens."""
        names = [ANSWER]
        if self.first_token > 1:
            names.insert(0, CONTRAST if self.span is None else SPAN)
        for piece in self.answer_tokens:
            name = piece.strip() or repr(piece)[1:-1] or "…"  # some of the bytes of a character
            times = 1 + sum(known == name or known.startswith(f"{name} (") for known in names)
            names.append(name if times == 1 else f"{name} ({times})")
        return tuple(names)

    @property
    def details(self) -> dict[str, str]:
        """The answers, and how the model found its own."""
        found = {"answer": self.answer}
        if self.rather_than is not None:
            found["rather than"] = self.rather_than
        if self.span is not None:
            found["span"] = self.span
        return found | ({"generation": self.generation} if self.generation else {})

    @property
    def first_token(self) -> int:
        """The number of the column of the answer's first token."""
        return 1 if self.rather_than is None and self.span is None else 2

    @property
    def span_tokens(self) -> tuple[int, int]:
        """The first token of the span, and the one after its last, by number; (0, 0) if there is no span."""
        if self.span is None:
            return 0, 0
        start = self.answer.find(self.span)
        if start < 0:
            answer, span = safe_repr(self.answer), safe_repr(self.span)
            raise InputError(f"`span` must be a part of the answer {answer}, but is {span}.")
        ends = np.cumsum([len(piece) for piece in self.answer_tokens])
        first = int(np.searchsorted(ends, start, side="right"))
        return first, int(np.searchsorted(ends, start + len(self.span), side="left")) + 1

    def spans(self, granularity: str) -> Ints:
        """The (segment, start, end) spans of the removable features."""
        if granularity not in UNITS:
            return cut(self, granularity)
        if granularity != self.unit:
            raise InputError(f"The prompt has no {granularity}: choose {', '.join(GRANULARITIES)}.")
        return np.array([(own, 0, len(self.segments[own])) for own in self.parts], dtype=np.int64)


@dataclass(frozen=True, eq=False)
class PromptInput(TextInput):
    """A prompt, the answer to explain, and the character spans of its features."""

    text: RenderedPrompt  # type: ignore[assignment]  # which has the segments of a text, and an answer
    kind: ClassVar[str] = "prompt"

    def _coarsest(self) -> Ints:
        """The spans of sources, messages or slots, if there are several; else as of a text."""
        several = self.text.unit and len(self.text.parts) > 1
        return self.text.spans(self.text.unit) if several else super()._coarsest()

    def with_segments(self, segments: Sequence[str]) -> RenderedPrompt:
        """The prompt with other strings."""
        return replace(self.text, segments=tuple(segments))


def prompt_input(
    prompt: RenderedPrompt, granularity: str, spans: Ints, tokens: Tokens | None, notes: tuple[str, ...] = ()
) -> PromptInput:
    """Make an input from a prompt and its spans; features are named by the characters they cover."""
    names = tuple([prompt.segments[i][a:b] for i, a, b in spans.tolist()])
    content: list[object] = [
        prompt.segments,
        prompt.parts,
        prompt.answer,
        prompt.rather_than,
        granularity,
        None if tokens is None else tokens.ids,
    ]
    if prompt.alternatives:
        content.append(prompt.alternatives)
    if prompt.span is not None:
        content.append(prompt.span_tokens)
    if granularity == "spans":
        content.append(spans)
    return PromptInput(prompt, names, granularity, notes, digest(*content), prompt, spans, tokens)


def cut_prompt(prompt: RenderedPrompt, features: Features | None) -> tuple[str, Ints, tuple[str, ...]]:
    """The granularity, its spans and notes; of tokens the spans are known once the prompt is tokenised."""
    notes: tuple[str, ...] = ()
    if features is None and prompt.unit in ("sources", "slots"):
        features = prompt.unit
    elif features is None:
        n_words = len(prompt.spans("words"))
        features = default_features(n_words)
        notes = long_text_notes(features, n_words)
    if not isinstance(features, str):
        return "spans", custom_spans(prompt, features), notes
    if features == "tokens":
        return features, np.empty((0, 3), dtype=np.int64), notes
    return features, prompt.spans(features), notes
