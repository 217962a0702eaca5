"""Texts, text pairs, and a query with its document, cut into tokens, words, sentences, passages or spans."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.util import find_spec
from itertools import chain, pairwise
from math import ceil
from typing import Annotated, Any, ClassVar, Literal, Protocol, TypeAlias

import numpy as np

from pertinent._optional import optional
from pertinent.array_types import Array, Floats, Ints, Masks
from pertinent.config.fingerprints import digest
from pertinent.config.serialization import Shape, expect
from pertinent.errors import InputError, SettingError, require, unknown
from pertinent.inputs.base import Features, Input, Truncation, objects
from pertinent.inputs.modality import Modality, TextColumns, modalities

COARSE_TO_FINE = "coarse-to-fine"
"""Words, of which larger parts are explained first."""

GRANULARITIES = ("words", "tokens", "sentences", "passages", COARSE_TO_FINE)

PASSAGE = 20
"""Number of words of a passage, unless its name says otherwise, as in ``"passages:50"``."""

MOST_WORDS = 500
"""A text of more words is explained by passages by default: about 200, or fewer of `PASSAGE` words."""

# Each CJK character is a word; combining marks stay with their letters; a run of punctuation is a word.
_WORD = re.compile(
    r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]"
    r"|[\w\u0300-\u036f\u0900-\u0963\u0966-\u0eff]+(?:[-'’][\w\u0300-\u036f]+)*"
    r"|[^\w\s]+"
)
_THAI = re.compile(r"[\u0e00-\u0e7f]+")
_SURROGATE = re.compile("[\ud800-\udfff]")

# Each run of end marks or of spaces is read once, so that the time is linear in the length of the text.
_END = ".!?…。！？"
SENTENCE = re.compile(rf"\S(?:[^{_END}\n]+|[{_END}]+(?![{_END}\s]|\Z))*[{_END}]*")
"""A sentence ends after end marks that a space or the end of the text follows, and at the end of a line."""

_SPACE = r"[^\S\n]"
PARAGRAPH = re.compile(rf"\S+(?:(?=\s){_SPACE}*(?:\n{_SPACE}*)?\S+)*(?:{_SPACE}+(?=\n{_SPACE}*\n\s*\S))?")
"""A paragraph ends at a blank line, or after the last character that is no space."""

_Fixed: TypeAlias = Literal["none", "first", "second"]

FORMS: Mapping[tuple[str, ...], _Fixed] = {
    ("query", "document"): "first",
    ("question", "context"): "first",
    ("premise", "hypothesis"): "none",
    ("text", "text_pair"): "none",
    ("text",): "none",
}
"""The keys of texts that are given as mappings, and which of the two texts is fixed."""


class Segmented(Protocol):
    """A text of one or several strings, some of which are fixed."""

    @property
    def segments(self) -> tuple[str, ...]:
        """The strings."""

    def removable(self, segment: int) -> bool:
        """Whether features of this segment may be removed."""


@dataclass(frozen=True)
class Text:
    """A text, or a pair that is read together; features of a fixed text are never removed.

    >>> Text.from_input({"query": "Who won?", "document": "Ada won."}).fixed
    'first'
    """

    first: str
    second: str | None = None
    fixed: _Fixed = "none"

    @classmethod
    def from_input(cls, raw: Any) -> Text:
        """The text of whatever the user gave: a text, a pair, or a mapping with a query and a document."""
        if hasattr(raw, "to_dict") and hasattr(raw, "index"):  # a row of a data frame
            raw = raw.to_dict()
        if isinstance(raw, Text):
            text = raw
        elif isinstance(raw, str):
            text = cls(raw)
        elif isinstance(raw, Mapping):
            text = cls._from_mapping(raw)
        elif isinstance(raw, Sequence) and len(raw) == 2 and all(isinstance(part, str) for part in raw):
            text = cls(*raw)
        else:
            raise InputError(
                "A text must be a string, a pair of strings, {'query': …, 'document': …} or "
                f"{{'text': …, 'text_pair': …}}, but got {type(raw).__name__}."
            )
        if not any(map(text.removable, range(len(text.segments)))):
            raise InputError(
                f"`fixed` must be 'none' for a single text, but got {text.fixed!r}: nothing could be removed."
            )
        for i, segment in enumerate(text.segments):
            if not segment.strip() and text.removable(i):
                raise InputError("The text is empty or blank: there is nothing to explain.")
            broken = _SURROGATE.search(segment)
            if broken:
                raise InputError(
                    f"The text holds half a character (a lone surrogate, {broken.group()!r}) at position "
                    f"{broken.start()}, which cannot be encoded: replace it."
                )
        return text

    @classmethod
    def _from_mapping(cls, raw: Mapping[str, Any]) -> Text:
        given = {key: value for key, value in raw.items() if value is not None}
        for keys, fixed in FORMS.items():
            if set(keys) == set(given) and all(isinstance(value, str) for value in given.values()):
                return cls(given[keys[0]], given[keys[1]] if len(keys) > 1 else None, fixed)
        raise InputError(
            "A text given as a mapping must have the keys 'text'; 'text' and 'text_pair'; 'premise' "
            "and 'hypothesis'; 'query' and 'document' (query fixed); or 'question' and 'context' (question "
            f"fixed), but has {sorted(raw)}."
        )

    @property
    def segments(self) -> tuple[str, ...]:
        """The one or two strings."""
        return (self.first,) if self.second is None else (self.first, self.second)

    def removable(self, segment: int) -> bool:
        """Whether features of this segment may be removed."""
        return self.fixed != ("first", "second")[segment]


@dataclass(frozen=True, eq=False)
class Tokens:
    """What a transformer reads: one entry per token, special tokens included.

    `feature` is the mask column that each token belongs to, −1 where the token is fixed. `place` are the
    characters that it covers, rows of (segment, start, end); the segment of a special token is −1.

    Of a text that is read in windows, the tokens of each window follow those of the window before, with their
    special tokens. `lengths` are the numbers of tokens of the windows, and `repeated` says which tokens also
    stand in an earlier window.

    `scored` marks the tokens of an answer whose likelihood a language model is asked for. An answer and its
    rival are two windows, each after the same prompt. `variants` are for each feature the tokens that may
    stand in place of its own. `answers` are the tokens of the answer and of its rival where a decoder of its
    own reads them; then none of the other tokens is scored. `span` are the first token of the answer whose
    likelihood is asked for, and the one after the last; (0, 0) if no span of it is.
    """

    ids: Ints
    types: Ints
    feature: Ints
    mask_id: int | None
    pad_id: int | None
    place: Ints | None = None
    lengths: tuple[int, ...] = ()
    repeated: Masks | None = None
    scored: Masks | None = None
    variants: tuple[tuple[Ints, ...], ...] = ()
    answers: tuple[Ints, ...] = ()
    span: tuple[int, int] = (0, 0)

    @cached_property
    def windows(self) -> tuple[tuple[slice, Tokens], ...]:
        """Where each window stands among the tokens, and its own tokens; a plain text is one window."""
        if not self.lengths:
            return ((slice(0, len(self.ids)), self),)
        ends = np.cumsum(self.lengths).tolist()
        return tuple((own, self._window(own)) for own in map(slice, [0, *ends[:-1]], ends))

    @property
    def longest(self) -> int:
        """Number of tokens that are read together at most."""
        return max(self.lengths, default=len(self.ids))

    def _window(self, own: slice) -> Tokens:
        place = None if self.place is None else self.place[own]
        made = Tokens(self.ids[own], self.types[own], self.feature[own], self.mask_id, self.pad_id, place)
        return made if self.scored is None else replace(made, scored=self.scored[own])


@dataclass(frozen=True, eq=False)
class TextInput(Input):
    """A text and the character spans of its features, rows of (segment, start, end).

    Tokens are not saved, because the tokenizer can make them again.
    """

    text: Text
    spans: Annotated[Ints, Shape("features", 3)]
    tokens: Tokens | None = field(default=None, compare=False)
    kind: ClassVar[str] = "text"
    has_words = True

    @cached_property
    def token_counts(self) -> Floats:
        """Number of tokens of each feature; the last entry counts the fixed ones."""
        assert self.tokens is not None
        counts = np.bincount(self.tokens.feature % (self.n_features + 1), minlength=self.n_features + 1)
        return counts.astype(np.float32)  # sums over masks are exact, and faster than with integers

    @property
    def length(self) -> int:
        """Number of tokens, or of features if there are no tokens."""
        return self.n_features if self.tokens is None else len(self.tokens.ids)

    @property
    def levels(self) -> tuple[Ints, ...]:
        """Of words that are explained from coarse to fine: paragraphs (or passages), sentences, words."""
        if self.granularity != COARSE_TO_FINE:
            return ()
        every = np.arange(self.n_features)
        found = [*(self._owners(spans) for spans in (self._coarsest(), cut(self.text, "sentences"))), every]
        return (*(own for own, after in pairwise(found) if 0 < own.max() < after.max()), every)

    def _coarsest(self) -> Ints:
        """The spans of paragraphs, or of passages if there is one paragraph alone."""
        spans = _paragraphs(self.text)
        return spans if len(spans) > 1 else cut(self.text, f"passages:{max(PASSAGE, self.n_features // 40)}")

    def _owners(self, spans: Ints) -> Ints:
        """The number of the span that each feature begins in."""
        longest = 1 + max(map(len, self.text.segments))
        starts = spans[:, 0] * longest + spans[:, 1]
        own = self.spans[:, 0] * longest + self.spans[:, 1]
        return np.asarray(np.maximum(np.searchsorted(starts, own, side="right") - 1, 0))

    def with_segments(self, segments: Sequence[str]) -> Any:
        """The text with other strings, for a model that reads strings."""
        return Text(segments[0], segments[1] if len(segments) > 1 else None, self.text.fixed)

    @property
    def content(self) -> Hashable:
        """The text."""
        return self.text

    @property
    def own_features(self) -> str | Array:
        """The granularity, or the spans that the user cut."""
        return self.spans if self.granularity == "spans" else self.granularity

    def feature_values(self) -> Array:
        """The words themselves."""
        return objects(self.features)

    @property
    def search_text(self) -> str:
        """The whole text."""
        return " ".join(self.text.segments)

    def for_shap(self, scores: Floats) -> tuple[Array, Array, tuple[str, ...] | None]:
        """Each feature with the characters up to the next, which shap's plot puts side by side."""
        segments, spans = self.text.segments, self.spans.tolist()
        pieces = []
        for (segment, start, _), after in zip(spans, [*spans[1:], None], strict=True):
            end = after[1] if after is not None and after[0] == segment else len(segments[segment])
            pieces.append(segments[segment][start:end])
        return scores, objects(pieces), self.features

    def annotated(self, annotation: Array) -> Masks | None:
        """The features that share a character with a span (start, end), or (segment, start, end)."""
        if annotation.ndim != 2 or annotation.dtype.kind not in "iu":
            return None
        annotation = _span_rows(self.text, annotation, "annotations")
        mine, theirs = self.spans[:, None], annotation[None]
        shared = (mine[..., 1] < theirs[..., 2]) & (theirs[..., 1] < mine[..., 2])
        return np.asarray((shared & (mine[..., 0] == theirs[..., 0])).any(axis=1))

    def restored(self) -> TextInput:
        """The input with its text for `raw`, after a check that each span lies inside its segment."""
        segment, start, end = self.spans.T
        lengths = np.array([len(part) for part in self.text.segments])
        inside = (segment >= 0) & (segment < len(lengths)) & (start >= 0) & (start <= end)
        inside[inside] &= end[inside] <= lengths[segment[inside]]
        expect(bool(inside.all()), "spans", "inside the text", self.spans[~inside].tolist()[:1])
        return replace(self, raw=self.text)


