"""Banzhaf values: the mean effect of a feature over all subsets of the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from pertinent.asks import Values
from pertinent.explainers.base import Explainer, Finding, Steps, Task, explainers
from pertinent.explainers.shapley.exact_shapley import MOST_FEATURES
from pertinent.masks import all_coalitions
from pertinent.settings import Range


@explainers.register("banzhaf")
@dataclass(frozen=True)
class Banzhaf(Explainer):
    r"""The Banzhaf value, exact if the budget covers all masks, else from uniform samples.

    .. math:: \beta_i = \mathbb{E}[v(S) \mid i \in S] - \mathbb{E}[v(S) \mid i \notin S]

    Every mask is used for every feature (maximum sample reuse), and each is paired with its complement.
    """

    paper = "Banzhaf 1965; Wang & Jia 2023, Eqn. 6"
    evaluations_per_feature = 2
    summary = "mean effect over all subsets, every mask used for every feature"
    smallest_budget = 2
    samples: Annotated[int, Range(at_least=2)] | None = None

    def evaluations(self, n_features: int) -> int | None:
        """The number of samples, if given."""
        return None if self.samples is None else min(self.samples, 2**n_features)

    def explain(self, task: Task) -> Steps:
        """Ask for pairs of a mask and its complement, and contrast them."""
        samples = self.samples or task.budget
        exact = task.n_features <= MOST_FEATURES and samples >= 2**task.n_features
        if exact:  # all masks without the last feature; the others are their complements
            masks = all_coalitions(task.n_features)[: 2 ** (task.n_features - 1)]
        else:
            masks = task.rng.random((samples // 2, task.n_features)) < 0.5
        values = yield Values(np.concatenate([masks, ~masks]))
        difference = values[: len(masks)] - values[len(masks) :]
        sign = np.where(masks, 1.0, -1.0)
        scores = sign.T @ difference / len(masks)
        spread = (sign.T**2 @ difference**2) / len(masks) - scores**2
        if exact:
            errors = np.zeros_like(scores)
        elif len(masks) < 2:
            errors = np.full_like(scores, np.nan)
        else:
            errors = np.sqrt(np.maximum(spread, 0) / (len(masks) - 1))
        return Finding(scores=scores.T, standard_errors=errors.T)
