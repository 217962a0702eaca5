"""Prompts of a language model: a text, a template, a question with its sources, or the messages of a chat."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from string import Formatter
from typing import Any, TypeAlias

from pertinent.config.serialization import decode
from pertinent.errors import InputError, SettingError, safe_repr, unknown
from pertinent.inputs.base import Features
from pertinent.inputs.modality import InputLimits, Modality, TextColumns, modalities, split_collection
from pertinent.inputs.rendered_prompt import PromptInput, RenderedPrompt, Unit

Message: TypeAlias = Mapping[str, str]

_MARK = "\ue000{}\ue001"
"""Stands for a message while a chat template is applied; private characters, so that no message has it."""


@dataclass(frozen=True)
class Prompt:
    r"""A prompt, and the answer to explain.

    Parameters
    ----------
    text
        The prompt; with sources, the question about them, which is never removed; with slots, the template
        that they fill: ``"{name} lives in {city}"``.
    sources
        Texts that the question is about, such as retrieved documents. They alone can be removed.
    slots
        What stands in each slot of the text. The slots alone can be removed.
    alternatives
        By the name of a slot, other texts that it may be replaced by when it is removed; for each slot.
    messages
        The messages of a chat in place of a text, each with a role and a content. The contents can be
        removed; what the tokenizer's chat template adds to them cannot.
    answer
        The answer whose log-likelihood is explained, exactly as it follows the prompt: most models write a
        space first. By default the model's own greedy answer.
    rather_than
        Another answer. The contrast log p(answer) − log p(rather_than) is then explained by default.
    span
        A part of the answer, such as a name or a number in it, whose log-likelihood given what stands before
        it is then explained by default: that of the tokens that share a character with its first occurrence.
    template
        How sources and question are put together.
    separator
        What stands between two sources.

    Examples
    --------
    >>> Prompt("Who won?", sources=["Ada won.", "Bob lost."]).rendered().segments
    ('Ada won.', '\n\n', 'Bob lost.', '\n\nWho won?')
    >>> Prompt("{name} lives in {city}.", slots={"name": "Ada", "city": "Rome"}).rendered().segments
    ('Ada', ' lives in ', 'Rome', '.')
    """

    text: str = ""
    sources: Sequence[str] = ()
    slots: Mapping[str, str] = field(default_factory=dict)
    alternatives: Mapping[str, Sequence[str]] = field(default_factory=dict)
    messages: Sequence[Message] = ()
    answer: str | None = None
    rather_than: str | None = None
    span: str | None = None
    template: str = "{sources}\n\n{text}"
    separator: str = "\n\n"

    def __post_init__(self) -> None:
        """Check what was given."""
        for name in ("text", "template", "separator"):
            _expect_text(getattr(self, name), name)
        for name, entries in (("sources", "texts"), ("messages", "messages")):
            object.__setattr__(self, name, _listed_values(getattr(self, name), name, entries))
        self._check_parts()
        if bool(self.messages) == bool(self.text.strip()):
            raise InputError("A prompt must be a text or messages that are not empty: give one of them.")
        if self.messages and self.sources:
            raise InputError("Sources go with a text: put them into the contents of the messages instead.")
        if self.slots and (self.messages or self.sources):
            raise InputError("Slots go with a text: give sources or messages without slots.")
        if self.answer is not None and self.answer == self.rather_than:
            raise InputError("`rather_than` must be another answer, but it is the same as `answer`.")
        if self.span is not None and self.rather_than is not None:
            raise InputError("A contrast is about whole answers: give `span` or `rather_than`.")

    def _check_parts(self) -> None:
        self._check_slots()
        for name in ("answer", "rather_than", "span"):
            if getattr(self, name) is not None:
                _expect_text(getattr(self, name), name, blank=False)
        for source in self.sources:
            _expect_text(source, "sources", blank=False)
        for message in self.messages:
            _expect_message(message)
        for place in ("{sources}", "{text}") if self.sources else ():
            if self.template.count(place) != 1:
                raise InputError(f"`template` must hold {place} once, but is {safe_repr(self.template)}.")

    def _check_slots(self) -> None:
        for name in ("slots", "alternatives"):
            if not isinstance(getattr(self, name), Mapping):
                got = safe_repr(getattr(self, name))
                raise InputError(f"`{name}` must map the names of slots to texts, but got {got}.")
        if not self.slots and not self.alternatives:
            return
        named = [name for _, name in self._template() if name is not None]
        if len(named) != len(self.slots) or set(named) != set(self.slots):
            raise InputError(
                f"The text has the slots {_listed(named)}, each of which must be there once, but `slots` are "
                f"{_listed(self.slots)}."
            )
        if self.alternatives and set(self.alternatives) != set(self.slots):
            raise InputError(
                f"`alternatives` must be given for all slots or for none: slots are {_listed(self.slots)}, "
                f"but alternatives are given for {_listed(self.alternatives)}."
            )
        for name, value in self.slots.items():
            _expect_text(value, f"slots[{name!r}]", blank=False)
            others = self.alternatives.get(name, [])
            if isinstance(others, str) or (self.alternatives and not others):
                raise InputError(
                    f"`alternatives` of {name!r} must be a list of texts, but got {safe_repr(others)}."
                )
            for other in others:
                _expect_text(other, f"alternatives[{name!r}]", blank=False)

    def _template(self) -> list[tuple[str, str | None]]:
        """The text before each slot, with the name of the slot, and what follows the last with no name."""
        try:
            parsed = list(Formatter().parse(self.text))
        except ValueError as error:
            raise InputError(
                f"The text is no template, as braces in it do not match ({error}): write {{{{ for {{."
            ) from None
        found: list[tuple[str, str | None]] = []
        before = ""
        for literal, name, form, conversion in parsed:
            before += literal
            if name is None:
                continue
            if form or conversion:
                raise InputError(
                    f"A slot is a name in braces, as {{city}}, but {safe_repr(name)} has a format."
                )
            found.append((before, name))
            before = ""
        return [*found, (before, None)]

    @classmethod
    def from_input(cls, raw: Any) -> Prompt:
        """Return the prompt that is given as a prompt, a text, or a mapping of a prompt's fields."""
        if isinstance(raw, Prompt):
            return raw
        if isinstance(raw, str):
            return cls(raw)
        if isinstance(raw, Mapping) and set(raw) <= {f.name for f in fields(cls)}:
            return cls(**raw)
        raise InputError(
            f"A language model reads a text or a pertinent.Prompt(…, answer=…), but got {type(raw).__name__}."
        )

    def rendered(self, chat: Callable[[list[dict[str, str]]], str] | None = None) -> RenderedPrompt:
        """The prompt as the model reads it; `chat` puts messages into the template of a chat."""
        if self.messages:
            return self._of_messages(chat)
        if self.slots:
            return self._of_slots()
        if not self.sources:
            return RenderedPrompt((self.text,), (0,), **self._answers)
        before, _, rest = self.template.partition("{sources}")
        pieces = [before.replace("{text}", self.text)]
        for number, source in enumerate(self.sources):
            pieces += [self.separator, source] if number else [source]
        return self._joined([*pieces, rest.replace("{text}", self.text)], "sources")

    def _of_slots(self) -> RenderedPrompt:
        pieces: list[str] = []
        for before, name in self._template():
            pieces += [before] if name is None else [before, self.slots[name]]
        others = [self.alternatives.get(name, ()) for _, name in self._template() if name is not None]
        alternatives = tuple(map(tuple, others)) if self.alternatives else ()
        return replace(self._joined(pieces, "slots"), alternatives=alternatives)

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
        return RenderedPrompt(segments, parts, unit, **self._answers)

    @property
    def _answers(self) -> dict[str, Any]:
        return {"answer": self.answer or "", "rather_than": self.rather_than, "span": self.span}


