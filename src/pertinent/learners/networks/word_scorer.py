"""A small network that scores the words of a text, or its tokens if the model reads tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.functional import gelu, relu

from pertinent.array_types import Ints
from pertinent.config.fingerprints import digest
from pertinent.inputs.base import Input
from pertinent.inputs.segmentation import cut
from pertinent.inputs.text import TextInput
from pertinent.learners.networks.scorer import ArrayApproximator, Scorer, ScorerBatch, run_recurrent
from pertinent.models.base import Model

BUCKETS = 2**14
"""Number of hash buckets for words."""

WIDTH = 64
APPROXIMATOR_WIDTH = 128


class WordScorer(Scorer):
    """Embeddings of hashed words, two convolutions over neighbours, and the mean over the text.

    Without `context`, each word is scored independently. Tokens are hashed modulo `n_words`. Without `bias`
    in any layer, the score of an unseen word is zero apart from its context.
    """

    kind = "text"
    config_names = ("n_words", "context", "bias")

    def __init__(
        self, n_columns: int, n_words: int = BUCKETS, *, context: bool = True, bias: bool = True
    ) -> None:
        super().__init__(n_columns)
        self.n_words, self.context, self.bias = n_words, context, bias
        self.embedding = nn.Embedding(n_words + 1, WIDTH, padding_idx=0)
        nn.init.zeros_(self.embedding.weight)  # rare and unseen words would keep random scores
        self.segment = nn.Embedding(2, WIDTH)
        nn.init.zeros_(self.segment.weight)  # all words share it: random values would shift all scores
        if context:
            self.near = nn.Conv1d(WIDTH, WIDTH, 3, padding=1, bias=bias)
            self.far = nn.Conv1d(WIDTH, WIDTH, 5, padding=2, bias=bias)
            self.whole = nn.Linear(WIDTH, WIDTH, bias=bias)
        else:
            linear = partial(nn.Linear, WIDTH, WIDTH, bias=bias)
            self.deep = nn.Sequential(linear(), nn.GELU(), linear(), nn.GELU())
        self.head = nn.Linear(2 * WIDTH, n_columns, bias=bias)

    @classmethod
    def from_model(cls, model: Model, inputs: Sequence[Input], n_columns: int, **options: bool) -> WordScorer:
        """Return an untrained scorer for the vocabulary."""
        return cls(n_columns, vocabulary_size(model, inputs), **options)

    def read(self, model: Model, inputs: Sequence[Input]) -> ScorerBatch:
        """Read the words of both texts of a pair; words of a fixed text belong to no feature."""
        texts = [_words(input, self.n_words) for input in inputs]
        shape = len(texts), max(1, *(len(ids) for ids, _, _ in texts))
        ids, segments, owners = np.zeros(shape, int), np.zeros(shape, int), np.full(shape, -1)
        for row, text in enumerate(texts):
            for array, values in zip((ids, segments, owners), text, strict=True):
                array[row, : len(values)] = values
        return ScorerBatch({"ids": ids, "segments": segments}, owners)

    def approximator(self, model: Model, n_columns: int) -> TextApproximator:
        """Return an approximator with the same vocabulary."""
        return TextApproximator(self.n_words, n_columns)

    def forward(self, **options: Any) -> torch.Tensor:
        """Return scores (rows, words, columns)."""
        ids: torch.Tensor = options["ids"]
        real = (ids > 0)[:, None].float()
        words = self.embedding(ids).transpose(1, 2)
        segment = self.segment(options["segments"]).transpose(1, 2)
        x = (words + (segment if self.bias else words * segment)) * real
        if not self.context:
            x = self.deep(x.transpose(1, 2)).transpose(1, 2)
            return torch.as_tensor(self.head(torch.cat([x, words], dim=1).transpose(1, 2)))
        # Padding stays zero, so the scores of a text do not depend on the rest of the batch.
        x = (x + gelu(self.near(x))) * real
        mean = x.sum(dim=2) / real.sum(dim=2).clamp(min=1)
        x = (x + gelu(self.far(x) + self.whole(mean)[:, :, None])) * real
        scores: torch.Tensor = self.head(torch.cat([x, words], dim=1).transpose(1, 2))
        return scores


class PaperWordScorer(WordScorer):
    """The word networks of Vo et al. 2023 (App. A), with the sizes of its code and random embeddings.

    With `context` it is the paper's selector, a bidirectional LSTM and three dense layers; without, the
    paper's explainer, three dense layers.
    """

    kind = "text-vo2023"

    def __init__(
        self, n_columns: int, n_words: int = BUCKETS, *, context: bool = True, bias: bool = True
    ) -> None:
        Scorer.__init__(self, n_columns)
        self.n_words, self.context, self.bias = n_words, context, bias
        self.embedding = nn.Embedding(n_words + 1, 100, padding_idx=0)
        width, dense, dropout = (200, 100, 0.2) if context else (100, 250, 0.0)
        if context:
            self.recurrent = nn.LSTM(100, 100, batch_first=True, bidirectional=True)
        self.dense = nn.Sequential(
            *(nn.Dropout(dropout), nn.Linear(width, dense), nn.ReLU()),
            *(nn.Dropout(dropout), nn.Linear(dense, dense), nn.ReLU()),
            *(nn.Dropout(dropout), nn.Linear(dense, n_columns)),
        )

    def forward(self, **options: Any) -> torch.Tensor:
        """Return scores (rows, words, columns)."""
        ids: torch.Tensor = options["ids"]
        x = self.embedding(ids)
        if self.context:
            x = run_recurrent(self.recurrent, x, (ids > 0).sum(1).clamp(min=1).cpu())
        scores: torch.Tensor = self.dense(x)
        return scores


class TextApproximator(ArrayApproximator):
    """Embeddings, a convolution over three words, and the maximum over the text (Vo et al. 2023, App. A)."""

    def __init__(self, n_words: int, n_columns: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(n_words + 1, APPROXIMATOR_WIDTH, padding_idx=0)
        self.convolution = nn.Conv1d(APPROXIMATOR_WIDTH, 2 * APPROXIMATOR_WIDTH, 3, padding=1)
        self.deep = nn.Linear(2 * APPROXIMATOR_WIDTH, 2 * APPROXIMATOR_WIDTH)
        self.head = nn.Linear(2 * APPROXIMATOR_WIDTH, n_columns)

    def forward(self, kept: torch.Tensor, **arrays: torch.Tensor) -> torch.Tensor:
        """Return logits (rows, columns); removed words are zero vectors."""
        ids = arrays["ids"]
        words = (self.embedding(ids) * kept[..., None]).transpose(1, 2)
        x = relu(self.convolution(words)).masked_fill((ids == 0)[:, None], 0.0)
        logits: torch.Tensor = self.head(relu(self.deep(x.amax(dim=2))))
        return logits


def vocabulary_size(model: Model, inputs: Sequence[Input]) -> int:
    """Return the number of distinct words, or of all tokens if the model reads tokens."""
    first = inputs[0]
    assert isinstance(first, TextInput)
    return BUCKETS if first.tokens is None else len(model.tokenizer)


def _words(input: Input, n_words: int) -> tuple[Ints, Ints, Ints]:
    """Return the hash, segment and feature of each word or token."""
    assert isinstance(input, TextInput)
    if input.tokens is not None:
        tokens = input.tokens
        first = slice(None) if tokens.repeated is None else ~tokens.repeated
        return 1 + tokens.ids[first] % n_words, np.minimum(tokens.types[first], 1), tokens.feature[first]
    words = cut(replace(input.text, fixed="none"), "words")
    segments = input.text.segments
    ids = np.array([_bucket(segments[i][a:b].lower(), n_words) for i, a, b in words.tolist()], dtype=np.int64)
    owners = np.full(len(words), -1)
    for segment in range(len(segments)):
        inside = np.flatnonzero(words[:, 0] == segment)
        spans = np.flatnonzero(input.spans[:, 0] == segment)
        if len(inside) and len(spans):
            # Spans do not overlap: the first span that ends after the word's start may contain it.
            start, end = words[inside, 1], words[inside, 2]
            first = np.searchsorted(input.spans[spans, 2], start, side="right")
            owner = spans[np.minimum(first, len(spans) - 1)]
            overlaps = (input.spans[owner, 1] < end) & (start < input.spans[owner, 2])
            owners[inside] = np.where(overlaps, owner, -1)
    return ids, words[:, 0], owners


@lru_cache(maxsize=2**16)
def _bucket(word: str, n_words: int) -> int:
    """Return a bucket number from 1, equal on every machine."""
    return 1 + int.from_bytes(digest(word)[:8], "little") % n_words
