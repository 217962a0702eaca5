"""Shapley values from the most accurate estimator for the budget."""

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
"""Number of mask pairs per feature below which permutations are more accurate than a fitted model."""

FIRST = 2
"""Number of mask pairs per feature before the first test for early stopping."""

MOST_PAIRS = 4000
"""Largest number of mask pairs for a Gaussian process, which can then be fitted within seconds."""


@explainers.register("shapley")
@dataclass(frozen=True)
class Shapley(Explainer):
    """Shapley values from the estimator that was most accurate for the budget in benchmarks.

    For tree-based models the values are exact, from one walk through the trees, as in `tree-shap`; if the
    trees cannot be walked, ``details["no trees"]`` holds the reason. If the budget covers all :math:`2^d`
    masks, all are evaluated. Otherwise a Gaussian process is fitted to the answers to pairs of a mask and its
    complement (`gaussian_process`); its Shapley values and their errors have a closed form. Permutations are
    used for budgets below 1.4 d, and the regression of kernel-shap for budgets above 8,000. With early
    stopping, pairs are evaluated in rounds, at most 4,000 in total.

    Parameters
    ----------
    estimator
        ``"auto"`` for the rule above, or ``"permutations"``, ``"process"`` or ``"regression"``.
    """

    paper = "pertinent (a Gaussian process on the odd part of the game)"
    traits = Traits(
        evaluations_per_feature=2, stops_early=True, all_classes=True, adds_up=True, standard_errors=True
    )
    summary = "Shapley values by the most accurate estimator for the budget"
    estimator: Literal["auto", "permutations", "process", "regression"] = "auto"

    def min_budget(self, n_features: int) -> int:
        """Return the evaluations of one permutation."""
        return n_features + 1

    def explain(self, task: Task) -> Steps:
        """Choose an estimator and run it."""
        details = {}
        if self.estimator == "auto" and task.model.has_trees:
            trees = yield TreeValues(tentative=True)
            if not isinstance(trees, NotWalked):
                finding = Finding(trees.scores, base_values=trees.base_values, details={"estimator": "trees"})
                return task.record_stop(
                    finding, "stable" if task.is_settled(finding, looks=1) else "all masks"
                )
            details["no trees"] = trees.reason
        name = self.estimator if self.estimator != "auto" else choose(task.n_features, task.budget)
        if task.stops_early and name == "regression":
            if self.estimator == "regression":
                raise SettingError("`early_stopping` must be None with estimator='regression'.")
            name = "process"
        run = {
            "permutations": ShapleySampling().explain,
            "regression": KernelShap().explain,
            "process": _process,
        }
        finding = yield from run[name](task)
        return replace(finding, details={"estimator": name, **details, **finding.details})


def choose(d: int, budget: int) -> str:
    """Return the most accurate estimator for d features and this budget."""
    pairs = (budget - 2) // 2
    if budget >= 2**d or pairs > MOST_PAIRS:
        return "regression"
    return "process" if pairs >= FEW * d else "permutations"


def _process(task: Task) -> Steps:
    """Evaluate pairs of a mask and its complement, and fit a Gaussian process to their differences.

    With early stopping, pairs are drawn in rounds. If the last round has all pairs, a regression is solved.
    """
    d, most = task.n_features, (task.budget - 2) // 2
    if task.stops_early:
        most = min(most, 2 ** (d - 1) - 1, MOST_PAIRS)
    ends = yield from task.ask_empty_and_full()
    rounds = task.rounds(FIRST * d, most)
    answers = PairedAnswers(task, ends, most)
    for size in rounds:
        if task.stops_early and size == 2 ** (d - 1) - 1:
            finding = replace((yield from KernelShap().explain(task)), details={"estimator": "regression"})
            is_settled = task.is_settled(finding, len(rounds))
            return task.record_stop(finding, "stable" if is_settled else "all masks")
        yield from answers.extend(size)
        columns = slice(len(task.prediction))
        fit = partial(estimate, answers.masks, answers.odd, answers.even, columns)
        values, errors = yield Compute(fit, portable=True)
        finding = Finding(values.T, errors.T, base_values=ends[0])
        by_chance = may_fit_by_chance(answers.all, len(answers.masks) - d)
        finding = limit_errors(task, finding, answers.all, by_chance)
        if task.is_settled(finding, len(rounds)):
            return task.record_stop(finding, "stable")
        if size < rounds[-1]:
            yield from task.publish(finding)
    return task.record_stop(finding, "budget")
