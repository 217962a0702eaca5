"""Prompts of a language model: a text, a question with its sources, or the messages of a chat."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

from pertinent.array_types import Ints
from pertinent.digests import digest
from pertinent.errors import InputError, shown
from pertinent.inputs.base import Features
from pertinent.inputs.modality import Modality, modalities, split_collection
from pertinent.inputs.text import GRANULARITIES, TextInput, Tokens, cut

Message: TypeAlias = Mapping[str, str]
Unit: TypeAlias = Literal["", "sources", "messages"]

CONTRAST, ANSWER = "contrast", "answer"
"""The names of the columns that are about the whole answer."""

_MARK = "\ue000{}\ue001"
"""Stands for a message while a chat template is applied; private characters, so that no message has it."""


@dataclass(frozen=True)
class Prompt:
    r"""A prompt, and the answer to explain.

    Parameters
    ----------
    text
        The prompt; with sources, the question about them, which is never removed.
    sources
        Texts that the question is about, such as retrieved documents. They alone can be removed.
    messages
        The messages of a chat in place of a text, each with a role and a content. The contents can be
        removed; what the tokenizer's chat template adds to them cannot.
    answer
        The answer whose log-likelihood is explained, exactly as it follows the prompt: most models write a
        space first. By default the model's own greedy answer.
    rather_than
        Another answer. The contrast log p(answer) − log p(rather_than) is then explained by default.
    template
        How sources and question are put together.
    separator
        What stands between two sources.

    Examples
    --------
    >>> Prompt("Who won?", sources=["Ada won.", "Bob lost."]).rendered().segments
    ('Ada won.', '\n\n', 'Bob lost.', '\n\nWho won?')
    """

    text: str = ""
    sources: Sequence[str] = ()
    messages: Sequence[Message] = ()
    answer: str | None = None
    rather_than: str | None = None
    template: str = "{sources}\n\n{text}"
    separator: str = "\n\n"

    def __post_init__(self) -> None:
        """Check what was given."""
        for name in ("text", "template", "separator"):
            _expect_text(getattr(self, name), name)
        if isinstance(self.sources, str):
            raise InputError("`sources` must be a list of texts, but got one text: give [text].")
        object.__setattr__(self, "sources", tuple(self.sources))
        object.__setattr__(self, "messages", tuple(self.messages))
        self._check_parts()
        if bool(self.messages) == bool(self.text.strip()):
            raise InputError("A prompt must be a text or messages that are not empty: give one of them.")
        if self.messages and self.sources:
            raise InputError("Sources go with a text: put them into the contents of the messages instead.")
        if self.answer is not None and self.answer == self.rather_than:
            raise InputError("`rather_than` must be another answer, but it is the same as `answer`.")

    def _check_parts(self) -> None:
        for name in ("answer", "rather_than"):
            if getattr(self, name) is not None:
                _expect_text(getattr(self, name), name, blank=False)
        for source in self.sources:
            _expect_text(source, "sources", blank=False)
        for message in self.messages:
            _expect_message(message)
        for field in ("{sources}", "{text}") if self.sources else ():
            if self.template.count(field) != 1:
                raise InputError(f"`template` must hold {field} once, but is {shown(self.template)}.")

    @classmethod
    def of(cls, raw: Any) -> Prompt:
        """The prompt of whatever the user gave: a prompt or a text."""
        if isinstance(raw, Prompt):
            return raw
        if isinstance(raw, str):
            return cls(raw)
        raise InputError(
            f"A language model reads a text or a pertinent.Prompt(…, answer=…), but got {type(raw).__name__}."
        )

    def rendered(self, chat: Callable[[list[dict[str, str]]], str] | None = None) -> RenderedPrompt:
        """The prompt as the model reads it; `chat` puts messages into the template of a chat."""
        if self.messages:
            return self._of_messages(chat)
        if not self.sources:
            return RenderedPrompt((self.text,), (0,), answer=self.answer or "", rather_than=self.rather_than)
        before, _, rest = self.template.partition("{sources}")
        pieces = [before.replace("{text}", self.text)]
        for number, source in enumerate(self.sources):
            pieces += [self.separator, source] if number else [source]
        return self._joined([*pieces, rest.replace("{text}", self.text)], "sources")

    def _of_messages(self, chat: Callable[[list[dict[str, str]]], str] | None) -> RenderedPrompt:
        if chat is None:
            raise InputError(
                "The tokenizer has no chat template, so messages have no form: give the prompt as a text."
            )
        marks = [_MARK.format(number) for number in range(len(self.messages))]
        rest = chat([{**own, "content": mark} for own, mark in zip(self.messages, marks, strict=True)])
        pieces: list[str] = []
        for mark in marks:
            before, found, rest = rest.partition(mark)
            if not found:
                raise InputError("The chat template leaves out a message, or changes their order.")
            pieces += [before, ""]
        pieces.append(rest)
        whole = chat([dict(own) for own in self.messages])
        contents = [own["content"] for own in self.messages]
        for form in (contents, [own.strip() for own in contents]):  # many templates strip contents
            pieces[1::2] = form
            if "".join(pieces) == whole:
                return replace(self._joined(pieces, "messages"), adds_special=False)
        raise InputError(
            "The chat template changes what the messages say, so it is not known which tokens are theirs: "
            "give the prompt as a text."
        )

    def _joined(self, pieces: Sequence[str], unit: Unit) -> RenderedPrompt:
        """Fixed pieces at even places, removable ones at odd places; empty ones are left out."""
        kept = [(piece, number % 2 == 1) for number, piece in enumerate(pieces) if piece]
        parts = tuple(place for place, (_, removable) in enumerate(kept) if removable)
        segments = tuple(piece for piece, _ in kept)
        return RenderedPrompt(segments, parts, unit, answer=self.answer or "", rather_than=self.rather_than)


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
    adds_special
        Whether the tokenizer adds its special tokens; a chat template has them already.
    answer, rather_than
        The answer, and the one that it is compared with; empty before the model has answered.
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
    adds_special: bool = True
    answer: str = ""
    rather_than: str | None = None
    answer_tokens: tuple[str, ...] = ()
    answer_ids: tuple[int, ...] = ()
    generation: str = ""

    def removable(self, segment: int) -> bool:
        """Whether features of this segment may be removed."""
        return segment in self.parts

    @property
    def columns(self) -> tuple[str, ...]:
        """The contrast, if there is one, the whole answer, and each of its tokens."""
        names = [CONTRAST, ANSWER] if self.rather_than is not None else [ANSWER]
        for piece in self.answer_tokens:
            name = piece.strip() or repr(piece)[1:-1] or "…"  # some of the bytes of a character
            times = 1 + sum(known == name or known.startswith(f"{name} (") for known in names)
            names.append(name if times == 1 else f"{name} ({times})")
        return tuple(names)

    @property
    def first_token(self) -> int:
        """The number of the column of the answer's first token."""
        return 1 if self.rather_than is None else 2

    def spans(self, granularity: str) -> Ints:
        """The (segment, start, end) spans of the removable features."""
        if granularity not in ("sources", "messages"):
            return cut(self, granularity)
        if granularity != self.unit:
            raise InputError(f"The prompt has no {granularity}: choose {', '.join(GRANULARITIES)}.")
        return np.array([(own, 0, len(self.segments[own])) for own in self.parts], dtype=np.int64)


