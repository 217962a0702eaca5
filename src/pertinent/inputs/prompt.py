"""Prompts of a language model: a text, a template, a question with sources, or chat messages."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import chain
from string import Formatter
from typing import Any

from pertinent.config.serialization import decode
from pertinent.errors import InputError, safe_repr
from pertinent.inputs.base import Features
from pertinent.inputs.chat_messages import (
    IMAGES_FIXED,
    Message,
    check_message,
    check_tools,
    flatten,
    holds_images,
    index_texts,
    labels_of,
    texts_of,
)
from pertinent.inputs.chat_template import (
    ChatTemplate,
    answer_text,
    join_around,
    suit_template,
    text_around,
)
from pertinent.inputs.fixed_parts import NONE, Content, Role, hold, is_char_span
from pertinent.inputs.modality import InputLimits, Modality, TextColumns, modalities, split_collection
from pertinent.inputs.prompt_columns import COLUMNS, paragraphs, prompt_columns, prompt_fields
from pertinent.inputs.prompt_parts import PromptPart, divide_at_parts, names_of_strings
from pertinent.inputs.rendered_prompt import PromptInput, RenderedPrompt, Unit
from pertinent.inputs.text import texts_in
from pertinent.inputs.traces.read_trace import read_trace


@dataclass(frozen=True)
class Prompt:
    r"""A prompt and the answer to explain.

    Parameters
    ----------
    text
        The prompt. With sources it is the question about them, which is never removed; with slots it is the
        template: ``"{name} lives in {city}"``.
    sources
        Texts that the question is about, such as retrieved documents. Only they can be removed.
    slots
        The text of each slot. Only the slots can be removed.
    alternatives
        For each slot, texts that replace it when it is removed.
    messages
        The messages of a chat instead of a text, each with a role and a content: a text or a list of content
        parts. Texts can be removed, also results of tools; tool calls, images and the text that a chat
        template adds cannot.
    answer
        The answer whose log-likelihood is explained, exactly as it follows the prompt; most models generate
        a leading space. A message of the assistant with tool calls is explained as the chat template writes
        it. By default the model's greedy answer.
    rather_than
        Another answer or message. By default the contrast log p(answer) − log p(rather_than) is then
        explained.
    span
        A part of the answer, such as a name or a number. By default the log-likelihood of its first
        occurrence, given the preceding text, is then explained: of all tokens that share a character with it.
    template
        The format in which sources and question are combined.
    separator
        The text between two sources.
    fixed
        A part of the prompt that is never removed, or several parts; for a text also the start and end of its
        characters; ``"none"`` for nothing. By default the question or instruction at the end, with a cue such
        as "Answer:"; in a chat that of the last user message, and the system messages.
    chat
        Whether text and sources are sent as one user message through the tokenizer's chat template. By
        default if there are sources and the tokenizer has a chat template.
    parts
        Named parts of the messages, whose contents are texts: see `from_trace`. Only they can be removed.
    continues
        Whether the answer continues the last message, which is of the assistant.
    tools
        Tools that the model can call, in OpenAI's form, for the chat template or a chat endpoint.
    notes
        Notes for the explanation.

    Examples
    --------
    >>> Prompt("Who won?", sources=["Ada won.", "Bob lost."]).render().segments
    ('Ada won.', '\n\n', 'Bob lost.', '\n\nWho won?')
    >>> Prompt("{name} lives in {city}.", slots={"name": "Ada", "city": "Rome"}).render().segments
    ('Ada', ' lives in ', 'Rome', '.')
    """

    text: str = ""
    sources: Sequence[str] = ()
    slots: Mapping[str, str] = field(default_factory=dict)
    alternatives: Mapping[str, Sequence[str]] = field(default_factory=dict)
    messages: Sequence[Message] = ()
    answer: str | Message | None = None
    rather_than: str | Message | None = None
    span: str | None = None
    template: str = "{sources}\n\n{text}"
    separator: str = "\n\n"
    fixed: str | Sequence[str] | tuple[int, int] | None = None
    chat: bool | None = None
    parts: Sequence[PromptPart] = ()
    continues: bool = False
    tools: Sequence[Mapping[str, Any]] = ()
    notes: Sequence[str] = ()

    def __post_init__(self) -> None:
        """Validate the fields."""
        for name in ("text", "template", "separator"):
            _expect_text(getattr(self, name), name)
        for name, entries in (
            ("sources", "texts"),
            ("messages", "messages"),
            ("parts", "parts"),
            ("tools", "tools"),
            ("notes", "texts"),
        ):
            object.__setattr__(self, name, _listed_values(getattr(self, name), name, entries))
        self._check_parts()
        if bool(self.messages) == bool(self.text.strip()):
            raise InputError("A prompt must have a text or messages: exactly one of them, and not empty.")
        if self.messages and self.sources:
            raise InputError("`sources` require `text`: put them into the contents of the messages instead.")
        if self.slots and (self.messages or self.sources):
            raise InputError("`slots` require `text`, without `sources` or `messages`.")
        if self.answer is not None and self.answer == self.rather_than:
            raise InputError("`rather_than` must be another answer, got the same as `answer`.")
        if self.span is not None and self.rather_than is not None:
            raise InputError(
                "`span` and `rather_than` cannot be combined: a contrast compares whole answers."
            )

    def _check_parts(self) -> None:
        self._check_slots()
        for name in ("answer", "rather_than", "span"):
            value = getattr(self, name)
            if isinstance(value, Mapping) and name != "span":
                check_message(value)
            elif value is not None:
                _expect_text(value, name, blank=False)
        self._check_chat()
        self._check_fixed()
        for source in self.sources:
            _expect_text(source, "sources", blank=False)
        for message in self.messages:
            check_message(message)
        for field_name in ("{sources}", "{text}") if self.sources else ():
            if self.template.count(field_name) != 1:
                raise InputError(
                    f"`template` must contain {field_name} once, got {safe_repr(self.template)}."
                )

    def _check_chat(self) -> None:
        for name in ("parts", "tools"):
            if getattr(self, name) and not self.messages:
                raise InputError(f"`{name}` require `messages`.")
        check_tools(self.tools)
        if self.continues and (not self.messages or self.messages[-1].get("role") != "assistant"):
            raise InputError("`continues` requires a last message of the assistant.")

    def _check_fixed(self) -> None:
        fixed = self.fixed
        if fixed is not None and not isinstance(fixed, str):
            object.__setattr__(self, "fixed", fixed := _listed_values(fixed, "fixed", "parts of the prompt"))
        is_span = is_char_span(fixed)
        for part in () if fixed is None or is_span else [fixed] if isinstance(fixed, str) else fixed:
            _expect_text(part, "fixed", blank=False)
        if fixed == ():
            raise InputError("`fixed` must be at least one part of the prompt, or 'none', got none.")
        if is_span and (self.messages or self.sources):
            raise InputError(
                "A span in `fixed` requires a text: fix a part of messages or sources by its text."
            )
        if self.slots and fixed not in (None, NONE):
            raise InputError("`fixed` does not apply to `slots`: the text around the slots is always fixed.")
        if not (self.chat is None or self.chat is True or (self.chat is False and not self.messages)):
            allowed = "True or None for messages" if self.messages else "True, False or None"
            raise InputError(f"`chat` must be {allowed}, got {safe_repr(self.chat)}.")

    def _check_slots(self) -> None:
        for name in ("slots", "alternatives"):
            if not isinstance(getattr(self, name), Mapping):
                got = safe_repr(getattr(self, name))
                raise InputError(f"`{name}` must map the names of slots to texts, got {got}.")
        if not self.slots and not self.alternatives:
            return
        named = [name for _, name in self._template() if name is not None]
        if len(named) != len(self.slots) or set(named) != set(self.slots):
            raise InputError(
                f"`slots` must be the slots of the text, which occur once each: {_listed(named)}, got "
                f"{_listed(self.slots)}."
            )
        if self.alternatives and set(self.alternatives) != set(self.slots):
            raise InputError(
                f"`alternatives` must have all slots or none: slots are {_listed(self.slots)}, got "
                f"{_listed(self.alternatives)}."
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
        """Return pairs of literal text and the slot after it; the slot after the last text is ``None``."""
        try:
            parsed = list(Formatter().parse(self.text))
        except ValueError as error:
            raise InputError(
                f"The text must be a template with matching braces ({error}): write {{{{ for {{."
            ) from None
        pairs: list[tuple[str, str | None]] = []
        before = ""
        for literal, name, form, conversion in parsed:
            before += literal
            if name is None:
                continue
            if form or conversion:
                raise InputError(
                    f"A slot must be a name in braces, such as {{city}}, but {safe_repr(name)} has a format."
                )
            pairs.append((before, name))
            before = ""
        return [*pairs, (before, None)]

    @classmethod
    def from_input(cls, raw: Any) -> Prompt:
        """Return a prompt from a prompt, a text, or a mapping of a prompt's fields."""
        if isinstance(raw, Prompt):
            return raw
        if isinstance(raw, str):
            return cls(raw)
        if hasattr(raw, "to_dict") and hasattr(raw, "index"):  # a row of a data frame
            row = raw.to_dict()
            raw = prompt_fields(row, {name: name for name in COLUMNS if name in row})
        if isinstance(raw, Mapping) and set(raw) <= {f.name for f in fields(cls)}:
            return cls(**raw)
        raise InputError(
            f"A language model reads a text or a pertinent.Prompt(…, answer=…), but got {type(raw).__name__}."
        )

    @classmethod
    def from_trace(
        cls,
        trace: Any,
        step: int | str | None = None,
        *,
        rather_than: Any = None,
        fixed: str | Sequence[str] | None = None,
    ) -> Prompt:
        r"""Return the prompt before a step of an agent's run, with the step as the answer to explain.

        The features are the system prompt, turns of the user, each chunk that was retrieved or returned by a
        tool, memory, and earlier steps of reasoning. The last request of the user is held fixed.

        Parameters
        ----------
        trace
            Messages in OpenAI's form with tool calls and results, an OpenInference or OpenTelemetry export
            of spans, a Langfuse export, or the path of such a JSON or JSON-lines file.
        step
            Index or name of what the assistant wrote: a step of reasoning, a tool call or an answer; by
            default the last one.
        rather_than
            Another answer, or another call such as ``'search({"city": "Rome"})'``, for a contrast.
        fixed
            Parts of the messages that are never removed, or ``"none"``; by default the last request of the
            user.

        Examples
        --------
        >>> messages = [
        ...     {"role": "user", "content": "Who keeps the map?"},
        ...     {"role": "assistant", "tool_calls": [{"function": {"name": "find", "arguments": "{}"}}]},
        ...     {"role": "tool", "content": "Ann keeps the key.\n\nBob keeps the map."},
        ...     {"role": "assistant", "content": "Bob"},
        ... ]
        >>> prompt = Prompt.from_trace(messages)
        >>> [part.name for part in prompt.parts]
        ['user turn', 'find result 1', 'find result 2']
        >>> prompt.answer
        'Bob'
        """
        read = read_trace(trace)
        return cls(**read.prompt_fields(read.step(step), rather_than), fixed=fixed)

    def render(self, chat: ChatTemplate | None = None) -> RenderedPrompt:
        """Return the prompt as the model reads it; `chat` applies the tokenizer's chat template, if any."""
        by_default = self.chat is None and bool(self.sources) and chat is not None
        if not (self.messages or self.chat or by_default):
            return self._join(self._held(self._contents(self.messages)), self._unit)
        if chat is None:
            raise InputError("`messages` need a tokenizer with a chat template: pass the prompt as a text.")
        return self._render_chat(chat)

    def _contents(self, messages: Sequence[Message]) -> list[Content]:
        """Return the content of each message, or of the text, divided into strings."""
        if self.parts:
            return divide_at_parts(messages, self.parts, hold=self.fixed is None)
        if messages:
            return [Content(each["role"], [(text, "part")]) for each in messages for text in texts_of(each)]
        return [Content("user", self._strings())]

    def _held(self, contents: Sequence[Content]) -> list[Content]:
        """Return the contents with the parts that `fixed` holds."""
        return list(contents) if self.parts and self.fixed is None else hold(contents, self.fixed)

    def _strings(self) -> list[tuple[str, Role]]:
        """Return the text, divided at its sources or slots."""
        strings: list[tuple[str, Role]] = []
        if self.slots:
            for before, name in self._template():
                strings += (
                    [(before, "fixed")] if name is None else [(before, "fixed"), (self.slots[name], "part")]
                )
            return strings
        if not self.sources:
            return [(self.text, "part")]
        before, _, rest = self.template.partition("{sources}")
        strings.append((before.replace("{text}", self.text), "fixed"))
        for number, source in enumerate(self.sources):
            strings += [(self.separator, "fixed"), (source, "part")] if number else [(source, "part")]
        return [*strings, (rest.replace("{text}", self.text), "fixed")]

    @property
    def _unit(self) -> Unit:
        if self.parts:
            return "parts"
        return "slots" if self.slots else "sources" if self.sources else "messages" if self.messages else ""

    def _render_chat(self, chat: ChatTemplate) -> RenderedPrompt:
        flat = [flatten(message) for message in self.messages]
        contents = [content for content in self._contents(flat) if content.text or not flat]
        messages = flat or [{"role": "user", "content": contents[0].text}]
        chat = suit_template(messages, chat)
        *between, rest = text_around(messages, chat)
        whole = chat(messages)
        for variant in (contents, [content.strip() for content in contents]):  # many templates strip contents
            if join_around([*between, rest], [content.text for content in variant]) == whole:
                break
        else:
            raise InputError("The chat template changes the text of messages: pass the prompt as a text.")
        if self.continues:
            rest = contents[-1].text.removeprefix(variant[-1].text)  # the space before the answer
        held = self._held(variant)
        frames: list[list[tuple[str, Role]]] = [[(text, "template")] for text in between]
        strings = [
            *chain(*chain(*zip(frames, (each.strings for each in held), strict=True))),
            (rest, "template"),
        ]
        prompt = self._join([Content("", strings)], self._unit or "messages")
        before = whole if not self.continues else "".join(prompt.segments)
        answers = [answer_text(each, messages, before, chat) for each in (self.answer, self.rather_than)]
        return replace(
            prompt,
            adds_special=False,
            names=names_of_strings(held, self.parts),
            answer=answers[0] or "",
            rather_than=answers[1],
        )

    def render_messages(self) -> RenderedPrompt:
        """Return the prompt for an endpoint or a function that reads messages; a text is one message."""
        if not self.messages:
            return self._join(self._held(self._contents(self.messages)), self._unit)
        strings: list[tuple[str, Role]] = []
        indices: list[list[int]] = []
        *labels, last = labels_of(self.messages)
        contents = self._held(self._contents(self.messages))
        for label, content in zip(labels, contents, strict=True):
            kept = [each for each in content.strings if each[0]]
            strings += [(label, "template")] if label else []
            indices.append([len(strings) + index for index in range(len(kept))])
            strings += kept
        rendered = self._join([Content("", [*strings, (last, "template")])], self._unit)
        if not rendered.parts:
            raise InputError("The messages have no text that can be removed: there is nothing to explain.")
        notes = (*self.notes, *((IMAGES_FIXED,) if holds_images(self.messages) else ()))
        frame, names = index_texts(self.messages, indices), names_of_strings(contents, self.parts)
        tools = json.dumps([dict(tool) for tool in self.tools], default=dict) if self.tools else ""
        return replace(rendered, frame=frame, names=names, notes=notes, tools=tools)

    def _join(self, contents: Sequence[Content], unit: Unit) -> RenderedPrompt:
        """Return the prompt of these strings, without empty ones."""
        kept = [each for content in contents for each in content.strings if each[0]]
        indices = {
            role: tuple(number for number, (_, other) in enumerate(kept) if other == role)
            for role in ("part", "held", "template")
        }
        others = (
            [self.alternatives.get(name, ()) for _, name in self._template() if name] if self.slots else []
        )
        return RenderedPrompt(
            tuple(string for string, _ in kept),
            indices["part"],
            unit,
            alternatives=tuple(map(tuple, others)) if self.alternatives else (),
            held=indices["held"],
            template=indices["template"],
            answer=answer_text(self.answer, self.messages) or "",
            rather_than=answer_text(self.rather_than, self.messages),
            span=self.span,
            notes=tuple(self.notes),
        )


