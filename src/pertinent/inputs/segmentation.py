"""Division of texts into words, sentences, lines, paragraphs and passages, close to Unicode's UAX #29."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable
from functools import cache
from importlib.util import find_spec
from itertools import accumulate, pairwise
from math import ceil
from typing import Any, Protocol

import numpy as np

from pertinent._optional import optional
from pertinent.array_types import Ints
from pertinent.errors import InputError, require, unknown

COARSE_TO_FINE = "coarse-to-fine"
"""Granularity of words that are explained after larger units."""

GRANULARITIES = ("words", "tokens", "sentences", "lines", "paragraphs", "passages", COARSE_TO_FINE)

PASSAGE = 20
"""Default number of words of a passage."""

MOST_WORDS = 500
"""A text of more words is explained by passages by default: about 200, each of at least `PASSAGE` words."""

MOST_SENTENCES = 200
"""A prompt of more sentences before its question is explained by passages by default."""

_IDEOGRAPH = r"\p{Han}\p{Hiragana}\p{Katakana}\u3040-\u30ff"
_UNSPACED = r"\p{Lao}\p{Khmer}\p{Myanmar}"
_LETTER = rf"[[\w\p{{N}}\u00ad]--[{_IDEOGRAPH}\p{{Thai}}{_UNSPACED}]]"
_LOCAL = r"A-Za-z0-9._%+-"

# Possessive quantifiers and the lookbehind of e-mail addresses keep the time linear in the text's length.
_WORD = rf"""(?xV1)
  [A-Za-z]++(?=[\s,]|\Z)  # shortcut for most English words
