"""LIME: a weighted ridge regression on random masks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated

import numpy as np

from pertinent.array_types import Floats, Masks
from pertinent.asks import Arithmetic, Values
from pertinent.explainers.base import Explainer, Finding, Steps, Task, explainers
from pertinent.settings import NotNegative, Positive, Range


@explainers.register("lime")
@dataclass(frozen=True)
class Lime(Explainer):
    r"""The linear model that fits the game best near the whole input.

    .. math:: \min_{w, b} \sum_z \pi(z)\,(v(z) - w^\top z - b)^2 + \alpha \lVert w \rVert^2,
        \qquad \pi(z) = \sqrt{\exp(-D(z)^2 / \sigma^2)}

    with D the cosine distance to the whole input times 100, as in the lime package. Each mask
    removes a uniform random number of features; the first keeps all.

    Parameters
    ----------
    samples
        Number of masks; by default the budget.
    kernel_width
        σ.
    alpha
        The ridge penalty α.

    Note
    ----
    All features enter one regression. The lime package selects `num_features` first, and changes
    table rows by adding noise instead of removing columns.
    """

    paper = "Ribeiro, Singh & Guestrin 2016, Eqn. 2 and Alg. 1"
    evaluations_per_feature = 2
    summary = "weighted ridge regression on random masks"
    smallest_budget = 2
    samples: Annotated[int, Range(at_least=2)] | None = None
    kernel_width: Positive = 25.0
    alpha: NotNegative = 1.0

    def evaluations(self, n_features: int) -> int | None:
        """The samples."""
        return self.samples

    def explain(self, task: Task) -> Steps:
        """Ask for the masks and fit."""
        masks = draw_masks(task.rng, self.samples or task.budget, task.n_features)
        values = yield Values(masks)
        weights = proximity(masks, self.kernel_width)
        scores, errors = yield Arithmetic(partial(ridge, masks, values, weights, self.alpha))
        return Finding(scores=scores.T, standard_errors=errors.T)


def draw_masks(rng: np.random.Generator, n: int, d: int) -> Masks:
    """The full mask, then masks that remove a uniform random number of random features."""
    removed = rng.integers(1, d + 1, size=(n - 1, 1))
    lots = rng.random((n - 1, d))
    masks = np.ones((n, d), dtype=np.bool_)
    masks[1:] = lots > np.take_along_axis(np.sort(lots, axis=1), removed - 1, axis=1)
    return masks


def proximity(masks: Masks, kernel_width: float) -> Floats:
    """π of each mask; the cosine of a mask with the whole input is sqrt(share kept)."""
    distance = 100 * (1 - np.sqrt(masks.mean(axis=1)))
    return np.asarray(np.sqrt(np.exp(-((distance / kernel_width) ** 2))))


def ridge(masks: Masks, values: Floats, weight: Floats, alpha: float) -> tuple[Floats, Floats]:
    """Coefficients (features, classes) with a free intercept, and their standard errors."""
    share, root = weight / weight.sum(), np.sqrt(weight)[:, None]
    design = root * (masks - share @ masks)
    response = root * (values - share @ values)
    lever, used = _lever(design, alpha)
    scores = lever.T @ response
    residual = response - design @ scores
    freedom = len(masks) - 1 - used
    inflation = len(masks) / freedom if freedom > 1e-6 else np.nan
    return scores, np.sqrt((lever**2).T @ residual**2 * inflation)


def _lever(design: Floats, alpha: float) -> tuple[Floats, float]:
    """X (XᵀX + αI)⁻¹ and the degrees of freedom that the fit uses, by the smaller of XᵀX and XXᵀ."""
    wide = design.shape[0] < design.shape[1]
    gram = design @ design.T if wide else design.T @ design
    normal = gram + alpha * np.eye(len(gram))
    swallowed = alpha <= 1e-12 * gram.trace()
    inverse = np.linalg.pinv(normal, hermitian=True) if swallowed else np.linalg.inv(normal)
    return inverse @ design if wide else design @ inverse, float((gram * inverse).sum())
