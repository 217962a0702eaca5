"""CXPlain: the share of each feature in reducing the model's loss, predicted by a network."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pertinent.array_types import Floats
from pertinent.errors import SettingError
from pertinent.explainers.base import Finding, Steps, Task
from pertinent.learners.base import LearnedExplainer, LearnerSpec, Tensor, TrainingTargets, learned
from pertinent.learners.score_learner import ScoreLearner
from pertinent.outputs import TINY, column_index, softmax

if TYPE_CHECKING:
    from pertinent.results.explanation import Explanation

EPSILON = 1e-7
"""Smallest increase of the loss; a decrease without a feature counts as no increase."""


@dataclass(frozen=True)
class CXPlainLearner(ScoreLearner):
    r"""Minimises the divergence between predicted and actual shares of the increase of the loss (Eqn. 5).

    .. math:: \omega_i = \frac{\Delta\varepsilon_i}{\sum_j \Delta\varepsilon_j}, \quad
        \Delta\varepsilon_i = L(y, f(x_{N \setminus i})) - L(y, f(x))

    The loss is the cross-entropy, or the squared error for plain values. Without labels, y is the prediction.
    """

    spec = LearnerSpec("leave-one-out", classes=("predicted",), scales=("natural",), labels=True)

    def targets(self, explanation: Explanation, columns: Sequence[int], label: Any) -> TrainingTargets:
        """Return the share of each feature in the increase of the loss (1, features)."""
        if explanation.method != "leave-one-out" or explanation.class_scores is None:
            raise SettingError(
                f"`teacher_explanations` must be from leave-one-out, but are from {explanation.method}."
            )
        without = explanation.prediction.values - explanation.class_scores.T
        answers = np.vstack([explanation.prediction.values, without])
        column = columns[0]
        if explanation.output.kind == "value":
            y = explanation.prediction.values[column] if label is None else _number(label)
            losses = (answers[:, column] - y) ** 2
        else:
            column = column if label is None else column_index(label, explanation.classes, "label")
            losses = -np.log(np.clip(answers[:, column], TINY, None))
        increase = np.maximum(losses[1:] - losses[0], EPSILON)
        return {"shares": (increase / increase.sum())[None]}

    def deviation(self, targets: Sequence[TrainingTargets]) -> Floats:
        """Return 1, because the scores are logits and have no unit."""
        return np.ones(1)

    def compute_loss(
        self, scores: Tensor, targets: Mapping[str, Tensor], real: Tensor, deviation: Tensor
    ) -> Tensor:
        """Return the mean Kullback-Leibler divergence over inputs."""
        omega = targets["shares"]
        log_shares = scores.masked_fill(~real[:, None], -1e9).log_softmax(-1)
        return (omega * (omega.clamp(min=1e-30).log() - log_shares)).sum((1, 2)).mean()


def _number(label: Any) -> float:
    """Return the label as a finite number."""
    try:
        number = float(label)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise SettingError(
            f"`labels` must be finite numbers for a model with plain values, but got {label!r}."
        )
    return number


@learned.register("cxplain")
@dataclass(frozen=True)
class CXPlain(LearnedExplainer):
    """The contribution of each feature to the model's accuracy, predicted by a network.

    Created by `fit`. Scores are shares: they are not negative and sum to 1. They measure how much the loss
    increases without a feature, not which class the feature supports. A feature that opposes the true class
    has a share near 0.

    Parameters
    ----------
    network
        The fitted network.
    """

    learner = CXPlainLearner
    paper = "Schwab & Karlen 2019, Eqn. 2 to 5"
    traits = replace(LearnedExplainer.traits, meaning="magnitude")
    summary = "shares of the model's loss, predicted by a network"

    def explain(self, task: Task) -> Steps:
        """Predict the shares as the softmax of the network's outputs."""
        return Finding(softmax((yield from self.predict(task)))[0])
