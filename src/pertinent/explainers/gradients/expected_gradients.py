"""Expected gradients: integrated gradients in expectation over many baselines."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pertinent.asks import PathGradients
from pertinent.explainers.base import Finding, Steps, Task, explainers
from pertinent.explainers.gradients.gradient import GradientExplainer
from pertinent.explainers.gradients.integrated_gradients import LONGEST
from pertinent.removal.base import Removal
from pertinent.settings import Count


@explainers.register("expected-gradients")
@dataclass(frozen=True)
class ExpectedGradients(GradientExplainer):
    r"""Integrated gradients in expectation over baselines and points.

    .. math:: \mathbb{E}_{x' \sim D,\, \alpha \sim U(0, 1)}
        \left[ (x - x') \frac{\partial p(x' + \alpha (x - x'))}{\partial x} \right]

    The scores sum to p(x) − E p(x′) in expectation; one α is drawn from each of equal strata.

    Parameters
    ----------
    samples
        Pairs of a baseline and a point; by default half the budget.
    baseline
        A random removal: by default ``"random-token"`` for texts, ``"uniform-noise"`` for
        images, ``"background"`` for table rows.
    """

    paper = "Erion et al. 2021, Eqn. 3"
    summary = "integrated gradients, expected over random baselines"
    samples: Count | None = None
    baseline: str | Removal | np.ndarray | None = "drawn"

    def evaluations(self, n_features: int) -> int | None:
        """Two for each sample."""
        del n_features
        return None if self.samples is None else 2 * self.samples

    def explain(self, task: Task) -> Steps:
        """Ask at random points on lines from random baselines, and average."""
        n = self.samples or task.budget // 2
        shares = (task.rng.permutation(n) + task.rng.random(n)) / n
        gradients = []
        for first in range(0, n, LONGEST):
            part = np.arange(first, min(first + LONGEST, n))
            found = yield PathGradients(shares[part], task.target, self.baseline, draws=part)
            gradients.append(found.gradients)
        every = np.concatenate(gradients)
        errors = every.std(axis=0, ddof=1) / np.sqrt(n) if n > 1 else np.full(task.n_features, np.nan)
        return Finding(scores=every.mean(axis=0), standard_errors=errors)
