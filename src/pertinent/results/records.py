"""Nested records of an explanation: the request, the prediction and the cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from pertinent.array_types import Floats
from pertinent.config.serialization import Index, Shape
from pertinent.config.settings import Share
from pertinent.explainers.base import DEFAULT_SPARSITIES
from pertinent.outputs import Classes, Output, Scale


@dataclass(frozen=True)
class RequestRecord:
    """The request of an explanation, with names instead of objects.

    Attributes
    ----------
    method, removal
        Names of the explainer and of the removal.
    settings, removal_settings
        Their settings that differ from the defaults.
    sparsities
        Shares of features for which the explanation was made and at which it is measured.
    scale
        Scale of the scores and base values: ``"natural"`` (probabilities or values), ``"logit"`` (log-odds),
        ``"log-probability"`` or ``"raw"`` (the model's scores before softmax or sigmoid).
    seed
        Seed of the random draws.
    """

    method: str
    settings: Mapping[str, Any]
    removal: str
    removal_settings: Mapping[str, Any] = field(default_factory=dict)
    sparsities: tuple[Share, ...] = DEFAULT_SPARSITIES
    scale: Scale = "natural"
    seed: Index = 0


@dataclass(frozen=True, eq=False)
class Prediction:
    """The model's output for the whole input.

    Attributes
    ----------
    values
        Probability or value of each column (columns,).
    classes
        Name of each column: a class, a label or a value.
    output
        Meaning of the values: class probabilities, label probabilities or plain values.
    """

    values: Annotated[Floats, Shape("columns")]
    classes: tuple[str, ...]
    output: Output = field(default_factory=Classes, compare=False)

    @property
    def column(self) -> int:
        """Return the column explained by default, such as that of the most likely class."""
        return self.output.default_target(self.values)


@dataclass(frozen=True)
class Cost:
    """The cost of an explanation.

    Attributes
    ----------
    evaluations
        Number of distinct masks that were evaluated; a gradient counts as two.
    budget
        Largest number of evaluations allowed.
    budget_per_sparsity
        Whether each sparsity had the full budget, as in a search.
    seconds
        Time that the model took, in seconds.
    """

    evaluations: Index = 0
    budget: Index = 0
    budget_per_sparsity: bool = False
    seconds: float = 0.0
