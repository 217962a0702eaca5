"""Division of a text of a trace into chunks: entries of JSON, tagged blocks, paragraphs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator

from pertinent.inputs.fixed_parts import occurrences
from pertinent.inputs.prompt_request import Span
from pertinent.inputs.segmentation import pattern

_DECODER = json.JSONDecoder()

_TAGGED = re.compile(
    r"<(?P<tag>memory|memories|document|doc|chunk|passage|source|result)\b[^<>]*>.*?</(?P=tag)>",
    re.DOTALL | re.IGNORECASE,
)


def chunk_spans(text: str) -> list[Span]:
    r"""Return the characters (start, end) of each chunk of a tool's result.

    Chunks are the entries of a JSON list, which may be the longest value of an object; else tagged blocks
    such as ``<document>``; else paragraphs. A comma after an entry belongs to it.

    >>> text = '{"results": [{"id": 1}, {"id": 2}]}'
    >>> [text[start:end] for start, end in chunk_spans(text)]
    ['{"id": 1}, ', '{"id": 2}']
    >>> chunk_spans("Ann keeps the key.\n\nBob keeps the map.")
    [(0, 18), (20, 38)]
    """
    spans = _entries(text) or [span for _, span in tagged_spans(text)] or paragraph_spans(text)
    return spans if len(spans) > 1 else [(0, len(text))]


def paragraph_spans(text: str) -> list[Span]:
    """Return the characters of each paragraph."""
    return [match.span() for match in pattern("paragraphs").finditer(text)]


def step_spans(text: str) -> list[Span]:
    r"""Return the characters of each step of reasoning: paragraphs, or lines if there is one paragraph.

    >>> step_spans("First.\nThen.")
    [(0, 6), (7, 12)]
    """
    spans = paragraph_spans(text)
    return spans if len(spans) > 1 else [match.span() for match in pattern("lines").finditer(text)]


def tagged_spans(text: str) -> Iterator[tuple[str, Span]]:
    """Yield the tag and the characters of each block such as ``<memory>…</memory>``."""
    for match in _TAGGED.finditer(text):
        yield match["tag"].lower(), match.span()


def located_spans(text: str, chunks: Iterable[str]) -> list[Span]:
    """Return the characters of retrieved chunks that occur in a text; longer chunks come first."""
    spans: list[Span] = []
    for chunk in sorted({chunk.strip() for chunk in chunks} - {""}, key=len, reverse=True):
        for start, end in occurrences(text, chunk):
            if all(end <= a or start >= b for a, b in spans):
                spans.append((start, end))
    return sorted(spans)


def _entries(text: str) -> list[Span]:
    """Return the characters of each entry of the longest JSON list in a text; empty without a list."""
    start = len(text) - len(text.lstrip())
    if text[start : start + 1] not in ("[", "{"):
        return []
    try:
        _, end = _DECODER.raw_decode(text, start)
        if text[end:].strip():
            return []
        values = [(start, end)] if text[start] == "[" else _members(text, start)
    except (ValueError, RecursionError):
        return []
    lists = [span for span in values if text[span[0]] == "["]
    if not lists:
        return []
    return _elements(text, max(lists, key=lambda span: span[1] - span[0])[0])


def _elements(text: str, start: int) -> list[Span]:
    """Return the characters of each element of the JSON list that starts here, with the comma after it."""
    spans: list[Span] = []
    position = _skip(text, start + 1)
    while text[position] != "]":
        first = position
        _, end = _DECODER.raw_decode(text, position)
        position = _skip(text, end)
        if text[position] == ",":
            end = position = _skip(text, position + 1)
        spans.append((first, end))
    return spans


def _members(text: str, start: int) -> list[Span]:
    """Return the characters of each value of the JSON object that starts here."""
    spans: list[Span] = []
    position = _skip(text, start + 1)
    while text[position] != "}":
        _, end = _DECODER.raw_decode(text, position)
        first = _skip(text, _skip(text, end) + 1)
        _, end = _DECODER.raw_decode(text, first)
        spans.append((first, end))
        position = _skip(text, end)
        if text[position] == ",":
            position = _skip(text, position + 1)
    return spans


def _skip(text: str, position: int) -> int:
    """Return the position of the next character that is not a space."""
    while position < len(text) and text[position].isspace():
        position += 1
    return position
