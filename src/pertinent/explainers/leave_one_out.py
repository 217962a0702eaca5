"""Leave-one-out, and random scores as a baseline."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pertinent.asks import Values
from pertinent.explainers.base import Explainer, Finding, Steps, Task, Traits, explainers
from pertinent.masks import full_mask


@explainers.register("leave-one-out")
@dataclass(frozen=True)
class LeaveOneOut(Explainer):
    r"""The drop :math:`v(N) - v(N \setminus \{i\})` when a feature is removed (occlusion)."""

    paper = "Li, Monroe & Jurafsky 2016, Eqn. 1; Zeiler & Fergus 2014"
    traits = Traits(deterministic=True, all_classes=True)
    summary = "the drop when one feature is removed"

    def evaluations(self, n_features: int) -> int:
        """Return 1 (the whole input) + the number of features."""
        return n_features + 1

    def explain(self, task: Task) -> Steps:
        """Evaluate the whole input and the input without each feature."""
        d = task.n_features
        values = yield Values(np.concatenate([full_mask(d), ~np.eye(d, dtype=np.bool_)]))
        return Finding(scores=(values[0] - values[1:]).T)


@explainers.register("random")
@dataclass(frozen=True)
class RandomScores(Explainer):
    """Uniform random scores, without evaluating the model."""

    paper = "baseline"
    summary = "uniform random scores"
    traits = Traits(draws_per_input=True)

    def explain(self, task: Task) -> Steps:
        """Draw the scores."""
        yield from ()
        return Finding(scores=task.rng.random(task.n_features))
