"""Bayesian linear regression on well-chosen masks, with a prior from the gradient."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np

from pertinent.array_types import Floats, Masks
from pertinent.asks import Asking, Compute, PathGradients, Values
from pertinent.config.settings import Range
from pertinent.errors import ModelError, PertinentError
from pertinent.explainers.base import DEFAULT_BUDGET, Explainer, Finding, Steps, Task, Traits, explainers
from pertinent.explainers.d_optimal import d_optimal_masks
from pertinent.explainers.gradients import AT_THE_INPUT
from pertinent.outputs import TINY

DEVIATION = 0.3
"""Standard deviation of an effect around its expected size, relative to the root mean square of all sizes."""

FLOOR = 0.5
"""Share of this variance that does not depend on the expected size."""

NOISES = np.array([0.05, 0.1, 0.2, 0.4, 0.8])
"""Candidate standard deviations of what no linear model explains, in the same unit."""

FEW = 32
"""Smallest number of masks if neither `samples` nor the budget is set."""

MASKS_PER_FEATURE = 4


@explainers.register("bayesian-regression")
@dataclass(frozen=True)
class BayesianRegression(Explainer):
    r"""A linear model of the answer given the kept features, with a prior from the gradient.

    .. math:: f(z) = b + z^\top w + \varepsilon, \quad w \sim N(0, s^2 (\mu \mu^\top + D)), \quad
        \varepsilon \sim N(0, s^2 \sigma^2)

    The expected sizes μ are the norms of the gradient for each token's embedding, summed over a feature. D is
    diagonal and grows with μ. b and s have flat priors, and the posterior is averaged over candidates for σ.
    The first mask keeps everything; the others are random halves, chosen so that they determine a linear
    model well (a D-optimal design). Scores are posterior means, and standard errors are posterior standard
    deviations. If the output has log-odds, they are the default scale, as in `context-cite`.

    Parameters
    ----------
    samples
        Number of masks; by default the budget, and without one 4 per feature, at least 32, at most 1,000.
    prior
        ``"gradient"`` for expected sizes from the gradient, which costs two evaluations; ``"uniform"`` for
        equal sizes; ``"auto"`` for the gradient if the model has one and it can be computed.

    Note
    ----
    For language models, gradient × input says little about the effect of a source, but the norm of the
    gradient says much: with few masks, it is the better part of the answer.
    """

    paper = "BayesLIME (Slack et al. 2021, Sec. 3), with another prior and other masks"
    traits = Traits(
        evaluations_per_feature=1, min_budget=4, default_scale="logit", all_classes=True, standard_errors=True
    )
    summary = "Bayesian linear regression on well-chosen masks, by log-odds; the gradient is the prior"
    samples: Annotated[int, Range(at_least=2)] | None = None
    prior: Literal["auto", "gradient", "uniform"] = "auto"

    def evaluations(self, n_features: int) -> int:
        """Return the number of samples, plus a forward and a backward pass for a gradient."""
        by_default = min(max(FEW, MASKS_PER_FEATURE * n_features), DEFAULT_BUDGET)
        return (self.samples or by_default) + self._gradient_cost

    def min_budget(self, n_features: int) -> int:
        """Return the samples, or four, plus the evaluations of the gradient."""
        return (self.samples or self.traits.min_budget) + self._gradient_cost

    @property
    def _gradient_cost(self) -> int:
        """Return the number of evaluations of the gradient."""
        return 0 if self.prior == "uniform" else 2

    def explain(self, task: Task) -> Steps:
        """Request the gradient and the masks, and fit the regression."""
        details: dict[str, Any] = {"prior": "uniform"}
        warnings: tuple[str, ...] = ()
        expected: Floats = np.ones(task.n_features)
        spent = 0
        if self.prior == "gradient" or (self.prior == "auto" and task.model.has_gradients):
            spent = self._gradient_cost
            try:
                expected = yield from _gradient_norms(task)
                details = {"prior": "gradient"}
            except PertinentError as error:  # such as too little memory, although the model can be evaluated
                if self.prior == "gradient":
                    raise
                warnings = (f"The prior is uniform because the gradient cannot be computed: {error}",)
        masks = d_optimal_masks(self.samples or task.budget - spent, task.n_features, task.rng)
        values = yield Values(masks)
        effects = yield Compute(partial(fit, masks, values, expected))
        return Finding(
            scores=effects.mean.T,
            standard_errors=effects.deviation.T,
            details=details,
            warnings=warnings,
        )


def _gradient_norms(task: Task) -> Asking[Floats]:
    """Return the gradient's norm for each feature; raise a `ModelError` if it is not finite."""
    norms = (yield PathGradients(AT_THE_INPUT, task.target, times="norm")).gradients[0]
    if not np.isfinite(norms).all():
        raise ModelError("it is not finite.")
    return np.asarray(norms)


class EffectPosterior(NamedTuple):
    """Posterior means and standard deviations of effects (features, columns)."""

    mean: Floats
    deviation: Floats


def fit(masks: Masks, values: Floats, sizes: Floats) -> EffectPosterior:
    """Return the posterior of the effects from masks (n, features), answers (n, columns) and expected sizes.

    With the singular value decomposition of the whitened masks, x K^(1/2) = U S Vᵀ, the posterior for each
    candidate noise σ has the mean K^(1/2) V S / (S² + σ²) Uᵀ y.
    """
    sizes = (sizes + TINY) / np.sqrt(((sizes + TINY) ** 2).mean())
    variances = DEVIATION**2 * (FLOOR + (1 - FLOOR) * sizes)
    root = np.linalg.cholesky(np.outer(sizes, sizes) + np.diag(variances))
    x, y = masks - masks.mean(axis=0), values - values.mean(axis=0)
    free = max(1, len(x) - 1)
    left, singular, right = np.linalg.svd(x @ root, full_matrices=False)
    projected, directions = left.T @ y, root @ right.T
    rest = np.maximum((y**2).sum(axis=0) - (projected**2).sum(axis=0), 0.0)
    total = singular[:, None] ** 2 + NOISES**2  # (directions, candidates)
    squares = (projected[..., None] ** 2 / total[:, None]).sum(axis=0) + rest[:, None] / NOISES**2
    constant = np.log(total).sum(axis=0) + (free - len(singular)) * np.log(NOISES**2)
    likelihood = -0.5 * (constant + free * np.log(squares + TINY))  # (columns, candidates)
    weights = np.exp(likelihood - likelihood.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    means = np.einsum("dr,rs,rc->dcs", directions, singular[:, None] / total, projected)
    mean = (means * weights).sum(axis=-1)
    learned = directions**2 @ (singular[:, None] ** 2 / total)  # (features, candidates)
    left_over = np.maximum((root**2).sum(axis=1)[:, None] - learned, 0.0)
    variance = left_over[:, None] * squares / free + (means - mean[..., None]) ** 2
    return EffectPosterior(mean, np.sqrt((variance * weights).sum(axis=-1)))
