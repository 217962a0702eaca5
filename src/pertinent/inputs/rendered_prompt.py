"""Prompts as a language model reads them, and their inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

from pertinent.array_types import Array, Ints, Masks
from pertinent.config.fingerprints import digest
from pertinent.errors import InputError, safe_repr
from pertinent.inputs.base import Features
from pertinent.inputs.chat_messages import fill_messages
from pertinent.inputs.prompt_parts import feature_name
from pertinent.inputs.segmentation import (
    GRANULARITIES,
    custom_spans,
    cut,
    default_features,
    long_text_notes,
    span_rows,
)
from pertinent.inputs.text import Text, TextInput
from pertinent.inputs.tokens import Tokens
from pertinent.outputs.log_likelihoods import ANSWER, CONTRAST, SPAN
from pertinent.printable import shorten

Unit: TypeAlias = Literal["", "sources", "messages", "slots", "parts"]

UNITS: tuple[Unit, ...] = ("sources", "messages", "slots", "parts")
"""Units of removable segments, which may be features."""


@dataclass(frozen=True)
class RenderedPrompt:
    """A prompt as a model reads it, divided into strings, and the answer.

    Attributes
    ----------
    segments
        The strings, whose concatenation is the prompt.
    parts
        The indices of the removable segments.
    unit
        The unit of the removable segments.
    alternatives
        For each removable segment, the texts that may replace it; empty without alternatives.
    adds_special
        Whether the tokenizer adds its special tokens; a chat template contains them already.
    answer, rather_than
        The answer, and the answer that it is contrasted with; empty before the model has answered.
    span
        The explained part of the answer; ``None`` for the whole answer.
    answer_tokens
        The text of each token of the answer.
    answer_ids
        The ids of these tokens if the model generated them; otherwise the tokenizer computes them.
    generation
        A description of the decoding; empty for an answer of the user.
    held
        The indices of the segments that are held fixed by `Prompt.fixed` or by default.
    template
        The indices of the segments that a chat template adds.
    frame
        The messages of a chat as JSON, with the indices of segments instead of texts; empty if the prompt is
        sent as a text.
    answer_seed
        The seed of a sampled answer; ``None`` for a greedy one.
    notes
        Facts about the prompt for the explanation's notes.
    tools
        The tools that the model can call as JSON; empty without tools, or if a chat template describes them.
    names
        For each removable segment, the name of its part of a trace; empty without such names.
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
    held: tuple[int, ...] = ()
    template: tuple[int, ...] = ()
    frame: str = ""
    answer_seed: int | None = None
    notes: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    tools: str = ""

    @property
    def messages(self) -> list[dict[str, Any]]:
        """Return the messages of the chat; a text is one message of the user."""
        if self.frame:
            return fill_messages(self.frame, self.segments)
        return [{"role": "user", "content": "".join(self.segments)}]

    def removable(self, segment: int) -> bool:
        """Return whether features of this segment may be removed."""
        return segment in self.parts

    @property
    def held_texts(self) -> list[str]:
        """Return the texts that are held fixed by `Prompt.fixed` or by default."""
        return [text for i in self.held if (text := self.segments[i].strip())]

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns: the contrast or span if there is one, the whole answer, and each token."""
        names = [ANSWER]
        if self.first_token > 1:
            names.insert(0, CONTRAST if self.span is None else SPAN)
        for piece in self.answer_tokens:
            name = piece.strip() or repr(piece)[1:-1] or "…"  # incomplete bytes of a character
            times = 1 + sum(other == name or other.startswith(f"{name} (") for other in names)
            names.append(name if times == 1 else f"{name} ({times})")
        return tuple(names)

    @property
    def details(self) -> dict[str, str]:
        """Answers, and the decoding of a generated one."""
        details = {"answer": self.answer}
        if self.rather_than is not None:
            details["rather than"] = self.rather_than
        if self.span is not None:
            details["span"] = self.span
        return details | ({"generation": self.generation} if self.generation else {})

    @property
    def first_token(self) -> int:
        """Index of the column of the answer's first token."""
        return 1 if self.rather_than is None and self.span is None else 2

    @property
    def span_tokens(self) -> tuple[int, int]:
        """Start and end token of the span; (0, 0) without a span."""
        if self.span is None:
            return 0, 0
        start = self.answer.find(self.span)
        if start < 0:
            answer, span = safe_repr(self.answer), safe_repr(self.span)
            raise InputError(f"`span` must be a part of the answer {answer}, got {span}.")
        ends = np.cumsum([len(piece) for piece in self.answer_tokens])
        first = int(np.searchsorted(ends, start, side="right"))
        return first, int(np.searchsorted(ends, start + len(self.span), side="left")) + 1

    def locate(self, spans: Any, name: str) -> list[list[tuple[int, int, int]]]:
        """Return the rows (segment, start, end) of each span (start, end) of the prompt's characters.

        A span has a row for each segment that it overlaps with more than spaces.
        """
        located = []
        for _, start, end in span_rows(Text("".join(self.segments)), spans, name).tolist():
            rows, first = [], 0
            for i, segment in enumerate(self.segments):
                a, b = max(0, start - first), min(len(segment), end - first)
                if segment[a : max(a, b)].strip():
                    rows.append((i, a, b))
                first += len(segment)
            located.append(rows)
        return located

    def counts_characters(self, spans: Array) -> bool:
        """Return whether spans (start, end) count the characters of all segments."""
        return not self.unit and len(self.segments) > 1 and spans.ndim == 2 and spans.shape[1] == 2

    def spans(self, granularity: str) -> Ints:
        """Return the (segment, start, end) spans of the removable features."""
        if granularity not in UNITS:
            return cut(self, granularity)
        if granularity != self.unit:
            raise InputError(f"The prompt has no {granularity}: choose {', '.join(GRANULARITIES)}.")
        return np.array([(part, 0, len(self.segments[part])) for part in self.parts], dtype=np.int64)


