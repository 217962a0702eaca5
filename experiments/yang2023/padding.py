"""A game in which padding up to 512 tokens plays, although it changes nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from pertinent.asks import Arithmetic, Values
from pertinent.explainers.base import Explainer, Finding, Steps, Task

PLAYERS = 512


@dataclass(frozen=True)
class Padded(Explainer):
    """Another explainer that is told of `players` features, of which the last ones are padding.

    The model does not attend to padding, so masks that differ in nothing else get the same answer.
    """

    name = "padded"
    paper = "Yang et al. 2023, Sec. 4"
    summary = "another explainer, with padding among the features"
    inner: Explainer
    players: int = PLAYERS

    def evaluations(self, n_features: int) -> int | None:
        """Those of the wider game; masks that differ in padding alone are asked for once."""
        return self.inner.evaluations(max(n_features, self.players))

    def explain(self, task: Task) -> Steps:
        """Pass questions on without the padding."""
        d = task.n_features
        steps = self.inner.explain(replace(task, n_features=max(d, self.players)))
        answer = None
        while True:
            try:
                ask = steps.send(answer)
            except StopIteration as stop:
                scores = np.atleast_2d(stop.value.scores)
                return Finding(scores[:, :d])
            if isinstance(ask, Arithmetic):
                answer = yield ask
                continue
            assert isinstance(ask, Values)
            answer = yield Values(ask.masks[:, :d], ask.scale)
