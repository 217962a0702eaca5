"""Random scores: what any method must beat."""

from __future__ import annotations

from dataclasses import dataclass

from pertinent.explainers.base import Explainer, Finding, Steps, Task, explainers


@explainers.register("random")
@dataclass(frozen=True)
class RandomScores(Explainer):
    """Each feature gets a uniform random score; the model is not asked."""

    paper = "baseline"
    summary = "uniform random scores"

    def explain(self, task: Task) -> Steps:
        """Draw the scores."""
        yield from ()
        return Finding(scores=task.rng.random(task.n_features))
