"""The gradient at the input, times the input."""

from __future__ import annotations

from dataclasses import dataclass

from pertinent.asks import PathGradients
from pertinent.explainers.base import Finding, Steps, Task, explainers
from pertinent.explainers.gradients.gradient import AT_THE_INPUT, GradientExplainer


@explainers.register("gradient-x-input")
@dataclass(frozen=True)
class GradientTimesInput(GradientExplainer):
    """x · ∂p/∂x, summed over each feature's parts."""

    paper = "Shrikumar et al. 2016, Sec. 3"
    summary = "the gradient times the input, summed over each feature"

    def explain(self, task: Task) -> Steps:
        """Ask once."""
        found = yield PathGradients(AT_THE_INPUT, task.target, times="input")
        return Finding(scores=found.gradients[0])
