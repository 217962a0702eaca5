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
"""The regression ends when the duality gap is at most this share of the response's mean square."""

MOST_STEPS = 1000
CHECK_EVERY = 20
"""Number of steps of the regression at most, and from one test of its end to the next."""


@explainers.register("context-cite")
@dataclass(frozen=True)
class ContextCite(Explainer):
    r"""The sparse linear model that predicts the answer's log-odds from which sources are kept.

    .. math:: \min_{w, b} \frac{1}{2n} \sum_{i=1}^{n} (f(z_i) - w^\top z_i - b)^2 + \lambda \lVert \sigma w
        \rVert_1, \qquad f = \log \frac{p}{1 - p}

    where the masks z are uniform, and σ are the standard deviations of their columns. Where the output has
    log-odds, it works on these unless another scale is asked for. If the answer is a text of T tokens, λ is
    `alpha` · T, and `alpha` for each of its tokens, as in the authors' code.

    Parameters
    ----------
    samples
        Number of masks; by default the budget.
    keep
        The probability of keeping a feature.
    alpha
        The penalty λ on coefficients of standardised masks, for each token of the answer.
    """

    paper = "Cohen-Wang et al. 2024, Sec. 3 and App. A.1"
    traits = Traits(evaluations_per_feature=1, min_budget=2, default_scale="logit", all_classes=True)
    summary = "sparse linear regression (lasso) on uniform random masks, by log-odds"
    samples: Annotated[int, Range(at_least=2)] | None = None
    keep: ProperShare = 0.5
    alpha: Positive = 0.01

    def evaluations(self, n_features: int) -> int | None:
        """The samples."""
        return self.samples

    def explain(self, task: Task) -> Steps:
        """Ask for the masks, and fit."""
        masks = task.rng.random((self.samples or task.budget, task.n_features)) < self.keep
        values = yield Values(masks)
        columns = task.model.columns or ("",) * len(task.prediction)
        penalties = self.alpha * task.output.n_tokens(columns)
        several = np.tile(penalties, values.shape[1] // len(penalties))
        scores = yield Compute(partial(lasso, masks, values, several))
        return Finding(scores=scores.T)


def lasso(masks: Masks, values: Floats, penalties: Floats) -> Floats:
    """Coefficients (features, columns) of masks; each column has its own penalty.

    By accelerated gradient steps (Beck & Teboulle 2009) that start anew where they point uphill (O'Donoghue &
    Candès 2015).
    """
    spread = masks.std(axis=0)
    varies = spread > 0
    x = (masks - masks.mean(axis=0))[:, varies] / spread[varies]
    y = values - values.mean(axis=0)
    n, square = len(x), (y**2).mean(axis=0)
    step = 1 / max(float(np.linalg.norm(x, 2)) ** 2 / n, np.finfo(float).tiny) if x.size else 1.0
    found = ahead = np.zeros((x.shape[1], y.shape[1]))
    speed = np.ones(y.shape[1])
    for number in range(MOST_STEPS):
        if number % CHECK_EVERY == 0 and (_gap(x, y, found, penalties) <= TOLERANCE * square).all():
            break
        moved = ahead + step * (x.T @ (y - x @ ahead)) / n
        new = np.sign(moved) * np.maximum(np.abs(moved) - step * penalties, 0.0)
        uphill = ((ahead - new) * (new - found)).sum(axis=0) > 0
        faster = np.where(uphill, 1.0, (1 + np.sqrt(1 + 4 * speed**2)) / 2)
        ahead = new + np.where(uphill, 0.0, (speed - 1) / faster) * (new - found)
        found, speed = new, faster
    scores = np.zeros((masks.shape[1], y.shape[1]))
    scores[varies] = found / spread[varies, None]
    return scores


def _gap(x: Floats, y: Floats, found: Floats, penalties: Floats) -> Floats:
    """How far each column's objective is from the best one at most: the duality gap of the lasso."""
    n, rest = len(x), y - x @ found
    largest = np.abs(x.T @ rest / n).max(axis=0, initial=0.0)
    share = np.minimum(1.0, penalties / np.maximum(largest, np.finfo(float).tiny))
    inside, square = (rest * y).sum(axis=0) / n, (rest**2).sum(axis=0) / n
    total = penalties * np.abs(found).sum(axis=0)
    return np.asarray((1 + share**2) * square / 2 + total - share * inside)
