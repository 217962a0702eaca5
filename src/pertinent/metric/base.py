"""A metric asks the model about an explanation, like an explainer, and returns numbers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from pertinent.array_types import Floats
from pertinent.asks import Ask
from pertinent.registry import Registry, labels, settings_of
from pertinent.settings import Settings

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
    """The smallest and the largest value, of metrics that are shares of decisions."""

    @abstractmethod
    def measure(self, explanation: Explanation) -> Measures:
        """The algorithm."""


def metric_labels(metrics: Sequence[Metric]) -> list[str]:
    """What the measures of each metric are called: its name, with the settings in which several differ."""
    return labels([(metric.name, settings_of(metric)) for metric in metrics])


metrics: Registry[Metric] = Registry("metric", "pertinent.metric")


def objective(explanation: Explanation, values: Floats) -> Floats:
    """How well each row of answers preserves the decision.

    The target's probability, or minus the distance of a plain value to the value for the whole input.
    """
    return explanation.output.objective(values, explanation.prediction, explanation.target)
