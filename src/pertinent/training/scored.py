"""Inputs with the scores that a slower method gave, to learn from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pertinent.inputs.text import TextInput
from pertinent.training.examples import length
from pertinent.types import Floats, Ints


@dataclass(frozen=True, eq=False)
class Scored:
    """Texts, the scores (columns, features) of each, and their variances where the method samples."""

    inputs: Sequence[TextInput]
    scores: Sequence[Floats]
    variances: Sequence[Floats]

    def __len__(self) -> int:
        return len(self.inputs)

    @cached_property
    def lengths(self) -> Ints:
        """Tokens of each text."""
        return np.fromiter(map(length, self.inputs), dtype=np.int64, count=len(self))

    @cached_property
    def deviation(self) -> Floats:
        """How far the scores of each column are from zero: the root of their mean square."""
        found = np.sqrt((np.concatenate(self.scores, axis=1) ** 2).mean(axis=1))
        return np.where(found > 0, found, 1.0)

    def pick(self, chosen: Ints) -> Scored:
        """Some of them."""
        every = (self.inputs, self.scores, self.variances)
        return Scored(*([part[i] for i in chosen.tolist()] for part in every))