def default_features(n_words: int) -> str:
    """Words, or for a long text passages."""
    return "words" if n_words <= MOST_WORDS else f"passages:{max(PASSAGE, ceil(n_words / 200))}"


def long_text_notes(granularity: str, n_words: int) -> tuple[str, ...]:
    """What a text that is explained by passages by default says of itself."""
    if granularity == "words":
        return ()
    return (f"long text: {n_words:,} words are explained by passages; features='words' explains each word",)


def cut(text: Segmented, granularity: str) -> Ints:
    """The (segment, start, end) spans of every word, sentence or passage of the removable segments."""
    granularity, _, size = granularity.partition(":")
    if granularity not in GRANULARITIES:
        raise unknown("text feature", granularity, GRANULARITIES)
    if granularity == "passages":
        return _passages(text, size or str(PASSAGE))
    granularity = "words" if granularity == COARSE_TO_FINE else granularity
    require(not size, "features", f"{granularity!r} without a number", f"{granularity}:{size}")
    pattern = SENTENCE if granularity == "sentences" else _WORD
    spans = [
        (i, found.start(), found.end())
        for i, segment in enumerate(text.segments)
        if text.removable(i)
        for found in pattern.finditer(segment)
    ]
    if granularity == "words" and any(map(_THAI.search, text.segments)) and find_spec("pythainlp"):
        spans = [part for span in spans for part in _thai_words(span, text.segments[span[0]])]
    return np.array(spans, dtype=np.int64).reshape(-1, 3)


