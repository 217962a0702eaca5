"""Banzhaf values: the mean effect of a feature over all subsets of the other features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from pertinent.array_types import Floats, Masks
from pertinent.asks import Values
from pertinent.config.settings import Range
from pertinent.explainers.base import Explainer, Finding, Steps, Task, Traits, explainers
from pertinent.explainers.shapley.error_bounds import SAME, UNSEEN, limit_errors
from pertinent.masks import all_coalitions
from pertinent.stats import student_factor

MOST_BITS = 62
"""Largest number of features for which pairs are drawn without repetition; beyond it, repeats are rare."""


@explainers.register("banzhaf")
@dataclass(frozen=True)
class Banzhaf(Explainer):
    r"""The Banzhaf value, exact if the budget covers all masks, else estimated from uniform samples.

    .. math:: \beta_i = \mathbb{E}[v(S) \mid i \in S] - \mathbb{E}[v(S) \mid i \notin S]

    Every mask is used for every feature (maximum sample reuse), and each is paired with its complement.

    Parameters
    ----------
    samples
        Number of masks; the budget by default.
    """

    paper = "Banzhaf 1965; Wang & Jia 2023, Eqn. 6"
    traits = Traits(evaluations_per_feature=2, min_budget=2, all_classes=True, standard_errors=True)
    summary = "mean effect over all subsets, every mask used for every feature"
    samples: Annotated[int, Range(at_least=2)] | None = None

    def evaluations(self, n_features: int) -> int | None:
        """Return the number of samples, or ``None`` to use the budget."""
        return None if self.samples is None else min(self.samples, 2**n_features)

    def explain(self, task: Task) -> Steps:
        """Evaluate pairs of a mask and its complement and contrast them."""
        d = task.n_features
        n_pairs = min((self.samples or task.budget) // 2, 2 ** (d - 1))
        masks = _draw_pairs(d, n_pairs, task.rng)
        values = yield Values(np.concatenate([masks, ~masks]))
        difference = values[:n_pairs] - values[n_pairs:]
        signs = np.where(masks, 1.0, -1.0)
        scores = signs.T @ difference / n_pairs
        if n_pairs == 2 ** (d - 1):
            return Finding(scores.T, np.zeros_like(scores.T))
        errors = _standard_errors(signs, difference, scores, np.ptp(values, axis=0))
        return limit_errors(task, Finding(scores.T, errors.T), values)


def _draw_pairs(d: int, n_pairs: int, rng: np.random.Generator) -> Masks:
    """Return one mask of each of `n_pairs` distinct pairs of complements."""
    if d > MOST_BITS:
        return rng.random((n_pairs, d)) < 0.5
    if n_pairs == 2 ** (d - 1):
        return all_coalitions(d)[:n_pairs]
    drawn = rng.choice(2 ** (d - 1), n_pairs, replace=False)
    return (drawn[:, None] >> np.arange(d) & 1).astype(np.bool_)


def _standard_errors(signs: Floats, difference: Floats, scores: Floats, span: Floats) -> Floats:
    """Return standard errors (features, columns) of the means of signed differences; NaN for one pair.

    The pairs are sampled without replacement from all pairs. If most signed differences of a feature are
    equal, rare other values may be missing from the sample. Two more are then counted, as extreme as the
    range of the answers, `span` (columns,), allows.
    """
    n, d = signs.shape
    if n < 2:
        return np.full_like(scores, np.nan)
    magnitude = np.abs(difference)
    median = np.median(magnitude, axis=0)
    is_near = np.abs(magnitude - median) <= SAME * span
    agreement = np.abs(signs.T @ (is_near * np.sign(difference))) / n
    share_near = is_near.mean(axis=0)
    most_equal = np.where(median <= SAME * span, share_near, (share_near + agreement) / 2) > 0.5
    squares = (difference**2).sum(axis=0) - n * scores**2 + most_equal * UNSEEN * (span + median) ** 2
    unseen_share = 1 - n / 2.0 ** (d - 1)
    return np.asarray(student_factor(n - 1) * np.sqrt(np.maximum(squares, 0) / (n * (n - 1)) * unseen_share))
