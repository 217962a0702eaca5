"""Messages of a chat in OpenAI's form: texts, content parts, tool calls and results of tools."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from pertinent.errors import InputError, safe_repr

Message: TypeAlias = Mapping[str, Any]

TEXT_PARTS = ("text", "input_text", "output_text")
"""Types of content parts that hold a text."""

IMAGES_FIXED = "Images and other content that is not text are held fixed."


def check_message(message: Any) -> None:
    """Raise an `InputError` unless this is a message with a role and a content or tool calls."""
    if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
        raise _invalid(message)
    content = message.get("content")
    if isinstance(content, list | tuple):
        for part in content:
            is_part = isinstance(part, Mapping) and isinstance(part.get("type"), str)
            if not is_part or (part["type"] in TEXT_PARTS and not isinstance(part.get("text"), str)):
                raise InputError(
                    "A content part must be {'type': 'text', 'text': …} or {'type': 'image_url', …}, but got "
                    f"{safe_repr(part)}."
                )
    elif content is None:
        if not message.get("tool_calls"):
            raise _invalid(message)
    elif not isinstance(content, str):
        raise _invalid(message)
    try:
        json.dumps(message, default=_plain)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"A message must consist of texts, numbers, lists and mappings: {error}.") from error


def _invalid(message: Any) -> InputError:
    return InputError(
        "A message must be {'role': …, 'content': …} with a text, a list of content parts, or 'tool_calls', "
        f"but got {safe_repr(message)}."
    )


def _plain(value: Any) -> Any:
    """Return a mapping or tuple as JSON can hold it."""
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"got {type(value).__name__}")


def texts_of(message: Message) -> list[str]:
    """Return the texts in the content of a message."""
    content = message.get("content")
    if isinstance(content, str):
        return [content]
    return [part["text"] for part in content or () if part["type"] in TEXT_PARTS]


def holds_images(messages: Sequence[Message]) -> bool:
    """Return whether a message has content that is not text."""
    parts = [part for m in messages if isinstance(m.get("content"), list | tuple) for part in m["content"]]
    return any(part["type"] not in TEXT_PARTS for part in parts)


def flatten(message: Message) -> dict[str, Any]:
    """Return the message as chat templates read it: one text as content, arguments of tools as mappings."""
    if holds_images([message]):
        raise InputError("The model reads only text, but a message has images: omit them.")
    flat = dict(message)
    if message.get("content") is not None:
        flat["content"] = "\n".join(texts_of(message))
    if message.get("tool_calls"):
        flat["tool_calls"] = [with_parsed_arguments(call) for call in message["tool_calls"]]
    return flat


def with_parsed_arguments(call: Any) -> Any:
    """Return a tool call whose arguments are a mapping instead of JSON."""
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(function.get("arguments"), str):
        return call
    try:
        arguments = json.loads(function["arguments"])
    except ValueError:
        return call
    return {**call, "function": {**function, "arguments": arguments}}


def separate_texts(messages: Sequence[Message]) -> tuple[list[str], list[dict[str, Any]]]:
    """Return the texts of messages after their roles, and the messages with indices instead of texts.

    The strings alternate: a fixed role, a text, and so on; only the texts are sent.

    >>> separate_texts([{"role": "user", "content": "Hi"}])
    (['user: ', 'Hi'], [{'role': 'user', 'content': [1]}])
    """
    pieces: list[str] = []
    frame: list[dict[str, Any]] = []
    for message in messages:
        start = "\n\n" if pieces else ""
        label = f"{start}{message['role']}{_describe_calls(message)}: "
        content = message.get("content")
        if isinstance(content, str):
            pieces += [label, content]
            content = [len(pieces) - 1]
        elif content is None:
            pieces += [label, ""]
        else:
            parts: list[Any] = []
            for part in content:
                if part["type"] in TEXT_PARTS:
                    pieces += [label, part["text"]]
                    parts.append({**part, "text": [len(pieces) - 1]})
                    label = "\n"
                else:
                    parts.append(part)
                    label += f"[{part['type']}] "
            if label != "\n":
                pieces += [label, ""]
            content = parts
        frame.append({**message, "content": content})
    return pieces, frame


def _describe_calls(message: Message) -> str:
    """Return the names of the tools that a message calls, in brackets."""
    calls = message.get("tool_calls")
    names = [name for call in calls or () if (name := call_text(call))] if isinstance(calls, list) else []
    return f" [{'; '.join(names)}]" if names else ""


def call_text(call: Any) -> str:
    """Return a tool call as ``name(arguments)``; empty if it has no name.

    >>> call_text({"function": {"name": "search", "arguments": '{"city": "Rome"}'}})
    'search({"city": "Rome"})'
    """
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        return ""
    arguments = function.get("arguments", "")
    return f"{function['name']}({arguments if isinstance(arguments, str) else json.dumps(arguments)})"


def fill_messages(frame: Sequence[Message], segments: Sequence[str]) -> list[dict[str, Any]]:
    """Return the messages with the segments at the indices of the frame."""
    return [{**message, "content": _fill(message["content"], segments)} for message in frame]


def _fill(content: Any, segments: Sequence[str]) -> Any:
    """Return a content with texts; lists of indices are joined."""
    if not isinstance(content, list):
        return content
    if content and all(isinstance(index, int) for index in content):
        return "".join(segments[index] for index in content)
    return [{**part, "text": _fill(part["text"], segments)} if "text" in part else part for part in content]


def renumber(frame: Sequence[Message], new: Mapping[int, Sequence[int]]) -> list[dict[str, Any]]:
    """Return the frame of segments that were moved, divided or omitted; `new` maps to their new indices."""

    def moved(content: Any) -> Any:
        if not isinstance(content, list):
            return content
        if content and all(isinstance(index, int) for index in content):
            return [index for old in content for index in new.get(old, ())] or ""
        return [{**part, "text": moved(part["text"])} if "text" in part else part for part in content]

    return [{**message, "content": moved(message["content"])} for message in frame]


def iterate_texts(value: Any) -> Iterator[str]:
    """Yield all strings in nested lists and mappings."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from iterate_texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from iterate_texts(inner)