@dataclass(frozen=True)
class _PromptFields:
    """Form fields of a prompt."""

    text: str
    sources: str | None = None
    answer: str | None = None
    rather_than: str | None = None
    fixed: str | None = None
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
    default_method = "bayesian-regression"
    default_removal = "slice-out"
    fixed_baseline = "zero-vector"
    drawn_baseline = "random-token"
    drawing = "pertinent.rendering.drawings.prompt:PromptDrawing"

    def recognises(self, raw: Any) -> bool:
        """Return whether `raw` is a `Prompt`."""
        return isinstance(raw, Prompt | RenderedPrompt)

    def split(self, raw: Any) -> Iterable[Any] | None:
        """Return the prompts in a collection; ``None`` for a single prompt."""
        if isinstance(raw, Prompt | RenderedPrompt | str):
            return None
        texts = texts_in(raw)
        return split_collection(raw, ()) if texts is None else texts

    def to_fields(self, input: PromptInput) -> dict[str, Any]:
        """Return the prompt, its sources and fixed parts separated by blank lines, and the answers."""
        prompt = input.text
        sources = [prompt.segments[i] for i in prompt.parts] if prompt.unit == "sources" else []
        own = [i for i in range(len(prompt.segments)) if i not in prompt.template]
        text = "".join(prompt.segments[i] for i in own if not sources or not prompt.removable(i))
        is_generated = prompt.answer_ids and not prompt.rather_than  # the model will generate it again
        default = [] if sources else Prompt(text).render().held_texts
        is_default = prompt.held_texts == default
        return {
            "text": text.strip() if sources else text,
            "sources": "\n\n".join(sources),
            "answer": None if is_generated else prompt.answer,
            "rather_than": prompt.rather_than,
            "fixed": None if is_default else "\n\n".join(prompt.held_texts) or NONE,
            "chat": bool(prompt.template) and not sources,
        }

    def from_fields(self, fields: Mapping[str, Any], limits: InputLimits) -> Prompt:
        """Return the prompt; the field `chat` makes the text a chat message."""
        form = decode(_PromptFields, fields)
        limits.check_text(form.text, form.sources, form.answer, form.rather_than, form.fixed)
        fixed = paragraphs(form.fixed)
        return Prompt(
            form.text,
            sources=paragraphs(form.sources),
            answer=form.answer or None,
            rather_than=form.rather_than or None,
            fixed=NONE if fixed == [NONE] else fixed or None,
            chat=True if form.chat else None,
        )

    def without_answer(self, raw: Prompt) -> Prompt:
        """Return the prompt, with a short answer if it has none."""
        return raw if raw.answer is not None else replace(raw, answer=".")

    def text_columns(self, names: Sequence[str], chosen: TextColumns) -> dict[str, str]:
        """Return the columns of a file that are fields of a prompt."""
        return prompt_columns(names, chosen)

    def from_columns(self, record: Mapping[str, Any], columns: Mapping[str, str]) -> dict[str, Any]:
        """Return the fields of a prompt in a record of a file, without empty values."""
        return prompt_fields(record, columns)

    def prepare(self, raw: Any, features: Features | None = None) -> PromptInput:
        """Raise an error: only a language model reads prompts."""
        raise InputError(
            "A Prompt needs a generative language model, `wrap((model, tokenizer))`, but this is another "
            "model: pass a text."
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
        raise InputError(f"`{name}` must be a list of {entries}, got {safe_repr(values)}.")
    return tuple(values)
