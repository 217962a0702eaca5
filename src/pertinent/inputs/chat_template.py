"""Messages in a tokenizer's chat template, also if the template knows no tools."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any, TypeAlias

from pertinent.errors import InputError
from pertinent.inputs.chat_messages import call_text, flatten, texts_of

ChatTemplate: TypeAlias = Callable[[list[dict[str, Any]]], str]
"""Function from messages to the text that the model reads before it answers."""

MARK = "\ue000{}\ue001"
"""Placeholder of a message in a chat template, of private-use characters that do not occur in messages."""


def suit_template(messages: Sequence[Mapping[str, Any]], chat: ChatTemplate) -> ChatTemplate:
    """Return the template, or one that also renders tools if this one does not.

    The other template writes tool calls as texts, and results of tools as messages of the user if they are
    rejected.
    """
    if not any(message.get("tool_calls") or message["role"] == "tool" for message in messages):
        return chat
    as_text: ChatTemplate = lambda each: chat([_calls_as_text(m) for m in each])  # noqa: E731
    of_user: ChatTemplate = lambda each: chat([_result_of_user(_calls_as_text(m)) for m in each])  # noqa: E731
    return next((each for each in (chat, as_text, of_user) if _renders(messages, each)), chat)


def _renders(messages: Sequence[Mapping[str, Any]], chat: ChatTemplate) -> bool:
    """Return whether the template renders the names of tools and all results."""
    try:
        text = chat([dict(message) for message in messages])
    except Exception:  # noqa: BLE001  templates raise errors of their library, or of Python
        return False
    calls = [call for message in messages for call in message.get("tool_calls") or ()]
    results = [content for message in messages if message["role"] == "tool" for content in texts_of(message)]
    return all(_tool_name(call) in text for call in calls) and all(each.strip() in text for each in results)


def _tool_name(call: Any) -> str:
    return call_text(call).partition("(")[0]


def _calls_as_text(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return the message with its tool calls as lines of its content."""
    calls = message.get("tool_calls")
    if not calls:
        return dict(message)
    texts = [*texts_of(message), *map(call_text, calls)]
    rest = {key: value for key, value in message.items() if key != "tool_calls"}
    return {**rest, "content": "\n".join(filter(None, texts))}


def _result_of_user(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result of a tool as a message of the user."""
    is_result = message["role"] == "tool"
    return {"role": "user", "content": message["content"]} if is_result else dict(message)


def text_around(messages: Sequence[Mapping[str, Any]], chat: ChatTemplate) -> list[str]:
    """Return the text of the template before each content that is not empty, and after the last one."""
    marks = [MARK.format(number) for number, message in enumerate(messages) if message["content"]]
    unused = iter(marks)
    rest = chat([{**each, "content": next(unused) if each["content"] else ""} for each in messages])
    around: list[str] = []
    for mark in marks:
        before, separator, rest = rest.partition(mark)
        if not separator:
            raise InputError("The chat template omits or reorders messages: pass the prompt as a text.")
        around.append(before)
    return [*around, rest]


def join_around(around: Sequence[str], texts: Sequence[str]) -> str:
    """Return the text of the template with these contents."""
    return "".join(chain(*zip(around[:-1], texts, strict=True), around[-1:]))


def answer_text(
    answer: str | Mapping[str, Any] | None,
    messages: Sequence[Mapping[str, Any]],
    before: str = "",
    chat: ChatTemplate | None = None,
) -> str | None:
    """Return an answer as text; tool calls as the template writes them after the prompt, if it does.

    `before` is the text of the prompt. If its last message is of the assistant, the answer continues it.
    """
    if answer is None or isinstance(answer, str):
        return answer
    calls = list(answer.get("tool_calls") or ())
    plain = "\n".join([*texts_of(answer), *map(call_text, calls)])
    if chat is None or not calls:
        return plain
    continued = messages[-1:] if messages and messages[-1]["role"] == "assistant" else []
    earlier = [dict(message) for message in messages[: len(messages) - len(continued)]]
    content = "".join(texts_of(continued[0])) if continued else ""
    try:
        text = chat([*earlier, {**flatten(answer), "content": content}])
        _, _, ending = chat([*earlier, {"role": "assistant", "content": MARK}]).partition(MARK)
    except Exception:  # noqa: BLE001  as in `_renders`
        return plain
    written = text.removeprefix(before).removesuffix(ending)
    is_written = text.startswith(before) and all(_tool_name(call) in written for call in calls)
    return written if is_written else plain
