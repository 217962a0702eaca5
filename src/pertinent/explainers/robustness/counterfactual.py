"""Counterfactual explanations: the nearest input that is decided otherwise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pertinent.config.settings import Count
from pertinent.errors import ModelError
from pertinent.explainers.base import Finding, Steps, Task, explainers
from pertinent.explainers.robustness.base import AttackExplainer, pertinence

SHRINKING = 0.5
"""The share of the features that each round keeps, on the way to few."""


@explainers.register("counterfactual")
@dataclass(frozen=True)
class Counterfactual(AttackExplainer):
    """How much each feature changes in the smallest perturbation that changes the prediction.

    With `most`, at most that number of features may change (an L0 limit): the features that change most are
    attacked again, half as many in each round. For images and table rows, `details` say which features are
    present and must go, and which are absent and would have to come.

    Parameters
    ----------
    most
        The largest number of features that may change; by default all.
    """

    paper = "Wachter, Mittelstadt & Russell 2017"
    summary = "how much each feature changes in the nearest input that is decided otherwise"
    most: Count | None = None

    def evaluations(self, n_features: int) -> int:
        """An attack in each round."""
        return len(self._rounds(n_features)) * self.attack_settings.most_passes

    def explain(self, task: Task) -> Steps:
        """Attack all features, then fewer and fewer."""
        best = np.arange(task.n_features)
        for size in self._rounds(task.n_features):
            sets = np.zeros((1, task.n_features), dtype=np.bool_)
            sets[0, best[:size]] = True
            found = yield from self.attacked(task, sets, keep=True)
            if not np.isfinite(found.radii[0]):
                fewer = size < task.n_features
                raise ModelError(
                    f"No perturbation of {size} of {task.n_features} features was found that changes the "
                    "prediction"
                    + (f", and `most` is {self.most}: allow more." if fewer else ".")
                    + self.missing(task)
                )
            assert found.norms is not None
            scores = found.norms[0]
            best = np.argsort(-scores, kind="stable")
        details: dict[str, Any] = {"radius": float(found.radii[0]), "changed": int((scores > 0).sum())}
        if task.numbers is not None:
            assert found.changes is not None
            details["pertinence"] = pertinence(task.numbers, found.changes[0], scores)
        return Finding(scores, details=details)

    def _rounds(self, n_features: int) -> list[int]:
        """Number of features that may change in each round: all, then half of them …, finally `most`."""
        most = min(self.most or n_features, n_features)
        sizes = [n_features]
        while sizes[-1] * SHRINKING > most:
            sizes.append(int(sizes[-1] * SHRINKING))
        return sizes if sizes[-1] == most else [*sizes, most]