@dataclass(frozen=True)
class _PromptFields:
    """The fields of the form of a prompt."""

    text: str
    sources: str | None = None
    answer: str | None = None
    rather_than: str | None = None
    chat: bool = False


@modalities.register("prompt")
@dataclass(frozen=True)
class PromptModality(Modality):
    """Prompts of language models."""

    summary = "a prompt of a language model, and its answer"
    plural = "prompts"
    nouns = ("prompt", "part")
    granularities = ("words", "sentences", "lines", "paragraphs", "passages", "tokens", "sources", "messages")
    coarser = "features='coarse-to-fine' or 'sentences'"
    flag = "inputs"
    in_lines = True
    input_type = PromptInput
    features = "words"
    aligned = False
    precedence = 1
    default_removal = "slice-out"
    fixed_baseline = "zero-vector"
    drawn_baseline = "random-token"
    drawing = "pertinent.rendering.drawings.prompt:PromptDrawing"

    def recognises(self, raw: Any) -> bool:
        """A `Prompt`."""
        return isinstance(raw, Prompt | RenderedPrompt)

    def split(self, raw: Any) -> Iterable[Any] | None:
        """The prompts in a collection."""
        return None if isinstance(raw, Prompt | RenderedPrompt | str) else split_collection(raw, ())

    def to_fields(self, input: PromptInput) -> dict[str, Any]:
        """Return the prompt, its sources separated by blank lines, and the answers that the user gave."""
        prompt = input.text
        sources = [prompt.segments[i] for i in prompt.parts] if prompt.unit == "sources" else []
        fixed = [part for i, part in enumerate(prompt.segments) if not sources or not prompt.removable(i)]
        is_written = prompt.answer_ids and not prompt.rather_than  # by the model, which writes it again
        text = "".join(fixed)
        return {
            "text": text.strip() if sources else text,
            "sources": "\n\n".join(sources),
            "answer": None if is_written else prompt.answer,
            "rather_than": prompt.rather_than,
        }

    def from_fields(self, fields: Mapping[str, Any], limits: InputLimits) -> Prompt:
        """Return the prompt; `chat` makes the text a message of a chat."""
        form = decode(_PromptFields, fields)
        limits.check_text(form.text, form.sources, form.answer, form.rather_than)
        sources = [source.strip() for source in re.split(r"\n\s*\n", form.sources or "") if source.strip()]
        return Prompt(
            "" if form.chat else form.text,
            sources=sources,
            messages=[{"role": "user", "content": form.text}] if form.chat else (),
            answer=form.answer or None,
            rather_than=form.rather_than or None,
        )

    def without_answer(self, raw: Prompt) -> Prompt:
        """Return the prompt with a short answer, if it has none."""
        return raw if raw.answer is not None else replace(raw, answer=".")

    def text_columns(self, names: Sequence[str], chosen: TextColumns) -> dict[str, str]:
        """Return the column of the prompt, and those of answers that the file has."""
        if chosen.pair or chosen.query:
            raise SettingError("A prompt is one text: leave out --pair-column and --query-column.")
        text = chosen.text or (names[0] if len(names) == 1 else "text")
        if text not in names:
            raise SettingError(f"{unknown('column', text, names)} Say which with --column.")
        return {"text": text} | {name: name for name in ("answer", "rather_than", "span") if name in names}

    def prepare(self, raw: Any, features: Features | None = None) -> PromptInput:
        """Raise an error: only a language model reads prompts."""
        raise InputError(
            "A Prompt is for a generative language model, wrap((model, tokenizer)), but this model is none: "
            "give a text."
        )


def _listed(names: Iterable[Any]) -> str:
    return ", ".join(map(str, names)) or "none"


def _expect_text(value: Any, name: str, *, blank: bool = True) -> None:
    if not isinstance(value, str):
        raise InputError(f"`{name}` must be text, but got {type(value).__name__}.")
    if not blank and not value.strip():
        raise InputError(f"`{name}` is empty or blank: there is nothing to explain.")


def _listed_values(values: Any, name: str, entries: str) -> tuple[Any, ...]:
    """Return the values of a list, array or iterator as a tuple."""
    is_several = isinstance(values, Iterable) and not isinstance(
        values, str | bytes | Mapping | set | frozenset
    )
    if not is_several or getattr(values, "ndim", 1) != 1:
        raise InputError(f"`{name}` must be a list of {entries}, but got {safe_repr(values)}.")
    return tuple(values)


def _expect_message(message: Any) -> None:
    fine = isinstance(message, Mapping) and all(
        isinstance(message.get(key), str) for key in ("role", "content")
    )
    if not fine:
        raise InputError(
            f"A message must be {{'role': …, 'content': …}} of texts, but got {safe_repr(message)}."
        )
