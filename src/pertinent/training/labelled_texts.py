"""Texts with their labels, tokenised once and checked before training."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pertinent.array_types import Ints
from pertinent.digests import digest
from pertinent.errors import ExampleError, InputError, PertinentError, SettingError
from pertinent.inputs.text import TextInput
from pertinent.models import transformer
from pertinent.models.transformer import TransformerModel
from pertinent.outputs import column_index

logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Examples:
    """Tokenised texts, the class number of each, and whether its removed tokens may be left out."""

    inputs: Sequence[TextInput]
    labels: Ints
    compact: Sequence[bool]

    @classmethod
    def of(
        cls, model: TransformerModel, texts: Sequence[Any], labels: Sequence[Any], data: str = "train"
    ) -> Examples:
        """Read texts and labels; raise an `ExampleError` for the first that cannot be used."""
        texts, labels = list(texts), list(labels)
        if len(texts) != len(labels):
            raise SettingError(
                f"There must be a label for each of {len(texts)} texts, but got {len(labels)}."
            )
        if not texts:
            raise InputError(f"There are no {'validation ' if data == 'validation' else ''}examples.")
        inputs, numbers = [], np.empty(len(texts), dtype=np.int64)
        with _no_truncation_warning():
            for row, (text, label) in enumerate(zip(texts, labels, strict=True)):
                try:
                    numbers[row] = column_index(label, model.classes, "label")
                except PertinentError as error:
                    raise ExampleError(data, row, error, label) from error
                try:
                    # It may already be prepared, from another training on the same data.
                    inputs.append(text if isinstance(text, TextInput) else model.prepare(text, "tokens"))
                except PertinentError as error:
                    raise ExampleError(data, row, error) from error
        truncated = sum(input.truncation is not None for input in inputs)
        if truncated:
            logger.warning(
                "%d of %d texts were truncated to %d tokens.", truncated, len(texts), model.max_length
            )
        compact = [model.compaction.holds(n) for n in map(length, inputs)]
        return cls(inputs, numbers, compact)

    def __len__(self) -> int:
        return len(self.inputs)

    @cached_property
    def lengths(self) -> Ints:
        """Tokens of each text."""
        return np.fromiter(map(length, self.inputs), dtype=np.int64, count=len(self))

    @property
    def fingerprint(self) -> str:
        """A digest of the texts and labels, in their order."""
        return digest(self.labels, *(input.fingerprint for input in self.inputs)).hex()

    def sorted_by_length(self) -> Examples:
        """The same examples sorted by length, so that neighbours need little padding."""
        order = np.argsort(self.lengths, kind="stable")
        return Examples([self.inputs[i] for i in order], self.labels[order], [self.compact[i] for i in order])


def length(input: TextInput) -> int:
    """Tokens of a text, special ones included."""
    assert input.tokens is not None
    return len(input.tokens.ids)


@contextmanager
def _no_truncation_warning() -> Iterator[None]:
    """Leaves out the model's warning about a truncated text: how many there are is said once, for all."""

    def is_other(record: logging.LogRecord) -> bool:
        return "truncated" not in record.getMessage()

    transformer.logger.addFilter(is_other)
    try:
        yield
    finally:
        transformer.logger.removeFilter(is_other)
