"""Inputs with what is learned of each, and batches of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch

from pertinent.array_types import Array, Ints
from pertinent.inputs.base import Input
from pertinent.learned.base import Lesson
from pertinent.learned.networks.scorer import Scorer
from pertinent.models.base import Model


@dataclass(frozen=True, eq=False)
class Lessons:
    """Inputs, and what is learned of each."""

    inputs: Sequence[Input]
    lessons: Sequence[Lesson]

    def __len__(self) -> int:
        return len(self.inputs)

    @cached_property
    def lengths(self) -> Ints:
        """Tokens or features of each."""
        return np.array([input.length for input in self.inputs], dtype=np.int64)

    def pick(self, chosen: Ints) -> Lessons:
        """Some of them."""
        return Lessons(*([part[i] for i in chosen.tolist()] for part in (self.inputs, self.lessons)))


@dataclass(frozen=True, eq=False)
class LessonCollator:
    """Makes batches from indices: inputs, stacked lessons, and one pass of the scorer for each group of them.

    `real` (rows, width) says which features there are. Rows are in the order of the passes.
    """

    examples: Lessons
    model: Model
    scorer: Scorer

    def __call__(self, places: Sequence[tuple[int, int]]) -> dict[str, Any]:
        """A batch of whole inputs."""
        groups: dict[Any, list[int]] = {}
        for _, example in places:
            groups.setdefault(self.examples.inputs[example].group, []).append(example)
        chosen = [example for own in groups.values() for example in own]
        inputs = self.examples.inputs
        real = stacked([np.ones(inputs[i].n_features, dtype=np.bool_) for i in chosen])
        lessons = [self.examples.lessons[i] for i in chosen]
        return {
            "inputs": [inputs[i] for i in chosen],
            "real": torch.from_numpy(real),
            "lesson": {
                name: torch.from_numpy(stacked([lesson[name] for lesson in lessons]).astype(np.float32))
                for name in lessons[0]
            },
            "passes": [self.scorer.read(self.model, [inputs[i] for i in own]) for own in groups.values()],
        }


def stacked(arrays: Sequence[Array]) -> Array:
    """Arrays of different sizes as one, padded with zeros."""
    shape = np.max([array.shape for array in arrays], axis=0)
    found = np.zeros((len(arrays), *shape), dtype=arrays[0].dtype)
    for row, array in zip(found, arrays, strict=True):
        row[tuple(map(slice, array.shape))] = array
    return found