def _thai_words(span: tuple[int, int, int], segment: str) -> list[tuple[int, int, int]]:
    """The words in a run of Thai letters, which has no spaces, by pythainlp; other spans as they are."""
    number, start, end = span
    if not _THAI.fullmatch(segment, start, end):
        return [span]
    ends = np.cumsum([len(word) for word in optional("pythainlp").word_tokenize(segment[start:end])])
    bounds = [start, *(start + ends).tolist()]
    return [(number, *pair) for pair in pairwise(bounds)] if bounds[-1] == end else [span]


def _passages(text: Segmented, size: str) -> Ints:
    """Neighbouring sentences of together at most `size` words; longer sentences are cut into equal parts."""
    require(size.isdecimal() and int(size) > 0, "features", "'passages' with a number of words", size)
    words, sentences, most = cut(text, "words"), cut(text, "sentences"), int(size)
    passages: list[list[int]] = []
    for segment in range(len(text.segments)):
        own, room = words[words[:, 0] == segment], 0
        for span in sentences[sentences[:, 0] == segment, 1:]:
            first, last = np.searchsorted(own[:, 1], span)
            n = int(last - first)
            if 0 < n <= room:
                passages[-1][2], room = int(own[last - 1, 2]), room - n
            elif n:
                for part in np.array_split(own[first:last], ceil(n / most)):
                    passages.append([segment, int(part[0, 1]), int(part[-1, 2])])
                    room = most - len(part)
    return np.array(passages, dtype=np.int64).reshape(-1, 3)


