"""Networks that predict a model's answer from inputs of which some features are removed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn
from torch.nn.functional import max_pool2d, relu

from pertinent.learned.networks.image_scorer import ImageScorer
from pertinent.learned.networks.scorer import Scorer
from pertinent.learned.networks.table_scorer import TableScorer
from pertinent.learned.networks.word_scorer import WordScorer

WIDTH = 128


class Approximator(nn.Module, ABC):
    """Reads what a scorer of the same kind reads, and how much of each part is kept; answers with logits."""

    @abstractmethod
    def forward(self, kept: torch.Tensor, **arrays: torch.Tensor) -> torch.Tensor:
        """Logits (rows, columns) of inputs that keep a share (rows, parts) of each part."""


class TextApproximator(Approximator):
    """Embeddings, a convolution over three words, and the maximum over the text (Vo et al. 2023, App. A)."""

    def __init__(self, scorer: WordScorer, n_columns: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(scorer.n_words + 1, WIDTH, padding_idx=0)
        self.convolution = nn.Conv1d(WIDTH, 2 * WIDTH, 3, padding=1)
        self.deep = nn.Linear(2 * WIDTH, 2 * WIDTH)
        self.head = nn.Linear(2 * WIDTH, n_columns)

    def forward(self, kept: torch.Tensor, **arrays: torch.Tensor) -> torch.Tensor:
        """Removed words are zero vectors."""
        ids = arrays["ids"]
        words = (self.embedding(ids) * kept[..., None]).transpose(1, 2)
        x = relu(self.convolution(words)).masked_fill((ids == 0)[:, None], 0.0)
        logits: torch.Tensor = self.head(relu(self.deep(x.amax(dim=2))))
        return logits


class ImageApproximator(Approximator):
    """Two convolutions and two dense layers, over an image of any size."""

    mean: torch.Tensor
    spread: torch.Tensor

    def __init__(self, scorer: ImageScorer, n_columns: int) -> None:
        super().__init__()
        self.register_buffer("mean", scorer.mean.clone())
        self.register_buffer("spread", scorer.spread.clone())
        self.first = nn.Conv2d(len(scorer.mean), WIDTH // 4, 5, padding=2)
        self.second = nn.Conv2d(WIDTH // 4, WIDTH // 2, 5, padding=2)
        self.pool = nn.AdaptiveAvgPool2d(7)
        self.deep = nn.Linear(49 * WIDTH // 2, WIDTH)
        self.head = nn.Linear(WIDTH, n_columns)

    def forward(self, kept: torch.Tensor, **arrays: torch.Tensor) -> torch.Tensor:
        """Removed pixels have the mean colour."""
        pixels = arrays["pixels"]
        x = (pixels - self.mean) / self.spread * kept.reshape(len(pixels), 1, *pixels.shape[2:])
        x = relu(self.first(x))
        x = relu(self.second(max_pool2d(x, 2) if min(x.shape[2:]) > 1 else x))
        logits: torch.Tensor = self.head(relu(self.deep(self.pool(x).flatten(1))))
        return logits


class TableApproximator(Approximator):
    """Two hidden layers over the encoded columns.

    Which numbers are kept is not read: a selection could tell the answer by itself, whatever is selected. A
    category that is removed is none of the known ones.
    """

    repeats: torch.Tensor

    def __init__(self, scorer: TableScorer, n_columns: int) -> None:
        super().__init__()
        widths = [column.width for column in scorer.columns]
        self.register_buffer("repeats", torch.tensor(widths))
        self.deep = nn.Sequential(
            nn.Linear(sum(widths), WIDTH), nn.GELU(), nn.Linear(WIDTH, WIDTH), nn.GELU()
        )
        self.head = nn.Linear(WIDTH, n_columns)

    def forward(self, kept: torch.Tensor, **arrays: torch.Tensor) -> torch.Tensor:
        """Removed columns are zeros, which is the mean of a standardised one."""
        encoded = arrays["encoded"] * kept.repeat_interleave(self.repeats, dim=1)
        logits: torch.Tensor = self.head(self.deep(encoded))
        return logits


_KINDS: Mapping[type[Scorer], Any] = {
    WordScorer: TextApproximator,
    ImageScorer: ImageApproximator,
    TableScorer: TableApproximator,
}


def approximator_for(scorer: Scorer, n_columns: int) -> Approximator:
    """One that reads what this scorer reads."""
    made: Approximator = _KINDS[type(scorer)](scorer, n_columns)
    return made
