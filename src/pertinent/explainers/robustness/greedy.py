"""Greedy: one feature after the other, each the best to add."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pertinent.explainers.base import Finding, Steps, Task, explainers, n_kept
from pertinent.explainers.robustness.base import RobustnessExplainer, from_order
from pertinent.explainers.robustness.greedy_as import joined
from pertinent.explainers.robustness.pertinence import pertinence_of
from pertinent.settings import Share


@explainers.register("greedy")
@dataclass(frozen=True)
class Greedy(RobustnessExplainer):
    """In each step the feature that improves the criterion most (Sec. 4.1, Eqn. 5).

    It ends early where all features left are as good; those have the same score.

    Parameters
    ----------
    chosen
        Stop when this share of features is chosen.
    """

    paper = "Hsieh et al. 2021, Sec. 4.1, Eqn. 5"
    summary = "one feature after the other, each making attacks hardest (or easiest)"
    chosen: Share = 0.5

    def evaluations(self, n_features: int) -> int:
        """An attack for every feature left, in every step, and one for the pertinence."""
        wanted = n_kept(self.chosen, n_features)
        attacks = sum(n_features - chosen for chosen in range(wanted))
        return (attacks + 1) * self.how.most_passes

    def explain(self, task: Task) -> Steps:
        """Choose one by one."""
        d = task.n_features
        order = np.empty(0, dtype=np.int64)
        rest = np.zeros(d)
        while len(order) < n_kept(self.chosen, d):
            left = np.setdiff1d(np.arange(d), order)
            each = np.eye(len(left), dtype=np.bool_)
            rest = np.zeros(d)
            rest[left] = yield from self.values(task, joined(order, left, each, d))
            if np.ptp(rest[left]) == 0:
                break
            order = np.append(order, left[rest[left].argmax()])
        if not len(order):
            yield from self.need_an_attack(task)
            return Finding(from_order(order, rest))
        details = yield from pertinence_of(self, task, np.isin(np.arange(d), order))
        return Finding(from_order(order, rest), details=details)
