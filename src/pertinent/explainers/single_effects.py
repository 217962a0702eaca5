"""Sum of single effects: a sparse Bayesian regression on random masks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated

import numpy as np

from pertinent.array_types import Floats, Masks
from pertinent.asks import Compute, Values
from pertinent.config.settings import Count, Range
from pertinent.explainers.base import Explainer, Finding, Steps, Task, Traits, explainers
from pertinent.explainers.d_optimal import d_optimal_masks
from pertinent.outputs import TINY

PRIORS = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
"""Candidate prior variances of an effect, as multiples of the response's variance; the first is never 0."""

RATIOS = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
"""Candidate variances of the many small effects, as multiples of the noise."""

MAX_STEPS, TOLERANCE = 50, 1e-3
"""Largest number of fitting steps, and largest change of coefficients (in deviations) at convergence."""


@explainers.register("single-effects")
@dataclass(frozen=True)
class SingleEffects(Explainer):
    r"""A linear model with few strong effects that predicts the answer from the kept features.

    .. math:: f(z) = b + z^\top \Bigl(\sum_{l=1}^{L} \gamma_l \beta_l + \theta\Bigr) + \varepsilon

    The first mask keeps everything; the others are random halves, chosen so that they determine a linear
    model well (a D-optimal design). Each of the L single effects has one feature γ and one size β. θ holds
    many small effects, normal with a common variance. Iterative Bayesian stepwise selection computes the
    posterior; the variances of β and the noise maximise the likelihood, and that of θ is averaged over by
    likelihood. Scores are posterior means, and standard errors are posterior standard deviations. If the
    output has log-odds, they are the default scale, as in `context-cite`.

    Parameters
    ----------
    samples
        Number of masks; by default the budget.
    effects
        Number of single effects L; unnecessary ones vanish.

    Note
    ----
    The first effect never vanishes, so there always is a best feature. Wang et al. have no small effects.
    """

    paper = "Wang, Sarkar, Carbonetto & Stephens 2020, Alg. 1"
    traits = Traits(
        evaluations_per_feature=1, min_budget=4, default_scale="logit", all_classes=True, standard_errors=True
    )
    summary = "sparse Bayesian regression (a sum of single effects) on well-chosen masks, by log-odds"
    samples: Annotated[int, Range(at_least=4)] | None = None
    effects: Count = 10

    def evaluations(self, n_features: int) -> int | None:
        """Return the number of samples."""
        return self.samples

    def explain(self, task: Task) -> Steps:
        """Evaluate the masks and fit the regression."""
        masks = d_optimal_masks(self.samples or task.budget, task.n_features, task.rng)
        values = yield Values(masks)
        effects = yield Compute(partial(fit, masks, values, self.effects))
        return Finding(scores=effects.mean.T, standard_errors=effects.deviation.T)


@dataclass(frozen=True, eq=False)
class Effects:
    """Posterior of the single effects, for each column of answers.

    Attributes
    ----------
    share
        Probability (effects, features, columns) that the effect belongs to the feature.
    size, variance
        Mean and variance of the effect if it belongs to the feature.
    small, small_variance
        Means and variances of the small effects (features, columns).
    """

    share: Floats
    size: Floats
    variance: Floats
    small: Floats
    small_variance: Floats

    @property
    def mean(self) -> Floats:
        """Return the expected coefficients (features, columns)."""
        return np.asarray((self.share * self.size).sum(axis=0) + self.small)

    @property
    def deviation(self) -> Floats:
        """Return the standard deviations of the coefficients."""
        variances = self.share * (self.size**2 + self.variance) - (self.share * self.size) ** 2
        return np.asarray(np.sqrt(np.maximum(variances.sum(axis=0), 0.0) + self.small_variance))


