"""Messages of a chat in OpenAI's form: texts, content parts, tool calls and results of tools."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
    content, calls = message.get("content"), message.get("tool_calls")
    if calls is not None and not isinstance(calls, list | tuple):
        raise _invalid(message)
    if isinstance(content, list | tuple):
        for part in content:
            is_part = isinstance(part, Mapping) and isinstance(part.get("type"), str)
            if not is_part or (part["type"] in TEXT_PARTS and not isinstance(part.get("text"), str)):
                raise InputError(
                    "A content part must be {'type': 'text', 'text': …} or {'type': 'image_url', …}, but got "
                    f"{safe_repr(part)}."
                )
    elif content is None:
        if not calls:
            raise _invalid(message)
    elif not isinstance(content, str):
        raise _invalid(message)
    _check_json(message, "A message")


def check_tools(tools: Iterable[Any]) -> None:
    """Raise an `InputError` unless these are descriptions of tools that JSON can hold."""
    for tool in tools:
        if not isinstance(tool, Mapping):
            raise InputError(
                f"A tool must be {{'type': 'function', 'function': …}}, but got {safe_repr(tool)}."
            )
        _check_json(tool, "A tool")


def _check_json(value: Any, what: str) -> None:
    try:
        json.dumps(value, default=_plain)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"{what} must consist of texts, numbers, lists and mappings: {error}.") from error


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
    flat = {**message, "content": "\n".join(texts_of(message))}
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


def labels_of(messages: Sequence[Message]) -> list[str]:
    r"""Return the text to show before each text of the messages, such as the role, and after the last one.

    >>> labels_of([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Who won?"}])
    ['system: ', '\n\nuser: ', '']
    """
    labels: list[str] = []
    label = ""
    for message in messages:
        label += f"{chr(10) * 2 if labels or label else ''}{message['role']}{_describe_calls(message)}: "
        content = message.get("content")
        for part in [{"type": "text"}] if isinstance(content, str) else content or ():
            if part["type"] in TEXT_PARTS:
                labels.append(label)
                label = ""
            else:
                label += f"[{part['type']}] "
    return [*labels, label]


def _describe_calls(message: Message) -> str:
    """Return the names of the tools that a message calls, in brackets."""
    calls = message.get("tool_calls")
    names = [name for call in calls or () if (name := call_text(call))]
    return f" [{'; '.join(names)}]" if names else ""


def call_text(call: Any) -> str:
    """Return a tool call as ``name(arguments)``; empty if it has no name.

    >>> call_text({"function": {"name": "search", "arguments": '{"city":"Rome"}'}})
    'search({"city": "Rome"})'
    """
    parsed = with_parsed_arguments(call)
    function = parsed.get("function") if isinstance(parsed, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        return ""
    arguments = function.get("arguments", "")
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return f"{function['name']}({text})"


def index_texts(messages: Sequence[Message], indices: Iterable[Sequence[int]]) -> str:
    """Return the messages as JSON, with the indices of segments instead of each text."""
    rest = iter(indices)

    def changed(content: Any) -> Any:
        if isinstance(content, str):
            return {"segments": next(rest)}
        return [
            {**part, "text": {"segments": next(rest)}} if part["type"] in TEXT_PARTS else part
            for part in content
        ]

    frame = [
        {**message, "content": changed(message["content"])} if message.get("content") is not None else message
        for message in messages
    ]
    return json.dumps(frame, default=dict)


def fill_messages(frame: str, segments: Sequence[str]) -> list[dict[str, Any]]:
    """Return the messages of a frame with texts from these segments."""

    def filled(content: Any) -> Any:
        if isinstance(content, dict):
            return "".join(segments[index] for index in content["segments"])
        if isinstance(content, list):
            return [
                {**part, "text": filled(part["text"])} if part["type"] in TEXT_PARTS else part
                for part in content
            ]
        return content

    return [{**message, "content": filled(message.get("content"))} for message in json.loads(frame)]


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