| (?:https?://|www\.)[[!-~\p{{L}}\p{{N}}]--[<>"{_IDEOGRAPH}\p{{Thai}}]]*[\p{{Latin}}\p{{N}}/\#=&_-]
| (?<![{_LOCAL}])(?=[A-Za-z0-9])[{_LOCAL}]++@[A-Za-z0-9-]++(?:\.[A-Za-z0-9-]++)++
| [{_IDEOGRAPH}]\p{{M}}*+
| (?P<thai>\p{{Thai}}++)
| (?P<unspaced>[{_UNSPACED}]++)
| {_LETTER}++(?:(?:[-'’]|(?<=\p{{Nd}})[.,](?=\p{{Nd}})){_LETTER}++)*+  # don't, well-known, 3.14
| (?:[^\w\s][\p{{M}}\p{{Cf}}]*+)++  # punctuation and symbols
"""

# A sentence ends after . ! ? and … if a space or the end of the text follows; after the end marks of scripts
# such as Chinese, Hindi or Arabic always, with the closing quotation marks; and at the end of a line.
_SENTENCE = r"""(?xV1)
\S
(?: [^.!?…\p{SB=STerm}\n]++ | [.!?…]++(?![.!?…\p{SB=STerm}\s]|\Z) )*+
(?: [.!?…]*+[\p{SB=STerm}--[.!?…]][.!?…\p{SB=STerm}]*+[\p{Pe}\p{Pf}"']*+ | [.!?…]*+ )
"""

_SPACE = r"[^\S\n]"
_PATTERNS = {
    "words": _WORD,
    "sentences": _SENTENCE,
    "letters": r"\X",
    "characters": rf"[{_IDEOGRAPH}\p{{Thai}}{_UNSPACED}]",
    "lines": r"\S(?:[^\n]*\S)?",
    # A paragraph ends at a blank line, or after the last character that is no space.
    "paragraphs": rf"\S+(?:(?=\s){_SPACE}*(?:\n{_SPACE}*)?\S+)*(?:{_SPACE}+(?=\n{_SPACE}*\n\s*\S))?",
}


class Segmented(Protocol):
    """A text of one or several strings, some of which are fixed."""

    @property
    def segments(self) -> tuple[str, ...]:
        """Return the strings."""

    def removable(self, segment: int) -> bool:
        """Return whether features of this segment may be removed."""


@cache
def pattern(unit: str) -> Any:
    """Return the compiled pattern of a unit, such as words or sentences."""
    import regex

    return regex.compile(_PATTERNS[unit])


def cut(text: Segmented, granularity: str) -> Ints:
    """Return the (segment, start, end) spans of the units of a granularity in the removable segments.

    >>> from pertinent.inputs.text import Text
    >>> cut(Text("It costs 3.14."), "words").tolist()
    [[0, 0, 2], [0, 3, 8], [0, 9, 13], [0, 13, 14]]
    """
    unit, _, size = granularity.partition(":")
    if unit not in GRANULARITIES:
        raise unknown("text feature", unit, GRANULARITIES)
    if unit == "passages":
        return _passages(text, size or str(PASSAGE))
    require(not size, "features", f"{unit!r} without a number", granularity)
    unit = "words" if unit == COARSE_TO_FINE else unit
    spans = [
        (i, *span)
        for i, segment in enumerate(text.segments)
        if text.removable(i)
        for match in pattern(unit).finditer(segment)
        for span in (_letters(match) if match.lastgroup else (match.span(),))
    ]
    return np.array(spans, dtype=np.int64).reshape(-1, 3)


def _letters(match: Any) -> Iterable[tuple[int, int]]:
    """Return the span of each letter in a run without spaces; of each Thai word if pythainlp is installed."""
    run = match.group()
    parts = []
    if match.lastgroup == "thai" and find_spec("pythainlp"):
        parts = optional("pythainlp").word_tokenize(run)
    if "".join(parts) != run:
        parts = pattern("letters").findall(run)
    return pairwise(accumulate(map(len, parts), initial=match.start()))


def _passages(text: Segmented, size: str) -> Ints:
    """Return groups of adjacent sentences with at most `size` words; longer sentences are split equally.

    Two characters of a script without spaces, such as Chinese, count as a word.
    """
    require(size.isdecimal() and int(size) > 0, "features", "'passages' with a number of words", size)
    words, sentences, limit = cut(text, "words"), cut(text, "sentences"), int(size)
    passages: list[list[int]] = []
    for segment, string in enumerate(text.segments):
        spans, free = words[words[:, 0] == segment, 1:], 0.0
        sizes = np.arange(len(spans) + 1) * 1.0
        if pattern("characters").search(string):
            sizes = np.cumsum([0.0, *(_size(string[start:end]) for start, end in spans.tolist())])
        for sentence in sentences[sentences[:, 0] == segment, 1:]:
            first, last = np.searchsorted(spans[:, 0], sentence)
            n_words = sizes[last] - sizes[first]
            if 0 < n_words <= free:
                passages[-1][2], free = int(spans[last - 1, 1]), free - n_words
            elif n_words:
                for part in np.array_split(np.arange(first, last), ceil(n_words / limit)):
                    passages.append([segment, int(spans[part[0], 0]), int(spans[part[-1], 1])])
                    free = limit - (sizes[part[-1] + 1] - sizes[part[0]])
    return np.array(passages, dtype=np.int64).reshape(-1, 3)


def _size(word: str) -> float:
    """Return 1 for a word, and 0.5 for a character of a script without spaces."""
    return 0.5 if pattern("characters").match(word) else 1.0


def default_features(n_words: int, n_sentences: int = 1) -> str:
    """Return the default granularity: words, or passages for a long text; sentences if they are counted."""
    if 1 < n_sentences <= MOST_SENTENCES:
        return "sentences"
    return "words" if n_words <= MOST_WORDS else f"passages:{max(PASSAGE, ceil(n_words / 200))}"


def long_text_notes(granularity: str, n_words: int) -> tuple[str, ...]:
    """Return the note that a long text is explained by passages; empty for other texts."""
    if not granularity.startswith("passages"):
        return ()
    return (f"long text: {n_words:,} words are explained by passages; features='words' explains each word",)


def custom_spans(text: Segmented, spans: Any) -> Ints:
    """Check custom spans, and return them as sorted rows of (segment, start, end).

    Spans are (start, end) in a single text, or (segment, start, end) in a pair with segments 0 and 1.
    Characters outside the spans are fixed.

    >>> from pertinent.inputs.text import Text
    >>> custom_spans(Text("not bad at all"), [(8, 14), (0, 7)]).tolist()
    [[0, 0, 7], [0, 8, 14]]
    """
    rows = span_rows(text, spans, "features")
    rows = rows[np.lexsort((rows[:, 1], rows[:, 0]))]
    for segment, start, end in rows.tolist():
        if not text.removable(segment):
            raise InputError(f"The span {(segment, start, end)} is in a text that is never removed.")
    for before, after in pairwise(rows.tolist()):
        if before[0] == after[0] and before[2] > after[1]:
            raise InputError(f"Spans must not overlap, but {tuple(before[1:])} and {tuple(after[1:])} do.")
    return rows


def span_rows(text: Segmented, spans: Any, name: str) -> Ints:
    """Check that spans lie in the text, and return them as rows of (segment, start, end)."""
    try:
        rows = np.asarray(spans)
    except ValueError:
        rows = np.empty(0)
    if rows.ndim == 2 and rows.shape[1] == 2 and len(text.segments) == 1:
        rows = np.insert(rows, 0, 0, axis=1)
    if rows.ndim != 2 or rows.shape[1] != 3 or not len(rows) or rows.dtype.kind not in "iu":
        form = "(start, end)" if len(text.segments) == 1 else "(segment, start, end)"
        raise InputError(
            f"`{name}` must be a list of spans {form} in characters, but got {reprlib.repr(spans)}."
        )
    lengths = [len(segment) for segment in text.segments]
    for segment, start, end in rows.tolist():
        if not 0 <= segment < len(lengths) or not 0 <= start < end <= lengths[segment]:
            size = " and ".join(map(str, lengths))
            raise InputError(
                f"The span {(segment, start, end)} in `{name}` does not lie in the text of {size} characters."
            )
    return rows.astype(np.int64)
