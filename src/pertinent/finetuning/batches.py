"""Labelled texts, and the batches of fine-tuning with or without counterfactuals."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset, Sampler

from pertinent.array_types import Array, Ints, Masks
from pertinent.config.fingerprints import digest, generator
from pertinent.errors import ExampleError, InputError, PertinentError, SettingError
from pertinent.explainers.base import n_kept
from pertinent.inputs.text import TextInput
from pertinent.models import transformer
from pertinent.models.tokens.batches import TokenBatch, collate
from pertinent.models.transformer import TransformerModel
from pertinent.outputs import column_index
from pertinent.removals.base import Removal, TokenRows

logger = logging.getLogger(__name__)

POOL = 50
"""Number of batches whose examples are sorted by length together; larger pools are less random."""


@dataclass(frozen=True, eq=False)
class InputSet:
    """Inputs to train on."""

    inputs: Sequence[Any]

    def __len__(self) -> int:
        return len(self.inputs)

    @cached_property
    def lengths(self) -> Ints:
        """Return the length of each input: its tokens including special tokens, or its features."""
        return np.array([input.length for input in self.inputs], dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Examples(InputSet):
    """Tokenised texts, their class indices, and whether each text's removed tokens need not be computed."""

    inputs: Sequence[TextInput]
    labels: Ints
    compact: Sequence[bool]

    @classmethod
    def from_texts(
        cls, model: TransformerModel, texts: Sequence[Any], labels: Sequence[Any], data: str = "train"
    ) -> Examples:
        """Prepare texts and labels; raise an `ExampleError` for the first invalid one."""
        texts, labels = list(texts), list(labels)
        if len(texts) != len(labels):
            raise SettingError(
                f"`labels` must have one label for each of {len(texts)} texts, got {len(labels)}."
            )
        if not texts:
            raise InputError(f"There are no {'validation ' if data == 'validation' else ''}examples.")
        inputs, indices = [], np.empty(len(texts), dtype=np.int64)
        with without_messages(transformer.logger, "truncated"):  # a single warning with their number follows
            for row, (text, label) in enumerate(zip(texts, labels, strict=True)):
                try:
                    indices[row] = column_index(label, model.classes, "label")
                except PertinentError as error:
                    raise ExampleError(data, row, error, label) from error
                try:
                    # A text may already be prepared by an earlier run on the same data.
                    inputs.append(text if isinstance(text, TextInput) else model.prepare(text, "tokens"))
                except PertinentError as error:
                    raise ExampleError(data, row, error) from error
        truncated = sum(input.truncation is not None for input in inputs)
        if truncated:
            logger.warning(
                "%d of %d texts were truncated to %d tokens.", truncated, len(texts), model.max_length
            )
        return cls(inputs, indices, [model.compaction.holds(input.length) for input in inputs])

    @property
    def fingerprint(self) -> str:
        """Return a hexadecimal digest of the texts and labels; it depends on their order."""
        return digest(self.labels, *(input.fingerprint for input in self.inputs)).hex()

    def sorted_by_length(self) -> Examples:
        """Return the examples sorted by length, which minimises padding."""
        order = np.argsort(self.lengths, kind="stable")
        return Examples([self.inputs[i] for i in order], self.labels[order], [self.compact[i] for i in order])


@contextmanager
def without_messages(source: logging.Logger, word: str) -> Iterator[None]:
    """Suppress a logger's messages that contain a word."""

    def is_other(record: logging.LogRecord) -> bool:
        return word not in record.getMessage()

    source.addFilter(is_other)
    try:
        yield
    finally:
        source.removeFilter(is_other)


@dataclass(frozen=True)
class Counterfactuals:
    """Hase et al. 2021, Sec. 4: for each text x, ReplacE(x, e) with a random explanation e.

    The sparsity s of e is drawn from `sparsities`, and its tokens uniformly from all sets of k = ceil(s·d).
    Both depend only on (seed, epoch, index of the example).
    """

    removal: Removal
    sparsities: tuple[float, ...]
    seed: int

    @cached_property
    def _key(self) -> Array:
        return np.frombuffer(digest("counterfactual", self.seed), dtype=np.uint64)

    def draw(self, epoch: int, example: int, n_features: int) -> tuple[Masks, int]:
        """Return a random mask (1, features) for an example in an epoch, and a seed for the removal."""
        rng = np.random.Generator(np.random.Philox(key=self._key, counter=[0, 0, epoch, example]))
        k = n_kept(self.sparsities[rng.integers(len(self.sparsities))], n_features)
        mask = np.zeros((1, n_features), dtype=np.bool_)
        mask[0, rng.permutation(n_features)[:k]] = True
        return mask, int(rng.integers(2**31))