def _paragraphs(text: Segmented) -> Ints:
    """The spans of paragraphs of the removable segments: blank lines stand between them."""
    spans = [
        (i, found.start(), found.end())
        for i, segment in enumerate(text.segments)
        if text.removable(i)
        for found in PARAGRAPH.finditer(segment)
    ]
    return np.array(spans, dtype=np.int64).reshape(-1, 3)


def own_spans(text: Segmented, spans: Any) -> Ints:
    """Spans that the user cut, as rows of (segment, start, end) in the order of the text, checked.

    They are (start, end) of a single text, or (segment, start, end) where 0 is the first of a pair and
    1 the second. Characters outside of them are fixed.

    >>> own_spans(Text("not bad at all"), [(8, 14), (0, 7)]).tolist()
    [[0, 0, 7], [0, 8, 14]]
    """
    rows = _span_rows(text, spans, "features")
    rows = rows[np.lexsort((rows[:, 1], rows[:, 0]))]
    for segment, start, end in rows.tolist():
        if not text.removable(segment):
            raise InputError(
                f"The span {(segment, start, end)} is not in a text that features may be cut of."
            )
    for before, after in pairwise(rows.tolist()):
        if before[0] == after[0] and before[2] > after[1]:
            raise InputError(f"Spans must not overlap, but {tuple(before[1:])} and {tuple(after[1:])} do.")
    return rows


def _span_rows(text: Segmented, spans: Any, name: str) -> Ints:
    """Spans as rows of (segment, start, end), each checked to lie in the text."""
    try:
        rows = np.asarray(spans)
    except ValueError:
        rows = np.empty(0)
    if rows.ndim == 2 and rows.shape[1] == 2 and len(text.segments) == 1:
        rows = np.insert(rows, 0, 0, axis=1)
    if rows.ndim != 2 or rows.shape[1] != 3 or not len(rows) or rows.dtype.kind not in "iu":
        wanted = "(start, end)" if len(text.segments) == 1 else "(segment, start, end)"
        given = reprlib.repr(spans)
        raise InputError(f"`{name}` must be a list of spans {wanted} in characters, but got {given}.")
    lengths = [len(segment) for segment in text.segments]
    for segment, start, end in rows.tolist():
        if not 0 <= segment < len(lengths) or not 0 <= start < end <= lengths[segment]:
            size = " and ".join(map(str, lengths))
            raise InputError(
                f"The span {(segment, start, end)} in `{name}` does not lie in the text of {size} characters."
            )
    return rows.astype(np.int64)


