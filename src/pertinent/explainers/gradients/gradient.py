"""The gradient at the input, alone or times the input, and what all gradient methods share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from pertinent.array_types import Floats
from pertinent.asks import PathGradients
from pertinent.explainers.base import Explainer, Finding, Steps, Task, explainers

AT_THE_INPUT: Floats = np.ones(1)


@dataclass(frozen=True)
class GradientExplainer(Explainer):
    """A method that needs a model with gradients: a transformer or a torch module."""

    scales = ("natural",)
    smallest_budget = 2

    def evaluations(self, _: int) -> int | None:
        """One forward and one backward pass."""
        return 2


@explainers.register("gradient")
@dataclass(frozen=True)
class Gradient(GradientExplainer):
    """∂p/∂x over each feature's parts: the embeddings of its tokens, its pixels, its columns.

    Parameters
    ----------
    reduce
        ``"sum"``, as in Hase et al., or ``"length"``, the L2 norm.

    Note
    ----
    If the model first normalises its embeddings, as BERT does, adding a constant to one of them
    changes nothing: the sum is zero up to rounding, and carries no information.
    """

    paper = "Simonyan et al. 2013, Eqn. 3; Hase et al. 2021, Sec. 6.1 (2)"
    summary = "the gradient of the target's probability, summed over each feature"
    reduce: Literal["sum", "length"] = "sum"

    def explain(self, task: Task) -> Steps:
        """Ask for one gradient."""
        found = yield PathGradients(
            AT_THE_INPUT, task.target, times="nothing" if self.reduce == "sum" else "itself"
        )
        return Finding(scores=found.gradients[0])


@explainers.register("gradient-x-input")
@dataclass(frozen=True)
class GradientTimesInput(GradientExplainer):
    """x · ∂p/∂x, summed over each feature's parts."""

    paper = "Shrikumar et al. 2016, Sec. 3"
    summary = "the gradient times the input, summed over each feature"

    def explain(self, task: Task) -> Steps:
        """Ask for one gradient."""
        found = yield PathGradients(AT_THE_INPUT, task.target, times="input")
        return Finding(scores=found.gradients[0])
