"""A small network that scores the words of a text, for models that are no transformers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.functional import gelu

from pertinent.digests import digest
from pertinent.inputs.base import Input
from pertinent.inputs.text import TextInput, cut
from pertinent.models.base import Model
from pertinent.models.torch.scorers.base import Batch, Scorer
from pertinent.types import Ints

BUCKETS = 2**14
"""Words are told apart by a hash with so many values."""

WIDTH = 64


class WordScorer(Scorer):
    """Embeddings of hashed words, two convolutions over neighbours, and the mean over the text."""

    kind = "text"

    def __init__(self, n_columns: int) -> None:
        super().__init__(n_columns)
        self.embedding = nn.Embedding(BUCKETS + 1, WIDTH, padding_idx=0)
        self.segment = nn.Embedding(2, WIDTH)
        self.near = nn.Conv1d(WIDTH, WIDTH, 3, padding=1)
        self.far = nn.Conv1d(WIDTH, WIDTH, 5, padding=2)
        self.whole = nn.Linear(WIDTH, WIDTH)
        self.head = nn.Linear(2 * WIDTH, n_columns)

    @classmethod
    def of(cls, model: Model, inputs: Sequence[Input], n_columns: int) -> WordScorer:
        """One with random embeddings."""
        del model, inputs
        return cls(n_columns)

    @classmethod
    def from_config(cls, config: Mapping[str, Any], n_columns: int) -> WordScorer:
        """All have the same size."""
        del config
        return cls(n_columns)

    def arguments(self) -> dict[str, Any]:
        """Nothing: all have the same size."""
        return {}

    def read(self, model: Model, inputs: Sequence[Input]) -> Batch:
        """The words of both texts of a pair; those of a fixed text belong to no feature."""
        del model
        found = [_words(input) for input in inputs]
        shape = len(found), max(1, *(len(ids) for ids, _, _ in found))
        ids, segments, owners = np.zeros(shape, int), np.zeros(shape, int), np.full(shape, -1)
        for row, own in enumerate(found):
            for laid, values in zip((ids, segments, owners), own, strict=True):
                laid[row, : len(values)] = values
        return Batch({"ids": ids, "segments": segments}, owners)

    def forward(self, **options: Any) -> torch.Tensor:
        """Scores (rows, words, columns)."""
        ids: torch.Tensor = options["ids"]
        real = (ids > 0)[:, None].float()
        words = self.embedding(ids).transpose(1, 2)
        x = (words + self.segment(options["segments"]).transpose(1, 2)) * real
        # What is outside of a text stays zero, so that its scores do not depend on the rest of a batch.
        x = (x + gelu(self.near(x))) * real
        mean = x.sum(dim=2) / real.sum(dim=2).clamp(min=1)
        x = (x + gelu(self.far(x) + self.whole(mean)[:, :, None])) * real
        scores: torch.Tensor = self.head(torch.cat([x, words], dim=1).transpose(1, 2))
        return scores


def _words(input: Input) -> tuple[Ints, Ints, Ints]:
    """The hash, the segment and the feature of each word."""
    assert isinstance(input, TextInput)
    words = cut(replace(input.text, fixed="none"), "words")
    segments = input.text.segments
    ids = np.array([_bucket(segments[i][a:b].lower()) for i, a, b in words.tolist()], dtype=np.int64)
    owners = np.full(len(words), -1)
    for segment in range(len(segments)):
        own = np.flatnonzero(words[:, 0] == segment)
        spans = np.flatnonzero(input.spans[:, 0] == segment)
        if len(own) and len(spans):
            # Spans do not overlap: the first that ends after the word begins, if it begins before its end.
            first = np.searchsorted(input.spans[spans, 2], words[own, 1], side="right")
            found = spans[np.minimum(first, len(spans) - 1)]
            inside = (input.spans[found, 1] < words[own, 2]) & (words[own, 1] < input.spans[found, 2])
            owners[own] = np.where(inside, found, -1)
    return ids, words[:, 0], owners


@lru_cache(maxsize=2**16)
def _bucket(word: str) -> int:
    """A number from 1 on, the same on every machine."""
    return 1 + int.from_bytes(digest(word)[:8], "little") % BUCKETS
