"""LIME: a weighted ridge regression on random masks, or on random rows of a table."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import Annotated, Any, Literal

import numpy as np

from pertinent.array_types import Floats, Masks
from pertinent.asks import Compute, RowValues, Values
from pertinent.config.settings import NotNegative, Positive, Range
from pertinent.errors import InputError, SettingError
from pertinent.explainers.base import Explainer, Finding, Steps, Task, Traits, explainers

WIDTH = 25.0
"""Default σ for masks, as in the lime package for texts."""

CACHED = 2**19
"""Largest number of mask entries for which a design is cached for inputs of the same size (8 MB)."""


@explainers.register("lime")
@dataclass(frozen=True)
class Lime(Explainer):
    r"""The linear model that best fits the model's answers in the neighbourhood of the input.

    .. math:: \min_{w, b} \sum_z \pi(z)\,(v(z) - w^\top z - b)^2 + \alpha \lVert w \rVert^2,
        \qquad \pi(z) = \sqrt{\exp(-D(z)^2 / \sigma^2)}

    The `form` determines what z is and therefore what a score means.

    Parameters
    ----------
    form
        ``"removal"``: z is a mask, and a score is the effect of removing the feature. Each mask removes a
        uniform random number of features, the first mask none; D is the cosine distance to the whole input
        times 100, as in the lime package for texts and images. The other two forms follow the package's
        tabular explainer: rows are drawn from the background's distribution, and no feature is removed.
        ``"continuous"`` (`discretize_continuous=False`): columns are drawn from normal distributions, z holds
        their values in standard deviations, and a score is a slope: the change of the answer per standard
        deviation of the column. ``"discretised"`` (the package's default): columns are cut at their
        quartiles, rows are drawn from these bins, z marks the columns that stay in the row's bin, and a score
        is the effect of being in that bin. D is then Euclidean.
    samples
        Number of masks or rows; by default the budget.
    kernel_width
        σ; by default 25, and 0.75 √d for the tabular forms.
    alpha
        The ridge penalty α.

    Note
    ----
    All features enter a single regression, whereas the lime package first selects `num_features`.
    """

    paper = "Ribeiro, Singh & Guestrin 2016, Eqn. 2 and Alg. 1"
    traits = Traits(
        evaluations_per_feature=2, min_budget=2, reads_numbers=True, all_classes=True, standard_errors=True
    )
    summary = "weighted ridge regression on random masks, or on random rows of a table"
    form: Literal["removal", "continuous", "discretised"] = "removal"
    samples: Annotated[int, Range(at_least=2)] | None = None
    kernel_width: Positive | None = None
    alpha: NotNegative = 1.0

    def evaluations(self, n_features: int) -> int | None:
        """Return the number of samples."""
        return self.samples

    def explain(self, task: Task) -> Steps:
        """Evaluate the masks or rows and fit the regression."""
        n, d = self.samples or task.budget, task.n_features
        if self.form == "removal":
            seed, width = int(task.rng.integers(2**62)), self.kernel_width or WIDTH
            design = mask_design if n * d <= CACHED else mask_design.__wrapped__
            masks, regression = design(n, d, seed, width, self.alpha)
            values = yield Values(masks)
            fit = partial(regression, values)
        else:
            numbers = self._numbers(task)
            draw = draw_normal if self.form == "continuous" else draw_bins
            rows, z = draw(task.rng, n, numbers.values, numbers.background)
            values = yield RowValues(rows)
            distance = np.linalg.norm(z - z[0], axis=1)
            weight = kernel(distance, self.kernel_width or 0.75 * np.sqrt(d))
            fit = partial(ridge, z, values, weight, self.alpha)
        scores, errors = yield Compute(fit)
        return Finding(scores=scores.T, standard_errors=errors.T)

    def _numbers(self, task: Task) -> Any:
        """Return the row and the background, or raise an error if the form does not apply."""
        numbers = task.numbers
        if numbers is None or numbers.values.ndim != 1 or len(numbers.values) != task.n_features:
            raise SettingError(
                f"`form` must be 'removal' except for table rows with a number for each feature, got "
                f"{self.form!r}."
            )
        if numbers.background is None:
            raise SettingError(
                f"lime with form={self.form!r} samples rows from the background: pass `background` to "
                "`wrap`, such as a sample of the training data."
            )
        if np.isnan(numbers.values).any() or np.isnan(numbers.background).any():
            raise InputError(
                f"lime with form={self.form!r} needs a value in every column, but the row or the background "
                "has missing values (NaN): use form='removal'."
            )
        return numbers


@lru_cache(maxsize=16)
def mask_design(n: int, d: int, seed: int, width: float, alpha: float) -> tuple[Masks, WeightedRidge]:
    """Return masks and their regression, cached for inputs of the same size."""
    masks = draw_masks(np.random.default_rng(seed), n, d)
    masks.flags.writeable = False
    return masks, WeightedRidge(masks, proximity(masks, width), alpha)


def draw_normal(rng: np.random.Generator, n: int, row: Floats, background: Floats) -> tuple[Floats, Floats]:
    """Return the row followed by rows drawn with the background's moments, raw and standardised."""
    mean, deviation = background.mean(axis=0), background.std(axis=0)
    deviation = np.where(deviation > 0, deviation, 1.0)
    rows = np.concatenate([row[None], rng.normal(mean, deviation, size=(n - 1, len(row)))])
    return rows, (rows - mean) / deviation


def draw_bins(rng: np.random.Generator, n: int, row: Floats, background: Floats) -> tuple[Floats, Floats]:
    """Return the row and random rows that fall into each quartile bin as often as the background does.

    Within a bin, values follow a normal distribution with the moments of the background values in it,
    truncated at the edges of the bin. The second array is 1 where a column is in the row's bin, else 0.
    """
    rows, same = np.tile(row, (n, 1)), np.ones((n, len(row)))
    for column, values in enumerate(background.T):
        edges = np.unique(np.percentile(values, [25, 50, 75]))
        bins = np.searchsorted(edges, values)
        drawn = rng.choice(bins, n - 1)
        low, high = np.append(values.min(), edges), np.append(edges, values.max())
        for b in np.unique(drawn).tolist():
            inside, members = np.flatnonzero(drawn == b), values[bins == b]
            draws = _truncated_normal(rng, len(inside), members, float(low[b]), float(high[b]))
            rows[1 + inside, column] = draws
        same[1:, column] = drawn == np.searchsorted(edges, row[column])
    return rows, same


def _truncated_normal(rng: np.random.Generator, n: int, members: Floats, low: float, high: float) -> Floats:
    """Draw normal values with the moments of `members`, redrawing those outside [low, high]."""
    mean, deviation = members.mean(), members.std()
    draws = np.full(n, mean)
    outside = np.arange(n) if deviation > 0 else np.arange(0)
    while len(outside):
        draws[outside] = rng.normal(mean, deviation, len(outside))
        outside = outside[(draws[outside] < low) | (draws[outside] > high)]
    return draws


def draw_masks(rng: np.random.Generator, n: int, d: int) -> Masks:
    """Return the full mask, then masks that each remove a uniform random number of random features."""
    removed = rng.integers(1, d + 1, size=(n - 1, 1))
    uniform = rng.random((n - 1, d))
    masks = np.ones((n, d), dtype=np.bool_)
    masks[1:] = uniform > np.take_along_axis(np.sort(uniform, axis=1), removed - 1, axis=1)
    return masks


def proximity(masks: Masks, kernel_width: float) -> Floats:
    """Return π of each mask; the cosine between a mask and the whole input is sqrt(share kept)."""
    return kernel(100 * (1 - np.sqrt(masks.mean(axis=1))), kernel_width)


def kernel(distance: Floats, width: float) -> Floats:
    """Return π of each distance."""
    return np.asarray(np.sqrt(np.exp(-((distance / width) ** 2))))


class WeightedRidge:
    """A weighted ridge regression with an unpenalised intercept; its factorisation is reused."""

    def __init__(self, design: Floats | Masks, weight: Floats, alpha: float) -> None:
        self.design, self.weight, self.alpha = design, weight, alpha

    @cached_property
    def _solved(self) -> tuple[Floats, Floats, float]:
        """Return the centred design and the result of `_lever` for it."""
        z = self.design.astype(np.float64)
        share, root = self.weight / self.weight.sum(), np.sqrt(self.weight)[:, None]
        centred = root * (z - share @ z)
        return centred, *_lever(centred, self.alpha)

    def __call__(self, values: Floats) -> tuple[Floats, Floats]:
        """Return the coefficients (features, classes) and their standard errors."""
        share, root = self.weight / self.weight.sum(), np.sqrt(self.weight)[:, None]
        response = root * (values - share @ values)
        centred, lever, n_used = self._solved
        scores = lever.T @ response
        residual = response - centred @ scores
        freedom = len(values) - 1 - n_used
        inflation = len(values) / freedom if freedom > 1e-6 else np.nan
        return scores, np.sqrt((lever**2).T @ residual**2 * inflation)


def ridge(design: Floats | Masks, values: Floats, weight: Floats, alpha: float) -> tuple[Floats, Floats]:
    """Return coefficients (features, classes), with an unpenalised intercept, and their standard errors."""
    return WeightedRidge(design, weight, alpha)(values)


def _lever(design: Floats, alpha: float) -> tuple[Floats, float]:
    """Return X (XᵀX + αI)⁻¹ and the effective degrees of freedom, using the smaller of XᵀX and XXᵀ."""
    wide = design.shape[0] < design.shape[1]
    gram = design @ design.T if wide else design.T @ design
    normal = gram + alpha * np.eye(len(gram))
    is_negligible = alpha <= 1e-12 * gram.trace()
    inverse = np.linalg.pinv(normal, hermitian=True) if is_negligible else np.linalg.inv(normal)
    return inverse @ design if wide else design @ inverse, float((gram * inverse).sum())
