"""Named parts of the messages of a prompt, such as the chunks of a tool's result."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pertinent.errors import InputError
from pertinent.inputs.chat_messages import Message, texts_of
from pertinent.inputs.fixed_parts import Content, Role
from pertinent.printable import shorten

_SHOWN = 80
"""Number of characters of a part that its feature's name shows."""


@dataclass(frozen=True)
class PromptPart:
    """Characters of a message that are removed together.

    Attributes
    ----------
    message
        Index of the message, whose content is a text.
    start, end
        The characters in the content.
    name
        The name, such as ``"search result 2"``.
    held
        Whether the part is held fixed unless `Prompt.fixed` is passed.
    """

    message: int
    start: int
    end: int
    name: str
    held: bool = False


def divide_at_parts(messages: Sequence[Message], parts: Iterable[PromptPart], *, hold: bool) -> list[Content]:
    """Return the contents of messages with a text, divided at their parts.

    The text between parts is never removed. `hold` holds the parts that are held by default.
    """
    by_message: dict[int, list[PromptPart]] = {}
    for part in parts:
        by_message.setdefault(part.message, []).append(part)
    divided = []
    for index, message in enumerate(messages):
        texts = texts_of(message)
        if not texts:
            continue
        text = "".join(texts)
        strings: list[tuple[str, Role]] = []
        position = 0
        for part in sorted(by_message.pop(index, ()), key=lambda part: part.start):
            if not position <= part.start < part.end <= len(text):
                raise InputError(f"The part {part.name!r} must lie in its message and overlap no other part.")
            role: Role = "held" if hold and part.held else "part"
            strings.append((text[position : part.start], "fixed"))
            strings.append((text[part.start : part.end], role))
            position = part.end
        divided.append(Content(message["role"], [*strings, (text[position:], "fixed")], index))
    if by_message:
        raise InputError(f"`parts` must lie in the texts of messages, got one in message {min(by_message)}.")
    return divided


def names_of_strings(contents: Sequence[Content], parts: Sequence[PromptPart]) -> tuple[str, ...]:
    """Return the name of the part that contains each removable string, in order."""
    names = []
    for content in contents if parts else ():
        own, position = [part for part in parts if part.message == content.message], 0
        for string, role in content.strings:
            if role == "part" and string:
                names.append(next(part.name for part in own if part.start <= position < part.end))
            position += len(string)
    return tuple(names)


def feature_name(name: str, text: str) -> str:
    r"""Return the name of a feature: that of its part, and the beginning of its text.

    >>> feature_name("search result 2", "Bob keeps\nthe map.")
    'search result 2: Bob keeps the map.'
    """
    return f"{name}: {shorten(' '.join(text.split()), _SHOWN)}"
