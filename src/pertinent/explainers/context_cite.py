"""ContextCite: a sparse linear regression on random masks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated

import numpy as np

from pertinent.array_types import Floats, Masks
from pertinent.asks import Compute, Values
from pertinent.config.settings import Positive, ProperShare, Range
from pertinent.explainers.base import Explainer, Finding, Steps, Task, Traits, explainers

TOLERANCE = 1e-6
"""Largest duality gap at convergence, as a share of the response's mean square."""

MAX_STEPS = 1000
TEST_EVERY = 20
"""Largest number of steps of the regression, and number of steps between two convergence tests."""


@explainers.register("context-cite")
@dataclass(frozen=True)
class ContextCite(Explainer):
    r"""A sparse linear model that predicts the answer's log-odds from the kept sources.

    .. math:: \min_{w, b} \frac{1}{2n} \sum_{i=1}^{n} (f(z_i) - w^\top z_i - b)^2 + \lambda \lVert \sigma w
        \rVert_1, \qquad f = \log \frac{p}{1 - p}

    where the masks z are uniform, and σ are the standard deviations of their columns. Log-odds are the
    default scale if the output has them. λ is `alpha` times the standard deviation of f over the masks.

    Parameters
    ----------
    samples
        Number of masks; by default the budget.
    keep
        Probability of keeping a feature.
    alpha
        Penalty on coefficients of standardised masks, in standard deviations of the response.

    Note
    ----
    In the authors' code λ is 0.01 for each token of the answer, whatever its log-odds. For real language
    models, whose log-odds vary by many units, the best λ is proportional to their standard deviation.
    """

    paper = "Cohen-Wang et al. 2024, Sec. 3 and App. A.1"
    traits = Traits(evaluations_per_feature=1, min_budget=2, default_scale="logit", all_classes=True)
    summary = "sparse linear regression (lasso) on uniform random masks, by log-odds"
    samples: Annotated[int, Range(at_least=2)] | None = None
    keep: ProperShare = 0.5
    alpha: Positive = 0.02

    def evaluations(self, n_features: int) -> int | None:
        """Return the number of samples."""
        return self.samples

    def explain(self, task: Task) -> Steps:
        """Evaluate the masks and fit the regression."""
        masks = task.rng.random((self.samples or task.budget, task.n_features)) < self.keep
        values = yield Values(masks)
        scores = yield Compute(partial(lasso, masks, values, self.alpha * values.std(axis=0)))
        return Finding(scores=scores.T)


def lasso(masks: Masks, values: Floats, penalties: Floats) -> Floats:
    """Return the coefficients (features, columns) of masks; each column has a separate penalty.

    The solver is accelerated proximal gradient descent (Beck & Teboulle 2009), restarted when a step goes
    uphill (O'Donoghue & Candès 2015).
    """
    spread = masks.std(axis=0)
    varies = spread > 0
    x = (masks - masks.mean(axis=0))[:, varies] / spread[varies]
    y = values - values.mean(axis=0)
    n, square = len(x), (y**2).mean(axis=0)
    step = 1 / max(float(np.linalg.norm(x, 2)) ** 2 / n, np.finfo(float).tiny) if x.size else 1.0
    w = ahead = np.zeros((x.shape[1], y.shape[1]))
    t = np.ones(y.shape[1])
    for iteration in range(MAX_STEPS):
        if iteration % TEST_EVERY == 0 and (_duality_gap(x, y, w, penalties) <= TOLERANCE * square).all():
            break
        moved = ahead + step * (x.T @ (y - x @ ahead)) / n
        new_w = np.sign(moved) * np.maximum(np.abs(moved) - step * penalties, 0.0)
        uphill = ((ahead - new_w) * (new_w - w)).sum(axis=0) > 0
        new_t = np.where(uphill, 1.0, (1 + np.sqrt(1 + 4 * t**2)) / 2)
        ahead = new_w + np.where(uphill, 0.0, (t - 1) / new_t) * (new_w - w)
        w, t = new_w, new_t
    scores = np.zeros((masks.shape[1], y.shape[1]))
    scores[varies] = w / spread[varies, None]
    return scores


def _duality_gap(x: Floats, y: Floats, w: Floats, penalties: Floats) -> Floats:
    """Return an upper bound on each column's distance from the optimal objective."""
    n, residuals = len(x), y - x @ w
    largest = np.abs(x.T @ residuals / n).max(axis=0, initial=0.0)
    share = np.minimum(1.0, penalties / np.maximum(largest, np.finfo(float).tiny))
    product, square = (residuals * y).sum(axis=0) / n, (residuals**2).sum(axis=0) / n
    penalty = penalties * np.abs(w).sum(axis=0)
    return np.asarray((1 + share**2) * square / 2 + penalty - share * product)
