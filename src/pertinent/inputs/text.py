"""Texts, pairs of texts, and queries with documents."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, pairwise
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

import numpy as np

from pertinent.array_types import Array, Floats, Ints, Masks
from pertinent.config.fingerprints import digest
from pertinent.config.serialization import Shape, decode, expect
from pertinent.errors import InputError, SettingError, unknown
from pertinent.inputs.base import Features, Input, Truncation, objects
from pertinent.inputs.modality import InputLimits, Modality, TextColumns, modalities
from pertinent.inputs.segmentation import (
    COARSE_TO_FINE,
    PASSAGE,
    custom_spans,
    cut,
    default_features,
    long_text_notes,
    span_rows,
)
from pertinent.inputs.tokens import Tokens

_SURROGATE = re.compile("[\ud800-\udfff]")

_Fixed: TypeAlias = Literal["none", "first", "second"]

FORMS: Mapping[tuple[str, ...], _Fixed] = {
    ("query", "document"): "first",
    ("question", "context"): "first",
    ("premise", "hypothesis"): "none",
    ("text", "text_pair"): "none",
    ("text",): "none",
}
"""Keys of texts in a mapping, and the text of a pair that is fixed."""


@dataclass(frozen=True)
class Text:
    """A text, or a pair of texts that a model reads together.

    Parameters
    ----------
    first
        The text, or the first text of a pair.
    second
        The second text of a pair.
    fixed
        The text of the pair that no method removes: ``"first"``, ``"second"`` or ``"none"``.

    Examples
    --------
    >>> Text.from_input({"query": "Who won?", "document": "Ada won."}).fixed
    'first'
    """

    first: str
    second: str | None = None
    fixed: _Fixed = "none"

    @classmethod
    def from_input(cls, raw: Any) -> Text:
        """Return the text of a string, a pair of strings, or a mapping such as a query and a document."""
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
        texts = {key: value for key, value in raw.items() if value is not None}
        for keys, fixed in FORMS.items():
            if set(keys) == set(texts) and all(isinstance(text, str) for text in texts.values()):
                return cls(texts[keys[0]], texts[keys[1]] if len(keys) > 1 else None, fixed)
        raise InputError(
            "A text as a mapping must have the keys 'text'; 'text' and 'text_pair'; 'premise' "
            "and 'hypothesis'; 'query' and 'document' (query fixed); or 'question' and 'context' (question "
            f"fixed), but has {sorted(raw)}."
        )

    @property
    def segments(self) -> tuple[str, ...]:
        """Return the one or two strings."""
        return (self.first,) if self.second is None else (self.first, self.second)

    def removable(self, segment: int) -> bool:
        """Return whether features of this segment may be removed."""
        return self.fixed != ("first", "second")[segment]


@dataclass(frozen=True, eq=False)
class TextInput(Input):
    """A text, and the character spans of its features as rows of (segment, start, end).

    Files do not store the tokens, because the tokenizer can recompute them.
    """

    text: Text
    spans: Annotated[Ints, Shape("features", 3)]
    tokens: Tokens | None = field(default=None, compare=False)
    kind: ClassVar[str] = "text"
    has_words = True

    @property
    def names_of_parts(self) -> tuple[str, ...]:
        """Return a name for each feature, if features have names apart from their characters."""
        return ()

    @cached_property
    def token_counts(self) -> Floats:
        """Count the tokens of each feature; the last entry counts the fixed tokens."""
        assert self.tokens is not None
        counts = np.bincount(self.tokens.feature % (self.n_features + 1), minlength=self.n_features + 1)
        return counts.astype(np.float32)  # sums over masks are exact, and faster than with integers

    @property
    def length(self) -> int:
        """Return the number of tokens, or of features without tokens."""
        return self.n_features if self.tokens is None else len(self.tokens.ids)

    @property
    def levels(self) -> tuple[Ints, ...]:
        """Return paragraphs (or passages), sentences and words if the granularity is coarse to fine."""
        if self.granularity != COARSE_TO_FINE:
            return ()
        coarser = self._coarsest(), cut(self.text, "sentences")
        levels = [*map(self._owners, coarser), np.arange(self.n_features)]
        return (*(a for a, b in pairwise(levels) if 0 < a.max() < b.max()), levels[-1])

    def _coarsest(self) -> Ints:
        """Return the spans of paragraphs, or of passages if there is only one paragraph."""
        spans = cut(self.text, "paragraphs")
        return spans if len(spans) > 1 else cut(self.text, f"passages:{max(PASSAGE, self.n_features // 40)}")

    def _owners(self, spans: Ints) -> Ints:
        """Return the index of the span in which each feature begins."""
        longest = 1 + max(map(len, self.text.segments))
        starts = spans[:, 0] * longest + spans[:, 1]
        positions = self.spans[:, 0] * longest + self.spans[:, 1]
        return np.asarray(np.maximum(np.searchsorted(starts, positions, side="right") - 1, 0))

    def with_segments(self, segments: Sequence[str]) -> Any:
        """Return the text with other strings, for a model that reads strings."""
        return Text(segments[0], segments[1] if len(segments) > 1 else None, self.text.fixed)

    @property
    def content(self) -> Hashable:
        """Return the text."""
        return self.text

    @property
    def features_argument(self) -> str | Array:
        """Return the granularity, or the custom spans."""
        return self.spans if self.granularity == "spans" else self.granularity

    def feature_values(self) -> Array:
        """Return the words."""
        return objects(self.features)

    @property
    def search_text(self) -> str:
        """Return the whole text."""
        return " ".join(self.text.segments)

    def for_shap(self, scores: Floats) -> tuple[Array, Array, tuple[str, ...] | None]:
        """Return each feature with the characters up to the next one, for shap's text plot."""
        segments, spans = self.text.segments, self.spans.tolist()
        parts = []
        for (segment, start, _), after in zip(spans, [*spans[1:], None], strict=True):
            end = after[1] if after is not None and after[0] == segment else len(segments[segment])
            parts.append(segments[segment][start:end])
        return scores, objects(parts), self.features

    def match_annotation(self, annotation: Array) -> Masks | None:
        """Return the features that share a character with a span (start, end) or (segment, start, end)."""
        if annotation.ndim != 2 or annotation.dtype.kind not in "iu":
            return None
        annotation = span_rows(self.text, annotation, "annotations")
        features, marks = self.spans[:, None], annotation[None]
        overlap = (features[..., 1] < marks[..., 2]) & (marks[..., 1] < features[..., 2])
        return np.asarray((overlap & (features[..., 0] == marks[..., 0])).any(axis=1))

    def restore(self) -> TextInput:
        """Check that spans lie in their segments, and return the input with its text as `raw`."""
        segment, start, end = self.spans.T
        lengths = np.array([len(part) for part in self.text.segments])
        inside = (segment >= 0) & (segment < len(lengths)) & (start >= 0) & (start <= end)
        inside[inside] &= end[inside] <= lengths[segment[inside]]
        expect(bool(inside.all()), "spans", "inside the text", self.spans[~inside].tolist()[:1])
        return replace(self, raw=self.text)


