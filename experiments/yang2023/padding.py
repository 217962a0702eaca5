"""The paper's game: padding up to 512 tokens takes part, although it changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pertinent.array_types import Floats
from pertinent.asks import Arithmetic, Values
from pertinent.explainers.base import Explainer, Finding, Steps, Task
from pertinent.rank_correlation import spearman
from pertinent.results.explanation import Explanation

PLAYERS = 512


@dataclass(frozen=True)
class Padded(Explainer):
    """Another explainer that is told of `players` features, of which the last ones are padding.

    The model does not attend to padding, so masks that differ in nothing else get the same answer. The
    scores of the padding, all 0 in truth, are in `details`.
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
                padding = scores[task.target if len(scores) > 1 else 0, d:]
                return Finding(scores[:, :d], details={"padding": padding.tolist()})
            if isinstance(ask, Arithmetic):
                answer = yield ask
                continue
            assert isinstance(ask, Values)
            answer = yield Values(ask.masks[:, :d], ask.scale)


def spearman_of_all(explanations: Sequence[Explanation]) -> float:
    """Spearman's correlation between seeds over all players, padding among them."""
    rows = _of_all(explanations)
    return float(spearman(rows)[np.triu_indices(len(rows), 1)].mean())


def spearman_with(explanations: Sequence[Explanation], values: Floats) -> float:
    """Mean Spearman's correlation over all players with values of the tokens; those of padding are 0."""
    rows = _of_all(explanations)
    known = np.concatenate([values, np.zeros(rows.shape[1] - len(values))])
    return float(np.mean([spearman(np.stack([row, known]))[0, 1] for row in rows]))


def _of_all(explanations: Sequence[Explanation]) -> Floats:
    """The scores (seeds, players) of the tokens and, after them, of the padding."""
    return np.stack([np.concatenate([e.scores, e.details["padding"]]) for e in explanations])