@dataclass(frozen=True, eq=False)
class PromptInput(TextInput):
    """A prompt with the answer to explain, and the character spans of its features."""

    text: RenderedPrompt  # type: ignore[assignment]  # has the segments of a text, and an answer
    kind: ClassVar[str] = "prompt"

    def _coarsest(self) -> Ints:
        """Return the spans of sources, messages or slots if there are several; else those of a text."""
        several = self.text.unit and len(self.text.parts) > 1
        return self.text.spans(self.text.unit) if several else super()._coarsest()

    @property
    def remarks(self) -> tuple[str, ...]:
        """Return a note on the part of the prompt that is held fixed, if any."""
        held = " … ".join(" ".join(text.split()) for text in self.text.held_texts)
        return (f"Held fixed: “{shorten(held, 80)}” (fixed='none' explains it too).",) if held else ()

    @property
    def names_of_parts(self) -> tuple[str, ...]:
        """Return the name of each feature that is a part of a trace; empty for other features."""
        return self.text.names if self.granularity == "parts" else ()

    @property
    def search_text(self) -> str:
        """Return the whole prompt."""
        return "".join(self.text.segments)

    def match_annotation(self, annotation: Array) -> Masks | None:
        """Return the features that share a character with a span of the prompt."""
        if annotation.dtype.kind in "iu" and self.text.counts_characters(annotation):
            rows = [row for rows in self.text.locate(annotation, "annotations") for row in rows]
            annotation = np.array(rows, dtype=np.int64).reshape(-1, 3)
        return (
            super().match_annotation(annotation) if len(annotation) else np.zeros(self.n_features, np.bool_)
        )

    def with_segments(self, segments: Sequence[str]) -> RenderedPrompt:
        """Return the prompt with other strings."""
        return replace(self.text, segments=tuple(segments))


def prompt_input(
    prompt: RenderedPrompt, granularity: str, spans: Ints, tokens: Tokens | None, notes: tuple[str, ...] = ()
) -> PromptInput:
    """Return the input of a prompt and its spans; features are named by their characters.

    Parts of a trace are named by their kind and the beginning of their characters.
    """
    names = tuple([prompt.segments[i][a:b] for i, a, b in spans.tolist()])
    if prompt.names and granularity == "parts":
        names = tuple(map(feature_name, prompt.names, names))
    content: list[object] = [
        prompt.segments,
        prompt.parts,
        prompt.answer,
        prompt.rather_than,
        granularity,
        None if tokens is None else tokens.ids,
    ]
    if prompt.frame:
        content += [prompt.frame, prompt.tools] if prompt.tools else [prompt.frame]
    if prompt.alternatives:
        content.append(prompt.alternatives)
    if prompt.span is not None:
        content.append(prompt.span_tokens)
    if granularity == "spans":
        content.append(spans)
    return PromptInput(prompt, names, granularity, notes, digest(*content), prompt, spans, tokens)


def cut_prompt(prompt: RenderedPrompt, features: Features | None) -> tuple[str, Ints, tuple[str, ...]]:
    """Return the granularity, the spans of its features and notes; tokens have no spans yet."""
    notes = prompt.notes
    if features is None and prompt.unit in ("sources", "slots", "parts"):
        features = prompt.unit
    elif features is None:
        n_words = len(prompt.spans("words"))
        n_sentences = len(prompt.spans("sentences")) if prompt.held else 1
        features = default_features(n_words, n_sentences)
        notes = (*notes, *long_text_notes(features, n_words))
    if not isinstance(features, str):
        return "spans", _custom_spans(prompt, features), notes
    if features == "tokens":
        return features, np.empty((0, 3), dtype=np.int64), notes
    return features, prompt.spans(features), notes


def _custom_spans(prompt: RenderedPrompt, features: Features) -> Ints:
    """Return custom spans as rows of (segment, start, end); those of a text count its characters."""
    try:
        spans = np.asarray(features)
    except ValueError:  # not rectangular, which `custom_spans` reports
        return custom_spans(prompt, features)
    if not prompt.counts_characters(spans):
        return custom_spans(prompt, features)
    located = prompt.locate(spans, "features")
    for span, rows in zip(spans.tolist(), located, strict=True):
        if len(rows) > 1 or not all(prompt.removable(row[0]) for row in rows):
            raise InputError(
                f"The span {tuple(span)} in `features` overlaps a part of the prompt that is held fixed: "
                "pass Prompt(…, fixed='none')."
            )
    return custom_spans(prompt, [row for rows in located for row in rows])
