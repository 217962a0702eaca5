"""A metric asks the model about an explanation, like an explainer, and returns numbers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import numpy as np

from pertinent.array_types import Floats, Ints, Masks
from pertinent.asks import Ask, Asking, Values
from pertinent.config.registry import Registry
from pertinent.config.settings import Settings, changed_settings, labels
from pertinent.masks import full_mask

if TYPE_CHECKING:
    from pertinent.results.explanation import Explanation

Measures: TypeAlias = Generator[Ask, Any, Mapping[float | None, float]]
"""Returns the value at each sparsity, or one value under ``None``."""


@dataclass(frozen=True)
class Metric(Settings, ABC):
    """Settings and one algorithm: a generator that yields asks and returns its values."""

    name: ClassVar[str]
    paper: ClassVar[str]
    summary: ClassVar[str]
    better: ClassVar[Literal["lower", "higher"]]
    within: ClassVar[tuple[float, float] | None] = None
    """The smallest and the largest value, for metrics that are shares of decisions."""

    @abstractmethod
    def measure(self, explanation: Explanation) -> Measures:
        """The algorithm."""


def metric_labels(metrics: Sequence[Metric]) -> list[str]:
    """The label of each metric: its name, with the settings in which metrics of that name differ."""
    return labels([(metric.name, changed_settings(metric)) for metric in metrics])


metrics: Registry[Metric] = Registry("metric", "pertinent.metrics")


def objective(explanation: Explanation, values: Floats) -> Floats:
    """How well each row of answers preserves the decision.

    The target's probability, or minus the distance of a plain value to the value for the whole input.
    """
    return explanation.output.objective(values, explanation.prediction.values, explanation.target)


def ask_whole_and(explanation: Explanation, masks: Sequence[Masks] | Masks) -> Asking[Floats]:
    """The model's answers (1 + masks, columns) to the whole input, and to each of the masks."""
    answers: Floats = yield Values(np.concatenate([full_mask(len(explanation.features)), masks]))
    return answers


def top_masks(explanation: Explanation, counts: Sequence[int] | Ints) -> Masks:
    """Masks (counts, features) of the features that rank highest, as many as each count says."""
    rank = np.empty(len(explanation.features), dtype=np.int64)
    rank[explanation.ranking] = np.arange(len(rank))
    return rank[None] < np.asarray(counts)[:, None]
