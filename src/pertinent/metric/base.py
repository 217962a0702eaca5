"""A metric asks the model about an explanation, like an explainer, and returns numbers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import numpy as np

from pertinent.engine.asks import Ask
from pertinent.registry import Registry
from pertinent.types import Floats

if TYPE_CHECKING:
    from pertinent.explanation import Explanation

Scale = Literal["probability", "weight-of-evidence"]

Measures: TypeAlias = Generator[Ask, Any, Mapping[float | None, float]]
"""Returns the value at each sparsity, or one value under ``None``."""


@dataclass(frozen=True)
class Metric(ABC):
    """Settings and one algorithm: a generator that yields asks and returns its values."""

    name: ClassVar[str]
    paper: ClassVar[str]
    summary: ClassVar[str]
    better: ClassVar[Literal["lower", "higher"]]

    @abstractmethod
    def measure(self, explanation: Explanation) -> Measures:
        """The algorithm."""


metrics: Registry[Metric] = Registry("metric", "pertinent.metric")


def on_scale(probability: Floats, scale: Scale) -> Floats:
    """Probabilities as they are, or as log-odds (weight of evidence), clipped where p is 0 or 1."""
    if scale == "probability":
        return probability
    p = np.clip(probability, 1e-12, 1 - 1e-12)
    return np.asarray(np.log(p) - np.log1p(-p))