def fit(masks: Masks, values: Floats, n_effects: int) -> Effects:
    """Return the posterior from masks (n, features) and answers (n, columns)."""
    x, y = masks - masks.mean(axis=0), values - values.mean(axis=0)
    n, d = x.shape
    power, spread = (x**2).sum(axis=0)[:, None], np.maximum(y.var(axis=0), TINY)
    varies = power > TINY
    power = np.where(varies, power, 1.0)
    shape = min(n_effects, d), d, y.shape[1]
    share, size, variance = np.full(shape, 1 / d), np.zeros(shape), np.zeros(shape)
    small, noise, ridge = np.zeros(shape[1:]), spread.copy(), AveragedRidge(x)
    for _ in range(MAX_STEPS):
        before = (share * size).sum(axis=0) + small
        residuals = y - x @ before
        for effect in range(len(share)):
            residuals += x @ (share[effect] * size[effect])
            estimate = np.where(varies, x.T @ residuals / power, 0.0)
            priors = np.array(PRIORS if effect else PRIORS[1:])[:, None, None] * spread
            share[effect], size[effect], variance[effect] = _single(estimate, noise / power, priors)
            residuals -= x @ (share[effect] * size[effect])
        small, small_variance = ridge.fit(residuals + x @ small)
        coefficients = (share * size).sum(axis=0) + small
        uncertainty = (share * (size**2 + variance) * power).sum(axis=(0, 1))
        uncertainty -= ((x @ (share * size)) ** 2).sum(axis=(0, 1))
        squares = ((y - x @ coefficients) ** 2).sum(axis=0)
        noise = np.maximum((squares + uncertainty) / max(1, n - 1), 1e-6 * spread)
        if (np.abs(coefficients - before) <= TOLERANCE * np.sqrt(spread)).all():
            break
    return Effects(share, size, variance, small, small_variance)


def _single(estimate: Floats, error: Floats, priors: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the share, size and variance of one single effect from least-squares estimates.

    The estimates are (features, columns). The prior variance of the size is the candidate with the largest
    likelihood.
    """
    factors = 0.5 * np.log(error / (error + priors)) + 0.5 * estimate**2 / error * priors / (error + priors)
    top = factors.max(axis=1, keepdims=True)
    likelihood = top[:, 0] + np.log(np.exp(factors - top).mean(axis=1))
    best, column = likelihood.argmax(axis=0), np.arange(estimate.shape[1])
    chosen, prior = factors[best, :, column].T, priors[best, 0, column]
    share, shrink = np.exp(chosen - chosen.max(axis=0)), prior / (prior + error)
    return share / share.sum(axis=0), shrink * estimate, shrink * error


class AveragedRidge:
    """A ridge regression on fixed masks, averaged over penalties by their likelihood."""

    def __init__(self, x: Floats) -> None:
        self.left, self.values, self.right = np.linalg.svd(x, full_matrices=False)
        self.n = len(x)
        ratios = np.array(RATIOS)[:, None]
        self.powers = 1 + ratios * self.values**2
        self.scales = ratios * self.values / self.powers
        self.variances = ratios - (ratios * self.values * self.scales) @ self.right**2

    def fit(self, y: Floats) -> tuple[Floats, Floats]:
        """Return the coefficients (features, columns) and their posterior variances."""
        projected = self.left.T @ y
        remainder = np.maximum((y**2).sum(axis=0) - (projected**2).sum(axis=0), 0.0)
        squares = ((projected**2)[None] / self.powers[..., None]).sum(axis=1) + remainder
        likelihood = -0.5 * np.log(self.powers).sum(axis=1)[:, None] - 0.5 * (self.n - 1) * np.log(
            squares + TINY
        )
        weights = np.exp(likelihood - likelihood.max(axis=0))
        weights /= weights.sum(axis=0)
        means = np.einsum("rd,sr,rc->sdc", self.right, self.scales, projected)
        mean = (weights[:, None] * means).sum(axis=0)
        variances = self.variances[..., None] * (squares / max(1, self.n - 1))[:, None] + (means - mean) ** 2
        return mean, (weights[:, None] * variances).sum(axis=0)
