"""Base class of metrics: generators that query the model about an explanation and return numbers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Mapping, Sequence
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
"""A generator that returns a value for each sparsity, or a single value with the key ``None``."""


@dataclass(frozen=True)
class Metric(Settings, ABC):
    """Settings of a metric, and its algorithm: a generator that yields questions and returns values.

    Attributes
    ----------
    paper, summary
        Citation with equation or section, and a one-line summary.
    better
        Whether ``"lower"`` or ``"higher"`` values are better.
    within
        Smallest and largest possible value, for metrics that are shares of decisions.
    """

    name: ClassVar[str]
    paper: ClassVar[str]
    summary: ClassVar[str]
    better: ClassVar[Literal["lower", "higher"]]
    within: ClassVar[tuple[float, float] | None] = None

    @abstractmethod
    def measure(self, explanation: Explanation) -> Measures:
        """Query the model about the explanation and return the values."""


def metric_labels(metrics: Sequence[Metric]) -> list[str]:
    """Return a label for each metric: its name, plus the settings that differ between equal names."""
    return labels([(metric.name, changed_settings(metric)) for metric in metrics])


metrics: Registry[Metric] = Registry("metric", "pertinent.metrics")


def objective(explanation: Explanation, values: Floats) -> Floats:
    """Return how well each row of answers preserves the decision.

    It is the target's probability, or the negative distance of a plain value from that of the whole input.
    """
    return explanation.output.objective(values, explanation.prediction.values, explanation.target)


def ask_whole_and_masks(explanation: Explanation, masks: Sequence[Masks] | Masks) -> Asking[Floats]:
    """Return the answers (1 + masks, columns) to the whole input and to each mask."""
    answers: Floats = yield Values(np.concatenate([full_mask(len(explanation.features)), masks]))
    return answers


def measure_drops(
    explanation: Explanation, sets: Mapping[Any, Masks], value: Callable[[Floats], Floats], *, keep: bool
) -> Measures:
    """Return the drop of a value of the answers when each set is the only one kept, or is removed."""
    masks = np.array([*sets.values()])
    values = value((yield from ask_whole_and_masks(explanation, masks if keep else ~masks)))
    return dict(zip(sets, (values[0] - values[1:]).tolist(), strict=True))


def top_masks(explanation: Explanation, counts: Sequence[int] | Ints) -> Masks:
    """Return masks (counts, features) of the highest-ranking features, one for each count."""
    rank = np.empty(len(explanation.features), dtype=np.int64)
    rank[explanation.ranking] = np.arange(len(rank))
    return rank[None] < np.asarray(counts)[:, None]
