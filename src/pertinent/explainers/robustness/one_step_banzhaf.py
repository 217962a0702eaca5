"""One-Step Banzhaf: the contributions of all features to robustness, from one regression."""

from __future__ import annotations

from dataclasses import dataclass

from pertinent.explainers.base import Finding, Steps, Task, explainers, n_kept
from pertinent.explainers.robustness.base import RobustnessExplainer, n_subsets
from pertinent.explainers.robustness.greedy_as import contributions
from pertinent.explainers.robustness.pertinence import pertinence_of
from pertinent.explainers.search.base import largest
from pertinent.explainers.shapley.exact_shapley import all_coalitions
from pertinent.settings import Count, ProperShare

MOST_EXACT = 10
"""Features up to which all subsets are attacked if as many are asked for."""


@explainers.register("one-step-banzhaf")
@dataclass(frozen=True)
class OneStepBanzhaf(RobustnessExplainer):
    """The first step of Greedy-AS alone: the Banzhaf value of each feature (Hsieh et al. 2021, App. E).

    Parameters
    ----------
    subsets
        Random subsets; by default 6 for each feature, at most 5,000. With 2^d or more, and at most 10
        features, all subsets, which gives the exact value.
    share
        The probability with which a feature is in a subset.
    """

    paper = "Hsieh et al. 2021, App. E; Hammer & Holzman 1992"
    summary = "what each feature contributes to robustness, by one regression on random subsets"
    subsets: Count | None = None
    share: ProperShare = 0.5

    def evaluations(self, n_features: int) -> int:
        """An attack for every subset, and one for the pertinence."""
        return (n_subsets(self.subsets, n_features) + 1) * self.how.most_passes

    def explain(self, task: Task) -> Steps:
        """Attack, and regress."""
        d, n = task.n_features, n_subsets(self.subsets, task.n_features)
        exact = d <= MOST_EXACT and n >= 2**d
        drawn = all_coalitions(d) if exact else task.rng.random((n, d)) < self.share
        values = yield from self.values(task, drawn)
        scores = contributions(drawn, values)
        relevant = largest(scores, n_kept(max(task.sparsities), d))
        return Finding(scores, details=(yield from pertinence_of(self, task, relevant)))