class ExampleIndexes(Dataset[tuple[int, int]]):
    """A data set whose items are pairs of indices (epoch, example)."""

    def __init__(self, examples: InputSet) -> None:
        self.examples = examples

    def __len__(self) -> int:
        return len(self.examples)

    def __getitem__(self, index: Any) -> tuple[int, int]:
        return index if isinstance(index, tuple) else (0, index)


class Shuffled(Sampler[tuple[int, int]]):
    """A sampler that yields each example once, in an order that depends only on (seed, epoch).

    The examples of a batch have similar lengths. `epoch` returns the current epoch.
    """

    def __init__(self, lengths: Ints, batch_size: int, seed: int, epoch: Callable[[], int]) -> None:
        self.lengths, self.batch_size, self.seed, self.epoch = lengths, batch_size, seed, epoch

    def __len__(self) -> int:
        return len(self.lengths)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        epoch = self.epoch()
        rng = generator(self.seed, "order", epoch)
        order = rng.permutation(len(self.lengths))
        pool = POOL * self.batch_size
        for start in range(0, len(order), pool):
            pooled = order[start : start + pool]
            order[start : start + pool] = pooled[np.argsort(self.lengths[pooled], kind="stable")]
        n_full = len(order) // self.batch_size
        full, rest = np.split(order, [n_full * self.batch_size])
        batches = rng.permutation(full.reshape(n_full, self.batch_size), axis=0)
        for example in (*batches.ravel().tolist(), *rest.tolist()):
            yield epoch, example


@dataclass(frozen=True, eq=False)
class Collator:
    """A collator from indices to labels and token batches: whole texts first, then any counterfactuals.

    Both share a forward pass, unless padding the counterfactuals to the length of the whole texts would cost
    more than `pass_cost`, the cost of a separate pass in tokens.
    """

    examples: Examples
    pad_id: int
    counterfactuals: Counterfactuals | None = None
    pass_cost: int = 0

    def __call__(self, indices: Sequence[tuple[int, int]]) -> dict[str, Any]:
        """Return the `labels` of a batch and its `passes`, one token batch per forward pass."""
        chosen = [example for _, example in indices]
        labels = torch.from_numpy(self.examples.labels[chosen])
        whole = [self._whole(example) for example in chosen]
        if self.counterfactuals is None:
            return {"labels": labels, "passes": [self._collate(whole, chosen)]}
        replaced = [self._replace_tokens(self.counterfactuals, *index) for index in indices]
        longest = int(self.examples.lengths[chosen].max())
        spared = longest - max(self._length(rows, i) for rows, i in zip(replaced, chosen, strict=True))
        if len(chosen) * spared > self.pass_cost:
            passes = [self._collate(whole, chosen), self._collate(replaced, chosen)]
        else:
            passes = [self._collate(whole + replaced, chosen * 2)]
        return {"labels": labels.repeat(2), "passes": passes}

    def _length(self, rows: TokenRows, example: int) -> int:
        """Return the number of tokens that the model computes for a row."""
        dropped = rows.renumber or self.examples.compact[example]
        return int(np.count_nonzero(rows.attend)) if dropped else rows.attend.shape[1]

    def _collate(self, rows: list[TokenRows], chosen: list[int]) -> TokenBatch:
        return collate(rows, [self.examples.compact[i] for i in chosen], self.pad_id)

    def _whole(self, example: int) -> TokenRows:
        tokens = self.examples.inputs[example].tokens
        assert tokens is not None
        return TokenRows(tokens, np.ones((1, len(tokens.ids)), dtype=np.bool_))

    def _replace_tokens(self, drawn: Counterfactuals, epoch: int, example: int) -> TokenRows:
        input = self.examples.inputs[example]
        rows = drawn.removal(input, *drawn.draw(epoch, example, input.n_features))
        assert isinstance(rows, TokenRows)
        return rows
