"""Shapley values by the estimator that gives the smallest error for the budget."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from pertinent.asks import Compute, NotWalked, TreeValues
from pertinent.errors import SettingError
from pertinent.explainers.base import Explainer, Finding, Steps, Task, Traits, explainers
from pertinent.explainers.shapley.error_bounds import limit_errors, may_fit_by_chance
from pertinent.explainers.shapley.gaussian_process import estimate
from pertinent.explainers.shapley.kernel_shap import KernelShap
from pertinent.explainers.shapley.paired_answers import PairedAnswers
from pertinent.explainers.shapley.shapley_sampling import ShapleySampling

FEW = 0.7
"""With fewer pairs of masks than this for each feature, an order is better than a fitted model."""

FIRST = 2
"""Number of pairs of masks per feature after which stopping is tested for the first time."""

MOST_PAIRS = 4000
"""Largest number of pairs of masks to which a Gaussian process is fitted in seconds; else a regression is."""


@explainers.register("shapley")
@dataclass(frozen=True)
class Shapley(Explainer):
    """Shapley values by the estimator that was measured to be best for the budget.

    If the model is made of trees, the values are exact, from one walk through them, as by `tree-shap`; where
    they cannot be walked, ``details["no trees"]`` says why. If the budget covers all :math:`2^d`
    masks, all are asked for. Otherwise a Gaussian process is fitted to the answers to pairs of a mask and its
    complement (`odd_process`); its Shapley values and their errors are known in closed form. With a budget
    of less than 1.4 d, permutations are used, and with more than 8,000, kernel-shap's regression. With early
    stopping, pairs are asked for in rounds, at most 4,000 of them.

    Parameters
    ----------
    estimator
        ``"auto"`` for the choice above, or ``"permutations"``, ``"process"`` or ``"regression"``.
    """

    paper = "pertinent (a Gaussian process on the odd part of the game)"
    traits = Traits(
        evaluations_per_feature=2, stops_early=True, all_classes=True, adds_up=True, standard_errors=True
    )
    summary = "Shapley values by the best estimator for the budget"
    estimator: Literal["auto", "permutations", "process", "regression"] = "auto"

    def min_budget(self, n_features: int) -> int:
        """One order of the features."""
        return n_features + 1

    def explain(self, task: Task) -> Steps:
        """Choose, and estimate."""
        details = {}
        if self.estimator == "auto" and task.model.has_trees:
            walked = yield TreeValues(tentative=True)
            if isinstance(walked, NotWalked):
                details["no trees"] = walked.reason
            else:
                found = Finding(walked.scores, base_values=walked.base_values, details={"estimator": "trees"})
                return task.record_stop(found, "stable" if task.is_settled(found, looks=1) else "all masks")
        name = self.estimator if self.estimator != "auto" else choose(task.n_features, task.budget)
        if task.stops_early and name == "regression":
            if self.estimator == "regression":
                raise SettingError("`early_stopping` must be None with estimator='regression'.")
            name = "process"
        if name == "permutations":
            found = yield from ShapleySampling().explain(task)
        elif name == "regression":
            found = yield from KernelShap().explain(task)
        else:
            found = yield from _process(task)
        return replace(found, details={"estimator": name, **details, **found.details})


def choose(d: int, budget: int) -> str:
    """The best estimator for d features and this budget."""
    pairs = (budget - 2) // 2
    if budget >= 2**d or pairs > MOST_PAIRS:
        return "regression"
    return "process" if pairs >= FEW * d else "permutations"


def _process(task: Task) -> Steps:
    """Ask for pairs of a mask and its complement, and fit a Gaussian process to their differences.

    With early stopping, pairs are drawn round by round; if the last round has all pairs, it is a regression.
    """
    d, most = task.n_features, (task.budget - 2) // 2
    if task.stops_early:
        most = min(most, 2 ** (d - 1) - 1, MOST_PAIRS)
    ends = yield from task.ask_empty_and_full()
    rounds = task.rounds(FIRST * d, most)
    answers = PairedAnswers(task, ends, most)
    for size in rounds:
        if task.stops_early and size == 2 ** (d - 1) - 1:
            found = replace((yield from KernelShap().explain(task)), details={"estimator": "regression"})
            return task.record_stop(found, "stable" if task.is_settled(found, len(rounds)) else "all masks")
        yield from answers.extend(size)
        own = slice(len(task.prediction))
        fit = partial(estimate, answers.masks, answers.odd, answers.even, own)
        posterior = yield Compute(fit, portable=True)
        found = Finding(posterior.values.T, posterior.standard_errors.T, base_values=ends[0])
        by_chance = may_fit_by_chance(answers.all, len(answers.masks) - d)
        found = limit_errors(task, found, answers.all, by_chance)
        if task.is_settled(found, len(rounds)):
            return task.record_stop(found, "stable")
        if size < rounds[-1]:
            yield from task.publish(found)
    return task.record_stop(found, "budget")
