"""Shapley values by the estimator that gives the smallest error for the budget."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from pertinent.asks import Values
from pertinent.explainers.base import Explainer, Finding, Steps, Task, explainers
from pertinent.explainers.shapley.kernel_shap import KernelShap, draw_coalitions
from pertinent.explainers.shapley.odd_process import infer
from pertinent.explainers.shapley.shapley_sampling import ShapleySampling
from pertinent.masks import empty_mask, full_mask

FEW = 1.4
"""With fewer pairs of masks than this for each feature, permutations are better than a fitted model."""

MOST_PAIRS = 4000
"""Pairs of masks up to which a Gaussian process is fitted in seconds; with more, a regression will do."""


@explainers.register("shapley")
@dataclass(frozen=True)
class Shapley(Explainer):
    """Shapley values, estimated in the way that was measured to be best for the budget.

    All :math:`2^d` masks if the budget allows. Else pairs of a mask and its complement, and a Gaussian
    process that explains their answers (`odd_process`), whose Shapley values and their errors are known in
    closed form. With a budget of less than about 3 d, antithetic permutations; with one of more than
    8,000, kernel-shap's regression.

    Parameters
    ----------
    estimator
        ``"auto"`` for the choice above, or ``"permutations"``, ``"process"`` or ``"regression"``.
    """

    paper = "pertinent (a Gaussian process on the odd part of the game)"
    summary = "Shapley values by the best estimator for the budget"
    estimator: Literal["auto", "permutations", "process", "regression"] = "auto"

    def min_budget(self, n_features: int) -> int:
        """One order of the features."""
        return n_features + 1

    def explain(self, task: Task) -> Steps:
        """Choose, and estimate."""
        name = self.estimator if self.estimator != "auto" else choose(task.n_features, task.budget)
        if name == "permutations":
            found = yield from ShapleySampling().explain(task)
        elif name == "regression":
            found = yield from KernelShap().explain(task)
        else:
            found = yield from _process(task)
        return replace(found, details={"estimator": name})


def choose(d: int, budget: int) -> str:
    """The estimator for so many features and evaluations."""
    pairs = (budget - 2) // 2
    if budget >= 2**d or pairs > MOST_PAIRS:
        return "regression"
    return "process" if pairs >= FEW * d else "permutations"


def _process(task: Task) -> Steps:
    """Ask for pairs of a mask and its complement, and fit a Gaussian process to what differs in them."""
    d = task.n_features
    ends = yield Values(np.concatenate([empty_mask(d), full_mask(d)]))
    pairs = draw_coalitions(d, (task.budget - 2) // 2, task.rng).pairs
    values = yield Values(np.concatenate([pairs, ~pairs]))
    odd = np.concatenate([[ends[1] - ends[0]], values[: len(pairs)] - values[len(pairs) :]]) / 2
    found = infer(np.concatenate([full_mask(d), pairs]), odd, task.rng)
    return Finding(found.values.T, found.standard_errors.T, base_values=ends[0])
