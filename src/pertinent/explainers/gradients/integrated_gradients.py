"""Integrated gradients: along the line from a baseline to the input."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from pertinent.array_types import Floats
from pertinent.asks import PathGradients
from pertinent.explainers.base import Finding, Steps, Task, explainers
from pertinent.explainers.gradients.gradient import GradientExplainer
from pertinent.removal.base import Removal
from pertinent.settings import Count

LONGEST = 50
"""Points that are asked for at once, so that one input does not fill the queue."""


@explainers.register("integrated-gradients")
@dataclass(frozen=True)
class IntegratedGradients(GradientExplainer):
    r"""The gradient along the straight line from a baseline x′ to the input.

    .. math:: (x - x') \int_0^1 \frac{\partial p(x' + \alpha (x - x'))}{\partial x} \, d\alpha

    by the Gauss-Legendre rule. The scores sum to p(x) − p(x′) (completeness), more closely
    with more points. The target stays the same along the whole line.

    Parameters
    ----------
    points
        Points on the line; by default half the budget, as each costs a forward and a backward pass.
    baseline
        A removal, by name or instance, which is applied to all features; or an array. By default
        the mask token's embedding for every removable token, zero for images and rows.
    """

    paper = "Sundararajan et al. 2017, Eqn. 1; Hase et al. 2021, Sec. 6.1 (3)"
    summary = "the gradient along the line from a baseline to the input"
    points: Count | None = None
    baseline: str | Removal | np.ndarray | None = None

    def evaluations(self, n_features: int) -> int | None:
        """Two for each point."""
        del n_features
        return None if self.points is None else 2 * self.points

    def explain(self, task: Task) -> Steps:
        """Ask along the line and integrate."""
        shares, weights = _gauss_legendre(self.points or task.budget // 2)
        scores = np.zeros(task.n_features)
        for first in range(0, len(shares), LONGEST):
            part = slice(first, first + LONGEST)
            found = yield PathGradients(shares[part], task.target, self.baseline)
            scores += weights[part] @ found.gradients
        return Finding(scores=scores)


@lru_cache
def _gauss_legendre(n: int) -> tuple[Floats, Floats]:
    """Points in (0, 1) and their weights."""
    points, weights = np.polynomial.legendre.leggauss(n)
    return (points + 1) / 2, weights / 2
