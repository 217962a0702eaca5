"""The base of explainers: the task they get, the algorithm, and the finding they return."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import Any, ClassVar, TypeAlias

import numpy as np

from pertinent.asks import Ask
from pertinent.errors import BudgetError
from pertinent.outputs import Classes, Output, Scale
from pertinent.registry import Registry
from pertinent.settings import Settings
from pertinent.types import Floats, Masks

DEFAULT_BUDGET = 1000
DEFAULT_SPARSITIES = (0.05, 0.10, 0.20, 0.50)


def n_kept(sparsity: float, n_features: int) -> int:
    """How many features a sparsity keeps: k = ceil(s·d), safe from rounding (0.1 · 30 is 3)."""
    return max(1, ceil(round(sparsity * n_features, 9)))


@dataclass(frozen=True)
class Task:
    """One input to explain, as an algorithm sees it.

    `prediction` is the model's output for the whole input, probabilities or values; `target` is the
    column explained.
    """

    n_features: int
    target: int
    prediction: Floats
    budget: int
    sparsities: tuple[float, ...]
    rng: np.random.Generator
    output: Output = field(default_factory=Classes)

    def objective(self, values: Floats) -> Floats:
        """How well each row of answers preserves the decision; larger is better."""
        return self.output.objective(values, self.prediction, self.target)


@dataclass(frozen=True)
class Finding:
    """What an algorithm returns.

    `scores` are (features,) for the target or (columns, features); `standard_errors` have the same
    shape; `base_values` (columns,) are given if base value + sum of scores = prediction; `chosen` has a
    mask of the important features for each sparsity; `details` has anything else to report, as plain
    numbers, strings, lists and dicts.
    """

    scores: Floats | None = None
    standard_errors: Floats | None = None
    base_values: Floats | None = None
    chosen: Mapping[float, Masks] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)


Steps: TypeAlias = Generator[Ask, Any, Finding]


@dataclass(frozen=True)
class Explainer(Settings, ABC):
    """Settings and one algorithm: a generator that yields asks and returns a `Finding`.

    `scales` are those on which the values it asks for may be.
    """

    name: ClassVar[str]
    paper: ClassVar[str]
    summary: ClassVar[str]
    scales: ClassVar[tuple[Scale, ...]] = ("natural", "logit")

    def evaluations(self, n_features: int) -> int | None:
        """How many evaluations the settings need, or ``None`` if the method adapts to the budget."""
        del n_features
        return None

    def min_budget(self, n_features: int) -> int:
        """The smallest budget with which the method can answer."""
        return self.evaluations(n_features) or 1

    @abstractmethod
    def explain(self, task: Task) -> Steps:
        """The algorithm."""


explainers: Registry[Explainer] = Registry("method", "pertinent.explainers")


def plan_budget(explainer: Explainer, budget: int | None, n_features: int) -> int:
    """The budget to use: the one given, else what the settings need, else 1000."""
    min_budget = explainer.min_budget(n_features)
    if budget is None:
        return explainer.evaluations(n_features) or max(DEFAULT_BUDGET, min_budget)
    if budget < min_budget:
        raise BudgetError(
            f"`budget` must be at least {min_budget} for {explainer.name} with {n_features} features, "
            f"but got {budget}."
        )
    return budget