@dataclass(frozen=True, eq=False)
class PromptInput(TextInput):
    """A prompt, the answer to explain, and the character spans of its features."""

    text: RenderedPrompt  # type: ignore[assignment]  # which has the segments of a text, and an answer
    kind: ClassVar[str] = "prompt"


def prompt_input(
    prompt: RenderedPrompt, granularity: str, spans: Ints, tokens: Tokens, notes: tuple[str, ...] = ()
) -> PromptInput:
    """Make an input from a prompt and its spans; features are named by the characters they cover."""
    names = tuple([prompt.segments[i][a:b] for i, a, b in spans.tolist()])
    content = [prompt.segments, prompt.parts, prompt.answer, prompt.rather_than, granularity, tokens.ids]
    if granularity == "spans":
        content.append(spans)
    return PromptInput(prompt, names, granularity, notes, digest(*content), prompt, spans, tokens)


@modalities.register("prompt")
@dataclass(frozen=True)
class PromptModality(Modality):
    """Prompts of language models."""

    summary = "a prompt of a language model, and its answer"
    input_type = PromptInput
    features = "words"
    aligned = False
    precedence = 1
    default_removal = "slice-out"
    fixed_baseline = "zero-vector"
    drawn_baseline = "random-token"
    drawing = "pertinent.report.drawings.prompt:PromptDrawing"

    def recognises(self, raw: Any) -> bool:
        """A `Prompt`."""
        return isinstance(raw, Prompt | RenderedPrompt)

    def split(self, raw: Any) -> Iterable[Any] | None:
        """The prompts in a collection."""
        return None if isinstance(raw, Prompt | RenderedPrompt | str) else split_collection(raw, ())

    def prepare(self, raw: Any, features: Features | None = None) -> PromptInput:
        """Raise an error: only a language model reads prompts."""
        raise InputError(
            "A Prompt is for a generative language model, wrap((model, tokenizer)), but this model is none: "
            "give a text."
        )


def _expect_text(value: Any, name: str, *, blank: bool = True) -> None:
    if not isinstance(value, str):
        raise InputError(f"`{name}` must be text, but got {type(value).__name__}.")
    if not blank and not value.strip():
        raise InputError(f"`{name}` is empty or blank: there is nothing to explain.")


def _expect_message(message: Any) -> None:
    fine = isinstance(message, Mapping) and all(
        isinstance(message.get(key), str) for key in ("role", "content")
    )
    if not fine:
        raise InputError(f"A message must be {{'role': …, 'content': …}} of texts, but got {shown(message)}.")
