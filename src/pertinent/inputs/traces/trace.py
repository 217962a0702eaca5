"""A run of an agent: its messages, their parts, and the steps that can be explained."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from pertinent.errors import InputError, SettingError, safe_repr, unknown
from pertinent.inputs.chat_messages import Message, call_text
from pertinent.inputs.prompt_parts import PromptPart
from pertinent.inputs.prompt_request import Span, request_spans
from pertinent.inputs.traces.chunks import chunk_spans, located_spans, step_spans, tagged_spans
from pertinent.inputs.traces.messages import REASONING, read_messages

StepKind: TypeAlias = Literal["reasoning", "tool call", "answer"]

_CALL = re.compile(r"\s*([\w.:-]+)\((.*)\)\s*", re.DOTALL)
_MEMORY = ("memory", "memories")

_AROUND = ("system prompt", "user turn")
"""Names of the text around chunks and memory in a message."""


@dataclass(frozen=True)
class Step:
    """Something that the assistant wrote: a step of reasoning, tool calls or an answer.

    Attributes
    ----------
    name
        Name, such as ``"reasoning 2"``.
    kind
        ``"reasoning"``, ``"tool call"`` or ``"answer"``.
    message
        Index of its message.
    start, end
        Its characters in the content of the message; tool calls follow the content.
    text
        The text, or the calls as ``name(arguments)``.
    """

    name: str
    kind: StepKind
    message: int
    start: int
    end: int
    text: str


@dataclass(frozen=True)
class TracePart(PromptPart):
    """A part of a trace that can be removed.

    Attributes
    ----------
    text
        Its characters.
    is_request
        Whether it is a request of the user.
    call
        Name of the step that called the tool, if it is a tool's result.
    """

    text: str = ""
    is_request: bool = False
    call: str = ""


@dataclass(frozen=True)
class Trace:
    """A run of an agent.

    Attributes
    ----------
    messages
        The messages. Those of the assistant contain its reasoning.
    parts
        The parts of the messages that can be removed: system prompts, turns of the user, retrieved chunks,
        results of tools, memory, and steps of reasoning.
    steps
        What the assistant wrote, in order.
    notes
        Notes for the user, such as what was skipped.
    tools
        The tools that the model could call, if the trace has them.
    """

    messages: tuple[Message, ...]
    parts: tuple[TracePart, ...] = field(repr=False)
    steps: tuple[Step, ...]
    notes: tuple[str, ...] = ()
    tools: tuple[Mapping[str, Any], ...] = ()

    @classmethod
    def from_messages(
        cls, messages: Sequence[Mapping[str, Any]], chunks: Sequence[str] = (), notes: Sequence[str] = ()
    ) -> Trace:
        """Return the trace of messages from `read_messages`; `chunks` are retrieved texts to find in them."""
        turns = _turns(messages)
        steps = _steps(turns)
        if not steps:
            raise InputError("The trace has no message of the assistant, so there is nothing to explain.")
        parts = tuple(_parts(turns, steps, chunks))
        missing = [chunk for chunk in dict.fromkeys(chunks) if not _occurs(chunk, turns)]
        if missing:
            notes = [*notes, f"{len(missing)} of {len(set(chunks))} retrieved chunks are not in the prompt."]
        return cls(tuple(turn.message for turn in turns), parts, steps, tuple(notes))

    def step(self, step: int | str | None = None) -> Step:
        """Return a step by its index or name; by default the last one."""
        names = [each.name for each in self.steps]
        if step is None:
            return self.steps[-1]
        if isinstance(step, str):
            if step not in names:
                raise unknown("step of the trace", step, names)
            return self.steps[names.index(step)]
        if not -len(names) <= step < len(names):
            listed = ", ".join(f"{i} ({name})" for i, name in enumerate(names))
            raise SettingError(f"`step` must be one of {listed}, got {step}.")
        return self.steps[step]

    def parts_before(self, step: Step) -> list[TracePart]:
        """Return the parts that the assistant had read or written before a step."""
        return [part for part in self.parts if (part.message, part.end) <= (step.message, step.start)]

    def prompt_fields(self, step: Step, rather_than: Any = None) -> dict[str, Any]:
        """Return the fields of the prompt before a step, with the step as the answer.

        The last request of the user is held fixed, unless nothing else could be removed.
        """
        message = self.messages[step.message]
        before = str(message.get("content") or "")[: step.start]
        messages = [*self.messages[: step.message], *([_assistant(before)] if before.strip() else [])]
        is_call = step.kind == "tool call"
        parts = self.parts_before(step)
        last = max((part.message for part in parts if part.is_request), default=-1)
        held = [replace(part, held=part.is_request and part.message == last) for part in parts]
        chosen = held if any(not part.held for part in held) else parts
        fields: dict[str, Any] = {
            "messages": messages,
            "answer": _assistant("", message["tool_calls"]) if is_call else step.text,
            "rather_than": _other_answer(rather_than, is_call=is_call),
            "continues": bool(before.strip()),
            "tools": self.tools,
            "notes": self.notes,
        }
        return fields if len(chosen) == 1 else fields | {"parts": chosen}


@dataclass
class _Turn:
    """A message, and the characters and kinds of what the assistant wrote in it."""

    message: dict[str, Any]
    written: list[tuple[str, Span]] = field(default_factory=list)

    @property
    def text(self) -> str:
        return self.message["content"] or ""

    def add(self, kind: str, text: str) -> None:
        """Append a text after a blank line."""
        before = f"{self.text}\n\n" if self.text else ""
        self.message["content"] = before + text
        self.written.append((kind, (len(before), len(before) + len(text))))


def _assistant(content: str, calls: Sequence[Any] = ()) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": content or None if calls else content}
    return message | {"tool_calls": list(calls)} if calls else message


def _other_answer(other: Any, *, is_call: bool) -> Any:
    """Return another answer: a text, or a message with tool calls."""
    if isinstance(other, str) and is_call and (match := _CALL.fullmatch(other)):
        other = {"name": match[1], "arguments": match[2] or "{}"}
    if not isinstance(other, Mapping):
        return other
    if "role" in other:
        (message,) = read_messages([other])
        calls = message.get("tool_calls", ())
        return _assistant(message["content"], calls) if calls else message["content"]
    if not isinstance(other.get("function", other).get("name"), str):
        raise InputError(
            "`rather_than` must be a text, a tool call with a name and arguments, or a message, but got "
            f"{safe_repr(other)}."
        )
    (call,) = read_messages([{"role": "assistant", "tool_calls": [other]}])[0]["tool_calls"]
    return _assistant("", [call])


def _turns(messages: Sequence[Mapping[str, Any]]) -> list[_Turn]:
    """Return the messages, with adjacent ones of the assistant as one turn that ends in its tool calls."""
    turns: list[_Turn] = []
    for message in messages:
        if message["role"] != "assistant":
            turns.append(_Turn(dict(message)))
            continue
        last = turns[-1].message if turns else {}
        if last.get("role") != "assistant" or last.get("tool_calls"):
            turns.append(_Turn({"role": "assistant", "content": ""}))
        turn = turns[-1]
        for kind, key in (("reasoning", REASONING), ("content", "content")):
            if message.get(key):
                turn.add(kind, message[key])
        if message.get("tool_calls"):
            turn.message |= {"content": turn.text or None, "tool_calls": message["tool_calls"]}
    return turns


def _steps(turns: Sequence[_Turn]) -> tuple[Step, ...]:
    """Return the steps: reasoning, tool calls, and the last content of a turn without tool calls."""
    found: list[tuple[str, StepKind, int, Span, str]] = []
    for index, turn in enumerate(turns):
        calls = turn.message.get("tool_calls", ()) if turn.message["role"] == "assistant" else ()
        for number, (kind, (start, end)) in enumerate(turn.written, 1):
            if kind == "content" and number == len(turn.written) and not calls:
                found.append(("answer", "answer", index, (start, end), turn.text[start:end]))
                continue
            for a, b in step_spans(turn.text[start:end]):
                span = start + a, start + b
                found.append(("reasoning", "reasoning", index, span, turn.text[slice(*span)]))
        if calls:
            tools = ", ".join(dict.fromkeys(call["function"]["name"] for call in calls))
            text, end = "\n".join(map(call_text, calls)), len(turn.text)
            found.append((f"call of {tools}", "tool call", index, (end, end), text))
    names = _numbered([name for name, *_ in found])
    return tuple(
        Step(name, kind, index, *span, text)
        for name, (_, kind, index, span, text) in zip(names, found, strict=True)
    )


def _numbered(names: Sequence[str]) -> list[str]:
    """Return names with numbers if they occur several times.

    >>> _numbered(["search", "answer", "search"])
    ['search 1', 'answer', 'search 2']
    """
    total, counts = Counter(names), Counter[str]()
    numbered = []
    for name in names:
        counts[name] += 1
        numbered.append(f"{name} {counts[name]}" if total[name] > 1 else name)
    return numbered


def _parts(turns: Sequence[_Turn], steps: Sequence[Step], chunks: Sequence[str]) -> Iterator[TracePart]:
    """Yield the parts of all messages, in order, with different names."""
    callers = _callers(turns, steps)
    n_turns = Counter(turn.message["role"] for turn in turns)
    turn_numbers = Counter[str]()
    parts: list[TracePart] = []
    for index, turn in enumerate(turns):
        role, (tool, call) = turn.message["role"], callers.get(index, ("", ""))
        turn_numbers[role] += 1
        divided = list(_divided(turn, tool, chunks))
        around = [span for kind, span, _ in divided if kind in _AROUND]
        for kind, span, is_request in divided:
            name = kind
            if kind in _AROUND:
                name += f" {turn_numbers[role]}" if n_turns[role] > 1 else ""
                name += f", part {around.index(span) + 1}" if len(around) > 1 else ""
            text = turn.text[slice(*span)]
            parts.append(TracePart(index, *span, name, text=text, is_request=is_request, call=call))
    names = _numbered([part.name for part in parts])
    steps_at = {(step.message, step.start): step.name for step in steps if step.end > step.start}
    for part, name in zip(parts, names, strict=True):
        yield replace(part, name=steps_at.get((part.message, part.start), name))


def _divided(turn: _Turn, tool: str, chunks: Sequence[str]) -> Iterator[tuple[str, Span, bool]]:
    """Yield the name and the characters of each part of a message, and whether it is a request."""
    role, text = turn.message["role"], turn.text
    if not text.strip():
        return
    if role == "tool":
        kind = "memory" if any(word in tool.lower() for word in _MEMORY) else f"{tool} result"
        spans = chunk_spans(text)
        for span in spans if len(spans) > 1 else located_spans(text, chunks) or spans:
            yield kind, span, False
    elif role == "assistant":
        for kind, (start, end) in turn.written:
            is_whole = kind == "content" and end == len(text) and not turn.message.get("tool_calls")
            for a, b in [(0, end - start)] if is_whole else step_spans(text[start:end]):
                yield "reasoning", (start + a, start + b), False
    else:
        yield from sorted(_divided_prompt(role, text, chunks), key=lambda part: part[1])


def _divided_prompt(role: str, text: str, chunks: Sequence[str]) -> Iterator[tuple[str, Span, bool]]:
    """Yield the parts of a system prompt or a turn of the user: chunks, memory, and the text around them."""
    taken: list[Span] = []
    for span in located_spans(text, chunks):
        taken.append(span)
        yield "retrieved chunk", span, False
    for tag, (start, end) in tagged_spans(text):
        if all(end <= a or start >= b for a, b in taken):
            taken.append((start, end))
            yield "memory" if tag in _MEMORY else "retrieved chunk", (start, end), False
    for start, end in _gaps(text, sorted(taken)):
        if role == "system":
            yield "system prompt", (start, end), False
            continue
        between = text[start:end]
        requests = [(start + a, start + b) for a, b in request_spans(between)] or (
            [] if taken else [(start, end)]
        )
        for span in requests:
            yield "user turn", span, True
        for a, b in _gaps(text[:end], [(0, start), *requests]):
            for first, last in step_spans(text[a:b]):
                yield "user turn", (a + first, a + last), False


def _gaps(text: str, spans: Sequence[Span]) -> Iterator[Span]:
    """Yield the characters between sorted spans, without spaces around them, unless they are blank."""
    position = 0
    for start, end in [*spans, (len(text), len(text))]:
        gap = text[position:start]
        if any(map(str.isalnum, gap)):
            first = position + len(gap) - len(gap.lstrip())
            yield first, first + len(gap.strip())
        position = max(position, end)


def _callers(turns: Sequence[_Turn], steps: Sequence[Step]) -> dict[int, tuple[str, str]]:
    """Return, for each result of a tool, the name of the tool and of the step that called it."""
    names = {step.message: step.name for step in steps if step.kind == "tool call"}
    callers: dict[int, tuple[str, str]] = {}
    by_id: dict[str, tuple[str, str]] = {}
    waiting: list[tuple[str, str]] = []
    for index, turn in enumerate(turns):
        if index in names:
            waiting = []
            for call in turn.message["tool_calls"]:
                waiting.append((call["function"]["name"], names[index]))
                by_id |= {call["id"]: waiting[-1]} if "id" in call else {}
        elif turn.message["role"] == "tool":
            in_order = waiting.pop(0) if waiting else (turn.message.get("name") or "tool", "")
            callers[index] = by_id.get(turn.message.get("tool_call_id", ""), in_order)
    return callers


def _occurs(chunk: str, turns: Sequence[_Turn]) -> bool:
    """Return whether a message contains the chunk, as text or in JSON."""
    quoted = json.dumps(chunk.strip(), ensure_ascii=False)[1:-1]
    return any(chunk.strip() in turn.text or quoted in turn.text for turn in turns)
