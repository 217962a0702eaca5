"""The gradient at the input, and what all gradient methods share."""

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

    def evaluations(self, n_features: int) -> int | None:
        """One forward and one backward pass."""
        del n_features
        return 2

    def min_budget(self, n_features: int) -> int:
        """One gradient."""
        return self.evaluations(n_features) or 2


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
        """Ask once."""
        found = yield PathGradients(
            AT_THE_INPUT, task.target, times="nothing" if self.reduce == "sum" else "itself"
        )
        return Finding(scores=found.gradients[0])
