"""A sum of single effects: a sparse Bayesian regression on masks that are chosen by what it is unsure of."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated

import numpy as np

from pertinent.array_types import Floats, Masks
from pertinent.asks import Arithmetic, Values
from pertinent.explainers.base import Explainer, Finding, Steps, Task, explainers
from pertinent.settings import Count, Range

PRIORS = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
"""Candidate prior variances of an effect, as multiples of the response's variance."""

RATIOS = (0.0, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3)
"""Candidate variances of the many small effects, as multiples of the noise."""

MOST_STEPS, TOLERANCE = 50, 1e-3
"""The fit ends after so many steps, or when no coefficient moves by more than this share of the deviation."""

FIRST, ROUNDS = 0.5, 4
"""The share of the masks that are drawn at random before any are chosen, and the rounds of choosing."""

POOL, DRAWS = 256, 128
"""Number of random masks to choose from in a round, and of draws from the posterior to choose by."""


@explainers.register("single-effects")
@dataclass(frozen=True)
class SingleEffects(Explainer):
    r"""The linear model with few strong effects that predicts the answer from which features are kept.

    .. math:: f(z) = b + z^\top \Big(\sum_{l=1}^{L} \gamma_l \beta_l + \theta\Big) + \varepsilon

    Each of the L single effects has one feature, γ (uniform before anything is known), of size β; θ are many
    small effects, normal with a common variance. The posterior is found by iterative Bayesian stepwise
    selection; the variances of effects and noise are those of the largest likelihood. Scores are posterior
    means, standard errors posterior standard deviations of the single effects.

    Half of the masks are uniform pairs of a mask and its complement. The others are chosen in four rounds out of
    uniform ones: those whose answers are least certain, given the answers so far and those that are chosen
    already. If one of three features may be the one that matters, they are the masks that tell these apart.
    Where the output has log-odds, it works on these unless another scale is asked for, as `context-cite` does.

    Parameters
    ----------
    samples
        Number of masks; by default the budget.
    effects
        Number of single effects L; those that are not needed vanish.
    """

    paper = "Wang, Sarkar, Carbonetto & Stephens 2020, Alg. 1; the choice of masks is pertinent's own"
    evaluations_per_feature = 1
    summary = "sparse Bayesian regression on masks that it chooses itself, by log-odds"
    smallest_budget = 4
    default_scale = "logit"
    samples: Annotated[int, Range(at_least=4)] | None = None
    effects: Count = 10

    def evaluations(self, n_features: int) -> int | None:
        """The samples."""
        return self.samples

    def explain(self, task: Task) -> Steps:
        """Ask for random masks, then for those that the fit is least sure of, and fit to all."""
        d, n = task.n_features, self.samples or task.budget
        half = task.rng.random((max(2, int(FIRST * n) // 2), d)) < 0.5
        masks = np.concatenate([half, ~half])
        values = yield Values(masks)
        for size in np.linspace(len(masks), n, ROUNDS + 1).astype(int)[1:].tolist():
            if size > len(masks):
                fitting = partial(fit, masks, values[:, [task.target]], self.effects)
                found = yield Arithmetic(fitting)
                chosen = choose(found, size - len(masks), task.rng)
                masks = np.concatenate([masks, chosen])
                values = np.concatenate([values, (yield Values(chosen))])
        found = yield Arithmetic(partial(fit, masks, values, self.effects))
        return Finding(scores=found.mean.T, standard_errors=found.deviation.T)


@dataclass(frozen=True, eq=False)
class Effects:
    """The posterior of single effects for each column of answers.

    Attributes
    ----------
    share
        The probability (effects, features, columns) that an effect is that of a feature.
    size, variance
        Mean and variance of the effect if it is.
    small
        The small effects (features, columns).
    noise
        The variance of what is left (columns,).
    """

    share: Floats
    size: Floats
    variance: Floats
    small: Floats
    noise: Floats

    @property
    def mean(self) -> Floats:
        """The expected coefficients (features, columns)."""
        return np.asarray((self.share * self.size).sum(axis=0) + self.small)

    @property
    def deviation(self) -> Floats:
        """The standard deviations of coefficients."""
        each = self.share * (self.size**2 + self.variance) - (self.share * self.size) ** 2
        return np.asarray(np.sqrt(np.maximum(each.sum(axis=0), 0.0)))

    def draw(self, n: int, rng: np.random.Generator) -> Floats:
        """Draws of the single effects' coefficients (n, features) for the first column."""
        found = np.zeros((n, self.share.shape[1]))
        for share, size, variance in zip(
            self.share[..., 0], self.size[..., 0], self.variance[..., 0], strict=True
        ):
            feature = rng.choice(len(share), size=n, p=share)
            drawn = size[feature] + np.sqrt(variance[feature]) * rng.standard_normal(n)
            np.add.at(found, (np.arange(n), feature), drawn)
        return found


def fit(masks: Masks, values: Floats, n_effects: int) -> Effects:
    """The posterior given masks (n, features) and answers (n, columns)."""
    x, y = masks - masks.mean(axis=0), values - values.mean(axis=0)
    n, d = x.shape
    power, spread = (x**2).sum(axis=0)[:, None], np.maximum(y.var(axis=0), 1e-12)
    varies = power > 1e-9
    power = np.where(varies, power, 1.0)
    n_effects, columns = min(n_effects, d), y.shape[1]
    share = np.full((n_effects, d, columns), 1 / d)
    size, variance = np.zeros((2, *share.shape))
    small, noise = np.zeros((d, columns)), spread.copy()
    ridge = Ridge(x)
    for _ in range(MOST_STEPS):
        before = (share * size).sum(axis=0) + small
        rest = y - x @ before
        for own in range(n_effects):
            rest += x @ (share[own] * size[own])
            single = _single(np.where(varies, x.T @ rest / power, 0.0), noise / power, spread)
            share[own], size[own], variance[own] = single
            rest -= x @ (share[own] * size[own])
        small = ridge.fit(rest + x @ small)
        coefficients = (share * size).sum(axis=0) + small
        rest = y - x @ coefficients
        doubt = (share * (size**2 + variance) * power).sum(axis=(0, 1))
        doubt -= ((x @ (share * size)) ** 2).sum(axis=(0, 1))
        noise = np.maximum(((rest**2).sum(axis=0) + doubt) / max(1, n - 1), 1e-6 * spread)
        if (np.abs(coefficients - before) <= TOLERANCE * np.sqrt(spread)).all():
            break
    return Effects(share, size, variance, small, noise)


def _single(estimate: Floats, error: Floats, spread: Floats) -> tuple[Floats, Floats, Floats]:
    """The posterior of one single effect from least-squares estimates (features, columns) and variances.

    Its share, size and variance; the prior variance of its size is the candidate of largest likelihood.
    """
    prior = np.array(PRIORS)[:, None, None] * spread
    factors = 0.5 * np.log(error / (error + prior)) + 0.5 * estimate**2 / error * prior / (error + prior)
    top = factors.max(axis=1, keepdims=True)
    likelihood = top[:, 0] + np.log(np.exp(factors - top).mean(axis=1))
    best = likelihood.argmax(axis=0)
    chosen, prior = factors[best, :, np.arange(len(best))].T, prior[best, 0, np.arange(len(best))]
    share = np.exp(chosen - chosen.max(axis=0))
    shrink = prior / (prior + error)
    return share / share.sum(axis=0), shrink * estimate, shrink * error


class Ridge:
    """A ridge regression on fixed masks, whose penalty has the largest likelihood."""

    def __init__(self, x: Floats) -> None:
        self.left, self.values, self.right = np.linalg.svd(x, full_matrices=False)
        self.n = len(x)

    def fit(self, y: Floats) -> Floats:
        """Coefficients (features, columns)."""
        along = self.left.T @ y
        rest = np.maximum((y**2).sum(axis=0) - (along**2).sum(axis=0), 0.0)
        weight = 1 + np.array(RATIOS)[:, None] * self.values**2
        noise = ((along**2)[None] / weight[..., None]).sum(axis=1) + rest
        likelihood = -np.log(weight).sum(axis=1)[:, None] - (self.n - 1) * np.log(noise + 1e-300)
        ratio = np.array(RATIOS)[likelihood.argmax(axis=0)]
        scale = ratio * self.values[:, None] / (1 + ratio * self.values[:, None] ** 2)
        return np.asarray(self.right.T @ (scale * along))


def choose(found: Effects, n: int, rng: np.random.Generator) -> Masks:
    """The n of many uniform masks whose answers are least certain, one after the other."""
    pool = rng.random((max(POOL, 2 * n), found.share.shape[1])) < 0.5
    drawn = found.draw(DRAWS, rng)
    answers = (pool - 0.5) @ (drawn - drawn.mean(axis=0)).T
    covariance = answers @ answers.T / DRAWS
    chosen: list[int] = []
    for _ in range(n):
        uncertain = covariance.diagonal().copy()
        uncertain[chosen] = -1.0
        best = int(uncertain.argmax())
        chosen.append(best)
        row = covariance[best]
        covariance = covariance - np.outer(row, row) / (row[best] + found.noise[0] + 1e-12)
    return np.asarray(pool[chosen])
