"""The estimators of the paper's game, in which padding plays, although it changes nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from pertinent.array_types import Floats, Masks
from pertinent.asks import Compute, Values
from pertinent.explainers.base import Explainer, Finding, Steps, Task, Traits

PLAYERS = 512
SPECIAL = 3
"""Number of padding players whose scores are kept. Special tokens change nothing either; a pair has three."""
ENDS_WEIGHT = 1e6
"""captum's weight of the empty and of the full mask; all others have 1."""
SMALLEST_PIVOT = 1e-11
"""Share of the largest squared pivot below which equations count as dependent."""


@dataclass(frozen=True)
class Padded(Explainer):
    """Another explainer that is told of `players` features, of which the last ones are padding.

    Padding does not change the model's answer, so masks that differ in nothing else get the same answer.
    """

    name = "padded"
    paper = "Yang et al. 2023, Sec. 4"
    summary = "another explainer, with padding among the features"
    traits = Traits(draws_per_input=True)
    inner: Explainer
    players: int = PLAYERS

    def evaluations(self, n_features: int) -> int | None:
        """Return those of the wider game; masks that differ only in padding are asked for once."""
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
                special = scores[task.target if len(scores) > 1 else 0, d : d + SPECIAL]
                return Finding(scores[:, :d], details={"special": special.tolist()})
            if isinstance(ask, Compute):
                answer = yield ask
                continue
            assert isinstance(ask, Values)
            answer = yield Values(ask.masks[:, :d], ask.scale)


@dataclass(frozen=True)
class CaptumKernelShap(Explainer):
    """KernelSHAP as captum estimates it: independent masks, least squares with an intercept, least norm.

    `samples` counts the empty and the full mask.
    """

    name = "captum-kernel-shap"
    paper = "Kokhlikyan et al. 2020; Lundberg & Lee 2017"
    summary = "KernelSHAP with captum's sampling and regression"
    traits = Traits(draws_per_input=True)
    samples: int = 200

    def evaluations(self, n_features: int) -> int | None:
        """Return the number of samples."""
        return self.samples

    def explain(self, task: Task) -> Steps:
        """Ask for the masks and solve the regression."""
        masks = captum_masks(task.n_features, self.samples, task.rng)
        values = yield Values(masks)
        scores: Floats = yield Compute(partial(captum_regression, masks, values), portable=True)
        return Finding(scores.T)


def captum_masks(d: int, n: int, rng: np.random.Generator) -> Masks:
    """Draw masks (n, d): the full and the empty one, then sizes k with probability ∝ 1 / (k (d − k))."""
    sizes = np.arange(1, d)
    weight = 1 / (sizes * (d - sizes))
    kept = np.concatenate([[d, 0], rng.choice(sizes, size=n - 2, p=weight / weight.sum())])
    ranks = np.empty((n, d), dtype=np.int64)
    np.put_along_axis(ranks, rng.random((n, d)).argsort(axis=1), np.arange(d)[None], axis=1)
    return np.asarray(ranks < kept[:, None])


def captum_regression(masks: Masks, values: Floats) -> Floats:
    """Return the slopes (d, columns) of the weighted regression that fits values (n, columns) best.

    Where masks do not determine the slopes, those of least norm are returned, as scikit-learn has them.
    """
    sums = masks.sum(axis=1)
    weight = np.where((sums == 0) | (sums == masks.shape[1]), ENDS_WEIGHT, 1.0)
    rows, columns = (each - np.average(each, axis=0, weights=weight) for each in (masks, values))
    rows, columns = (np.sqrt(weight)[:, None] * each for each in (rows, columns))
    if len(rows) > rows.shape[1]:
        gram = rows.T @ rows
        try:
            pivots = np.linalg.cholesky(gram).diagonal() ** 2
        except np.linalg.LinAlgError:
            pivots = np.zeros(1)
        if pivots.min() > SMALLEST_PIVOT * pivots.max():
            return np.asarray(np.linalg.solve(gram, rows.T @ columns))
    return np.asarray(np.linalg.lstsq(rows, columns, rcond=None)[0])
