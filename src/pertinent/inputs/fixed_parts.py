"""The parts of a prompt that are held fixed, by the user's choice or by default."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, TypeGuard

from pertinent.errors import InputError, safe_repr
from pertinent.inputs.prompt_request import Span, request_spans
from pertinent.inputs.segmentation import pattern

Role: TypeAlias = Literal["part", "held", "fixed", "template"]
"""Role of a string: it may be removed; it is held by `Prompt.fixed` or by default; it is always fixed, as the
text around slots; or the chat template adds it."""

NONE = "none"
"""Value of `Prompt.fixed` that holds nothing."""


@dataclass(frozen=True)
class Content:
    """The content of a chat message, or a whole text, divided into strings."""

    role: str
    strings: Sequence[tuple[str, Role]]
    message: int = 0

    @property
    def text(self) -> str:
        """Return the whole content."""
        return "".join(string for string, _ in self.strings)

    @property
    def has_parts(self) -> bool:
        """Return whether anything can be removed."""
        return any(role == "part" and string.strip() for string, role in self.strings)

    def hold(self, spans: Sequence[Span]) -> Content:
        """Return the content with these characters of its only string held."""
        ((text, _),) = self.strings
        return replace(
            self, strings=[(part, "part" if free else "held") for part, free in divide(text, spans)]
        )

    def strip(self) -> Content:
        """Return the content without spaces at its start and end."""
        strings = list(self.strings)
        for index, strip in ((0, str.lstrip), (-1, str.rstrip)):
            while strings and not strip(strings[index][0]):
                strings.pop(index)
            if strings:
                strings[index] = (strip(strings[index][0]), strings[index][1])
        return replace(self, strings=strings)


def hold(contents: Sequence[Content], fixed: Any) -> list[Content]:
    """Return the contents with the parts that `Prompt.fixed` holds."""
    if fixed == NONE:
        return list(contents)
    if fixed is None:
        return _hold_request(contents)
    parts = [fixed] if isinstance(fixed, str) else fixed
    if is_char_span(fixed):
        parts, text = (), contents[0].text
        if not 0 <= fixed[0] < fixed[1] <= len(text):
            raise InputError(
                f"The span {fixed} in `fixed` does not lie in the prompt of {len(text)} characters."
            )
    for part in parts:
        if not any(part in string for content in contents for string, _ in content.strings):
            raise InputError(f"`fixed` must be a part of the prompt or 'none', got {safe_repr(part)}.")
    held = []
    for content in contents:
        strings: list[tuple[str, Role]] = []
        for string, role in content.strings:
            spans = (
                [fixed] if is_char_span(fixed) else [s for part in parts for s in occurrences(string, part)]
            )
            divided = divide(string, spans) if role == "part" else []
            strings += [(text, "part" if free else "held") for text, free in divided] or [(string, role)]
        held.append(replace(content, strings=strings))
    if not any(content.has_parts for content in held):
        raise InputError("`fixed` holds the whole prompt, so nothing can be removed: fix less, or 'none'.")
    return held


def is_char_span(fixed: Any) -> TypeGuard[Span]:
    """Return whether `Prompt.fixed` is the start and end of characters."""
    return isinstance(fixed, tuple) and len(fixed) == 2 and all(type(end) is int for end in fixed)


def _hold_request(contents: Sequence[Content]) -> list[Content]:
    """Return the contents with system messages and the request of the last user message held.

    If nothing remains, system messages of several sentences are not held, or else the request is not.
    """
    if any(role == "fixed" for content in contents for _, role in content.strings):
        return list(contents)
    whole = {i: [(0, len(content.text))] for i, content in enumerate(contents)}
    system = {i: whole[i] for i, content in enumerate(contents) if content.role in ("system", "developer")}
    users = [i for i, content in enumerate(contents) if content.role == "user"]
    request: dict[int, list[Span]] = {}
    if users:
        text = contents[users[-1]].text
        request = {users[-1]: whole[users[-1]] if _n_sentences(text) == 1 else request_spans(text)}
    n_system = sum(_n_sentences(contents[i].text) for i in system)
    for spans in (system | request, request if n_system > 1 else system, system):
        held = [content.hold(spans.get(i, [])) for i, content in enumerate(contents)]
        if any(content.has_parts for content in held):
            return held
    return list(contents)


def _n_sentences(text: str) -> int:
    return sum(1 for _ in pattern("sentences").finditer(text))


def divide(text: str, held: Iterable[Span]) -> list[tuple[str, bool]]:
    """Divide a text into strings, each with whether it may be removed; spaces around them are held.

    >>> divide("Ann won. Who won?", [(9, 17)])
    [('Ann won.', True), (' Who won?', False)]
    """
    spans = sorted(held)
    if not spans:
        return [(text, True)] if text else []
    strings: list[tuple[str, bool]] = []
    fixed, position = "", 0
    for start, end in [*spans, (len(text), len(text))]:
        free = text[position:start]
        n_before, core = len(free) - len(free.lstrip()), free.strip()
        if core:
            strings += [(fixed + free[:n_before], False), (core, True)]
            fixed = free[n_before + len(core) :]
        else:
            fixed += free
        fixed += text[max(position, start) : end]
        position = max(position, end)
    return [(string, free) for string, free in [*strings, (fixed, False)] if string]


def occurrences(text: str, part: str) -> list[Span]:
    """Return the characters of each occurrence of a part in a text.

    >>> occurrences("ab ab", "ab")
    [(0, 2), (3, 5)]
    """
    spans: list[Span] = []
    start = text.find(part)
    while start >= 0:
        spans.append((start, start + len(part)))
        start = text.find(part, start + len(part))
    return spans
