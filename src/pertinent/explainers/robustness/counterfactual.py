"""Counterfactual explanations: the nearest input with a different decision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pertinent.config.settings import Count
from pertinent.errors import ModelError
from pertinent.explainers.base import Finding, Steps, Task, explainers
from pertinent.explainers.robustness.base import AttackExplainer, pertinence

SHRINKING = 0.5
"""Share of the features kept in each round when the number of changes is limited."""


@explainers.register("counterfactual")
@dataclass(frozen=True)
class Counterfactual(AttackExplainer):
    """The change of each feature in the smallest perturbation that changes the prediction.

    `most` limits the number of features that may change (an L0 limit): the features that change most are
    attacked again, half as many in each round. For images and table rows, `details` list the features that
    are present and must disappear, and those that are absent and would have to appear.

    Parameters
    ----------
    most
        Largest number of features that may change; by default all.
    """

    paper = "Wachter, Mittelstadt & Russell 2017"
    summary = "how much each feature changes in the nearest input with a different decision"
    most: Count | None = None

    def evaluations(self, n_features: int) -> int:
        """Return the evaluations of one attack per round."""
        return len(self._rounds(n_features)) * self.attack_settings.most_passes

    def explain(self, task: Task) -> Steps:
        """Attack all features, then ever fewer."""
        order = np.arange(task.n_features)
        for size in self._rounds(task.n_features):
            sets = np.isin(np.arange(task.n_features), order[:size])[None]
            attack = yield from self.ask_radii(task, sets, keep=True)
            if not np.isfinite(attack.radii[0]):
                hint = f": increase `most`, got {self.most}." if size < task.n_features else "."
                raise ModelError(
                    f"No perturbation of {size} of {task.n_features} features changes the prediction{hint}"
                    + self.missing_text(task)
                )
            assert attack.norms is not None
            scores = attack.norms[0]
            order = np.argsort(-scores, kind="stable")
        details: dict[str, Any] = {"radius": float(attack.radii[0]), "changed": int((scores > 0).sum())}
        if task.numbers is not None:
            assert attack.changes is not None
            details["pertinence"] = pertinence(task.numbers, attack.changes[0], scores)
        return Finding(scores, details=details)

    def _rounds(self, n_features: int) -> list[int]:
        """Return the number of features that may change in each round: all, half of that, …, then `most`."""
        most = min(self.most or n_features, n_features)
        sizes = [n_features]
        while sizes[-1] * SHRINKING > most:
            sizes.append(int(sizes[-1] * SHRINKING))
        return sizes if sizes[-1] == most else [*sizes, most]
