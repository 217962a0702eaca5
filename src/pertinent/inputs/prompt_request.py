"""The request of a prompt: its question or instruction, with a cue such as "Answer:".

Removing the request would change what the model is asked to do, so its effect says little about the answer.
"""

from __future__ import annotations

from functools import cache
from typing import Any, TypeAlias

from pertinent.inputs.segmentation import pattern

Span: TypeAlias = tuple[int, int]

_MARKS = {
    "question": r"""[?？؟՞፧⁇⁈⁉‽][\p{Pe}\p{Pf}"'*_]*$""",
    "colon": r"""[:：][*_]*$""",
    "cue": r"""(?:[:：]|[=\-–—]>|[→=|])[*_]*$""",
    "end": r"""[.!?…\p{SB=STerm}][\p{Pe}\p{Pf}"'*_]*$""",
    "instruction": r"""(?xi)^[^\w\s]*\s*(?:
        (?:question|q|instructions?|task|query|user|human)\s*\d*\s*[:：]
      | (?:(?:please|now|then|briefly|finally)\b,?\s*)*(?:
          analy[sz]e|answer|be|calculate|choose|classify|compare|complete|compute|consider|continue
        | convert|correct|create|decide|define|describe|determine|discuss|do|don['’]t|draft|ensure
        | evaluate|explain|extract|fill|find|finish|fix|generate|give|identify|imagine|infer
        | let['’]s|list|make|name|output|paraphrase|pick|predict|print|provide|read|reply|respond
        | rephrase|return|rewrite|say|select|show|simplify|solve|sort|suggest|summari[sz]e|tell
        | think|translate|use|verify|write
        )\b(?!\s*[:：])
      | please\b
    )""",
}


@cache
def _mark(name: str) -> Any:
    import regex

    return regex.compile(f"(?V1){_MARKS[name]}")


def request_spans(text: str) -> list[Span]:
    r"""Return the characters (start, end) of the request in a prompt; empty if none is recognised.

    The request is at the end: the last questions, instructions and lines that end in a colon, with a cue such
    as "Answer:" or an unfinished sentence after them. If the prompt ends in a statement or in a cue after a
    statement, the questions and instructions with which it begins are part of the request.

    >>> text = "Ann keeps the key. Bob keeps the map. Who keeps the map? Answer:"
    >>> [text[start:end] for start, end in request_spans(text)]
    ['Who keeps the map? Answer:']
    >>> text = "Summarise this article:\nAnn lost a key. Bob found it.\nSummary:"
    >>> [text[start:end] for start, end in request_spans(text)]
    ['Summarise this article:', 'Summary:']
    >>> request_spans("The capital of France is")
    [(0, 24)]
    """
    spans = [match.span() for match in pattern("sentences").finditer(text)]
    sentences = [text[start:end].strip() for start, end in spans]
    tail = len(sentences)
    ends_in_cue = bool(sentences) and _has(sentences[-1], "cue")
    if ends_in_cue or _continues(sentences):
        tail -= 1
    is_complete = tail < len(sentences) and not ends_in_cue  # a sentence to continue is a request
    while tail > 0 and _is_request(sentences[tail - 1]):
        tail, is_complete = tail - 1, True
    head = 0
    while not is_complete and head < tail and _is_request(sentences[head]):
        head += 1
    held = [(spans[0][0], spans[head - 1][1])] if head else []
    return [*held, (spans[tail][0], len(text))] if tail < len(sentences) else held


def _has(sentence: str, mark: str) -> bool:
    return _mark(mark).search(sentence) is not None


def _is_request(sentence: str) -> bool:
    return any(_has(sentence, mark) for mark in ("question", "colon", "instruction"))


def _continues(sentences: list[str]) -> bool:
    """Return whether the last sentence is unfinished, and not an entry of a list of such lines."""
    unfinished = [not _has(sentence, "end") and not _has(sentence, "colon") for sentence in sentences[-2:]]
    return bool(unfinished) and unfinished[-1] and not (len(unfinished) > 1 and unfinished[0])
