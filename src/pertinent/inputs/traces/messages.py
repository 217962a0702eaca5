"""Messages of a trace in one form, whichever library wrote them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pertinent.errors import InputError, safe_repr
from pertinent.inputs.chat_messages import TEXT_PARTS

ROLES = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "model": "assistant",
    "tool": "tool",
    "function": "tool",
}
"""Names of roles in different libraries."""

REASONING = "reasoning"
"""Key of a message of the assistant for its reasoning, apart from its content."""

_REASONING = ("reasoning_content", "reasoning", "thinking")

_THOUGHTS = re.compile(r"<(think|thinking|reasoning)>(.*?)</\1>", re.DOTALL)


def is_message(value: Any) -> bool:
    """Return whether a mapping has the role of a message."""
    return isinstance(value, Mapping) and ROLES.get(_role(value)) is not None


def _role(message: Mapping[str, Any]) -> str:
    name = message.get("role") or message.get("type")
    return name.lower() if isinstance(name, str) else ""


def read_messages(values: Iterable[Any]) -> list[dict[str, Any]]:
    """Return messages with a role, a text, and for the assistant its reasoning and OpenAI's tool calls.

    >>> read_messages([{"role": "assistant", "content": "<think>Bob.</think>It is Bob."}])
    [{'role': 'assistant', 'content': 'It is Bob.', 'reasoning': 'Bob.'}]
    """
    return [message for value in values for message in _read_message(value)]


@dataclass
class _ReadContent:
    """The content of a message, by kind."""

    texts: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    calls: list[dict[str, Any]] = field(default_factory=list)
    results: list[dict[str, Any]] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "\n".join(filter(None, self.texts))

    def add(self, part: Mapping[str, Any]) -> None:
        """Add a content part; parts that are not text are omitted."""
        kind = part.get("type")
        if kind in TEXT_PARTS:
            self.texts.append(_text(part.get("text", part.get("content"))))
        elif kind in ("thinking", "reasoning"):
            self.thoughts.append(_text(part.get("thinking", part.get("content", part.get("text")))))
        elif kind in ("tool_use", "tool_call"):
            self.calls.append(_read_call(part))
        elif kind in ("tool_result", "tool_call_response"):
            result = part.get("content", part.get("response", part.get("result")))
            identifier = part.get("tool_use_id", part.get("id"))
            self.results.append({"role": "tool", "tool_call_id": identifier, "content": _text(result)})


def _read_message(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, Mapping) and isinstance(value.get("message"), Mapping):  # OpenInference
        value = value["message"]
    if not is_message(value):
        raise InputError(
            f"A message of a trace must have a role ({', '.join(ROLES)}), but got {safe_repr(value)}."
        )
    role, content = ROLES[_role(value)], _ReadContent()
    content.thoughts += [_text(value[key]) for key in _REASONING if value.get(key)]
    calls = value.get("tool_calls") or []
    if not isinstance(calls, list | tuple):
        raise InputError(f"`tool_calls` must be a list, but got {safe_repr(calls)}.")
    content.calls += map(_read_call, calls)
    for part in _content_parts(value):
        content.add(part)
    yield from content.results
    message: dict[str, Any] = {"role": role, "content": content.text.strip()}
    if role == "assistant":
        thoughts = [*content.thoughts, *(match[2] for match in _THOUGHTS.finditer(content.text))]
        message["content"] = _THOUGHTS.sub("", content.text).strip()
        reasoning = "\n\n".join(filter(None, map(str.strip, thoughts)))
        message |= {REASONING: reasoning} if reasoning else {}
        message |= {"tool_calls": content.calls} if content.calls else {}
    if role == "tool":
        message |= {key: value[key] for key in ("tool_call_id", "name") if isinstance(value.get(key), str)}
    if message["content"] or message.keys() & {"tool_calls", REASONING}:
        yield message


def _content_parts(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the content as a list of parts."""
    content = message.get("content", message.get("parts", message.get("contents")))
    if isinstance(content, list | tuple) and all(isinstance(part, Mapping) for part in content):
        inner = [part.get("message_content", part) for part in content]  # OpenInference
        if all("type" in part for part in inner):
            return inner
    return [{"type": "text", "text": _text(content)}]


def _text(value: Any) -> str:
    """Return a text, or other data as JSON."""
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, list) and value and all(isinstance(part, Mapping) for part in value):
        texts = [part.get("text", part.get("content")) for part in value]
        if all(isinstance(text, str) for text in texts) and all("type" in part for part in value):
            return "\n".join(map(str, texts))
    return json.dumps(value, ensure_ascii=False, default=str)


def _read_call(call: Any) -> dict[str, Any]:
    """Return a tool call in OpenAI's form."""
    if isinstance(call, Mapping) and isinstance(call.get("tool_call"), Mapping):  # OpenInference
        call = call["tool_call"]
    function = call.get("function", call) if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        raise InputError(f"A tool call must have the name of a function, but got {safe_repr(call)}.")
    arguments: Any = next((function[key] for key in ("arguments", "input", "args") if key in function), {})
    arguments = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    form = {"type": "function", "function": {"name": function["name"], "arguments": arguments}}
    identifier = call.get("id")
    return {"id": identifier, **form} if isinstance(identifier, str) else form


def as_messages(value: Any) -> list[Any] | None:
    """Return the messages in a value of a trace; ``None`` if there are none.

    They may be in JSON, in a list, in a mapping with "messages", or in the choices of a completion.
    """
    value = from_json(value)
    if isinstance(value, Mapping):
        for key in ("messages", "input_messages", "output_messages"):
            if isinstance(value.get(key), list):
                return as_messages(value[key])
        if isinstance(value.get("choices"), list):
            return [each.get("message") for each in value["choices"][:1] if isinstance(each, Mapping)]
        return [value] if is_message(value) or isinstance(value.get("message"), Mapping) else None
    if isinstance(value, Sequence) and not isinstance(value, str) and value:
        flat = value[0] if len(value) == 1 and isinstance(value[0], list) else value
        read = [each.get("message", each) if isinstance(each, Mapping) else each for each in flat]
        return list(flat) if all(map(is_message, read)) else None
    return None


def from_json(value: Any) -> Any:
    """Return the data in a JSON text, or the value itself."""
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def read_tools(values: Any) -> tuple[dict[str, Any], ...]:
    """Return descriptions of tools in OpenAI's form; those in other forms are omitted.

    >>> read_tools([{"tool": {"json_schema": '{"type": "function", "function": {"name": "search"}}'}}])
    ({'type': 'function', 'function': {'name': 'search'}},)
    """
    tools = []
    listed = from_json(values)
    for value in listed if isinstance(listed, list) else ():
        inner = value.get("tool", value) if isinstance(value, Mapping) else None
        tool = from_json(inner.get("json_schema", inner)) if isinstance(inner, Mapping) else None
        if isinstance(tool, Mapping) and isinstance(tool.get("name"), str):  # Anthropic, and the flat form
            described = {key: tool[key] for key in ("name", "description", "parameters") if key in tool}
            schema = {"parameters": tool["input_schema"]} if "input_schema" in tool else {}
            tool = {"type": "function", "function": described | schema}
        if isinstance(tool, Mapping) and isinstance(tool.get("function"), Mapping):
            tools.append(dict(tool))
    return tuple(tools)