def text_input(
    text: Text,
    granularity: str,
    spans: Ints,
    tokens: Tokens | None = None,
    notes: tuple[str, ...] = (),
    *,
    truncation: Truncation | None = None,
) -> TextInput:
    """Return the input of a text and its spans; features are named by their characters."""
    segments = text.segments
    names = tuple([segments[i][a:b] for i, a, b in spans.tolist()])
    content = [text.first, text.second, text.fixed, granularity, tokens is None or tokens.ids]
    if granularity == "spans":
        content.append(spans)
    fingerprint = digest(*content)
    return TextInput(text, names, granularity, notes, fingerprint, text, spans, tokens, truncation=truncation)


@dataclass(frozen=True)
class _TextFields:
    """Form fields of a text."""

    text: str
    second: str | None = None
    fixed: _Fixed = "none"


@modalities.register("text")
@dataclass(frozen=True)
class TextModality(Modality):
    """Texts, pairs of texts, and queries with documents."""

    summary = "a text, a pair of texts, or a query and its document"
    plural = "texts"
    nouns = ("text", "word")
    granularities = ("words", "sentences", "lines", "paragraphs", "passages", "tokens")
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
        """Return whether `raw` is a string, a pair of strings, or a mapping with the keys of a text."""
        if isinstance(raw, Mapping):
            return set(raw) <= set(chain(*FORMS))
        return isinstance(raw, str | Text) or (isinstance(raw, tuple | list) and is_pair(tuple(raw)))

    def is_one(self, raw: Any) -> bool:
        """Return whether `raw` is a pair: a tuple of two strings, as a list of two is two texts."""
        return isinstance(raw, Text) or is_pair(raw)

    def split(self, raw: Any) -> Iterable[Any] | None:
        """Return the texts in a pandas Series, a frame of one column, an array or another collection."""
        texts = texts_in(raw)
        return super().split(raw) if texts is None else texts

    def prepare(self, raw: Any, features: Features | None = None) -> TextInput:
        """Divide a text into words, sentences or custom spans, for a model that reads strings."""
        text = Text.from_input(raw)
        notes: tuple[str, ...] = ()
        if features is None:
            n_words = len(cut(text, "words"))
            features = default_features(n_words)
            notes = long_text_notes(features, n_words)
        if not isinstance(features, str):
            return text_input(text, "spans", custom_spans(text, features))
        if features == "tokens":
            raise InputError(
                "The features 'tokens' need a transformer; this model reads strings: use 'words'."
            )
        return text_input(text, features, cut(text, features), notes=notes)

    def to_fields(self, input: TextInput) -> dict[str, Any]:
        """Return the text, the second of a pair, and which of the two is fixed."""
        return {"text": input.text.first, "second": input.text.second, "fixed": input.text.fixed}

    def from_fields(self, fields: Mapping[str, Any], limits: InputLimits) -> Text:
        """Return the text, or the pair if the second text is not blank."""
        form = decode(_TextFields, fields)
        limits.check_text(form.text, form.second)
        second = form.second if (form.second or "").strip() else None
        return Text.from_input(Text(form.text, second, "none" if second is None else form.fixed))

    def text_columns(self, names: Sequence[str], chosen: TextColumns) -> dict[str, str]:
        """Return the chosen columns; by default those of the first form whose columns are all in the file."""
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

    def baseline_removal(self, input: TextInput, background: Any, *, drawn: bool) -> str:
        """Return ``mask-token``, or ``zero-vector`` if the tokenizer has no mask token."""
        if not drawn and input.tokens is not None and input.tokens.mask_id is None:
            return "zero-vector"
        return super().baseline_removal(input, background, drawn=drawn)


def is_pair(raw: Any) -> bool:
    """Return whether an input is a tuple of two strings."""
    return isinstance(raw, tuple) and len(raw) == 2 and all(isinstance(v, str) for v in raw)


def texts_in(raw: Any) -> list[str] | None:
    """Return the texts in a pandas Series, a frame with one column or an array; ``None`` for other inputs.

    A Series whose index holds strings is a row of a frame.
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
    texts = list(raw)
    return texts if texts and all(isinstance(text, str) for text in texts) else None