def text_input(
    text: Text,
    granularity: str,
    spans: Ints,
    tokens: Tokens | None = None,
    notes: tuple[str, ...] = (),
    *,
    truncation: Truncation | None = None,
) -> TextInput:
    """Make an input from a text and its spans; features are named by the characters they cover."""
    segments = text.segments
    names = tuple([segments[i][a:b] for i, a, b in spans.tolist()])
    content = [text.first, text.second, text.fixed, granularity, tokens is None or tokens.ids]
    if granularity == "spans":
        content.append(spans)
    fingerprint = digest(*content)
    return TextInput(text, names, granularity, notes, fingerprint, text, spans, tokens, truncation=truncation)


@modalities.register("text")
@dataclass(frozen=True)
class TextModality(Modality):
    """Texts, pairs of texts, and queries with documents."""

    summary = "a text, a pair of texts, or a query and its document"
    plural = "texts"
    nouns = ("text", "word")
    coarser = "features='coarse-to-fine' or 'sentences'"
    is_trainable = True
    flag = "inputs"
    in_lines = True
    input_type = TextInput
    features = "words"
    aligned = False
    precedence = 2
    default_removal = "slice-out"
    fixed_baseline = "mask-token"
    drawn_baseline = "random-token"
    scorer = "pertinent.learners.networks.word_scorer:WordScorer"
    drawing = "pertinent.rendering.drawings.text:TextDrawing"

    def recognises(self, raw: Any) -> bool:
        """A string, a pair of strings, or a mapping with the keys of a text."""
        if isinstance(raw, Mapping):
            return set(raw) <= set(chain(*FORMS))
        return isinstance(raw, str | Text) or (isinstance(raw, tuple | list) and is_pair(tuple(raw)))

    def is_one(self, raw: Any) -> bool:
        """A tuple of two strings is a pair; a list of two is two texts."""
        return isinstance(raw, Text) or is_pair(raw)

    def split(self, raw: Any) -> Iterable[Any] | None:
        """The texts in a pandas Series, a frame of one column, an array or any other collection."""
        found = texts_in(raw)
        return super().split(raw) if found is None else found

    def prepare(self, raw: Any, features: Features | None = None) -> TextInput:
        """Cut a text into words, sentences or spans of the user's own, for a model that reads strings."""
        text = Text.from_input(raw)
        notes: tuple[str, ...] = ()
        if features is None:
            n_words = len(cut(text, "words"))
            features = default_features(n_words)
            notes = long_text_notes(features, n_words)
        if not isinstance(features, str):
            return text_input(text, "spans", own_spans(text, features))
        if features == "tokens":
            raise InputError(
                "The features 'tokens' need a transformer; this model reads strings: use 'words'."
            )
        return text_input(text, features, cut(text, features), notes=notes)

    def text_columns(self, names: Sequence[str], chosen: TextColumns) -> dict[str, str]:
        """Return the columns chosen; by default the first form of text that the file has all columns of."""
        text = chosen.text
        if chosen == TextColumns():
            for form in FORMS:
                if set(form) <= set(names):
                    return {name: name for name in form}
            text = names[0] if len(names) == 1 else "text"
        columns = {"text": text or "text"} | ({"text_pair": chosen.pair} if chosen.pair else {})
        if chosen.query is not None:
            columns = {"query": chosen.query, "document": text or "text"}
        for name in columns.values():
            if name not in names:
                raise SettingError(f"{unknown('column', name, names)} Say which with --column.")
        return columns

    def baseline_for(self, input: TextInput, background: Any, *, drawn: bool) -> str:
        """The mask token, or a zero vector where the tokenizer has none."""
        has_none = input.tokens is not None and input.tokens.mask_id is None
        return (
            "zero-vector" if has_none and not drawn else super().baseline_for(input, background, drawn=drawn)
        )


def is_pair(raw: Any) -> bool:
    """Whether an input is a tuple of two strings."""
    return isinstance(raw, tuple) and len(raw) == 2 and all(isinstance(v, str) for v in raw)


def texts_in(raw: Any) -> list[str] | None:
    """The texts in a pandas Series, a frame of one column or an array, if that is what it holds.

    A row of a frame is a Series too, but its index holds the names of columns.
    """
    if hasattr(raw, "iterrows"):
        if raw.shape[1] != 1:
            return None
        raw = raw.iloc[:, 0]
    elif hasattr(raw, "index") and hasattr(raw, "iloc"):
        if any(isinstance(name, str) for name in raw.index):
            return None
    elif not isinstance(raw, np.ndarray) or raw.ndim != 1:
        return None
    found = list(raw)
    return found if found and all(isinstance(text, str) for text in found) else None
