"""MAPLE: a linear model of the rows that a random forest considers similar to an input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pertinent.config.settings import Count, Positive, Share
from pertinent.explainers.base import Finding, Steps, Task
from pertinent.learners.base import LearnedExplainer, Learner, LearnerSpec, learned
from pertinent.learners.score_arrays import squeeze_columns
from pertinent.learners.selection import PredictionTeacher

if TYPE_CHECKING:
    from pertinent.learners.training_context import TrainingContext


@dataclass(frozen=True)
class MapleLearner(Learner):
    r"""Fits a random forest to the model's answers, and selects columns (Plumb et al. 2018).

    Around x, a row x_i of the inputs has the weight

    .. math:: w(x_i, x) = \sum_k \frac{[x_i \text{ is in the leaf of } x \text{ in tree } k]}
        {\text{rows in that leaf}}

    and a linear model is fitted to the weighted rows (SILO). It uses the columns with the largest impurity
    decrease at the roots of the trees (DStump), as many as best predict the validation inputs.

    Parameters
    ----------
    trees, leaf, share
        Number of trees, smallest number of rows in a leaf, and share of columns considered for a split.
    alpha
        Ridge penalty of the linear model.

    Note
    ----
    Columns are standardised. One forest serves all columns of the model's answers. The defaults are those of
    the authors' code, which scores a root by its impurity before the split; here it is scored by the decrease
    of impurity, following the definition of DStump.
    """

    spec = LearnerSpec(PredictionTeacher(), classes=("all",), scales=("natural",), modalities=("table",))
    trees: Count = 200
    leaf: Count = 10
    share: Share = 0.5
    alpha: Positive = 0.001

    def train(self, context: TrainingContext) -> tuple[Any, dict[str, Any]]:
        """Grow the forest and choose the columns."""
        from pertinent.learners.networks.forest_scorer import grow_forest

        examples = context.examples(lambda explanation, *_: {"predictions": explanation.prediction.values})
        return grow_forest(self, context.model, *context.split(examples), context.seed)


@learned.register("maple")
@dataclass(frozen=True)
class Maple(LearnedExplainer):
    """The coefficients of a linear model fitted to the answers around the input, for table rows.

    Created by `fit`. The score of a number is the change of the answer per standard deviation; the score of a
    category is the coefficient of the row's category. Scores are not contributions to the answer.

    Parameters
    ----------
    network
        The forest and its rows.
    absolute
        Whether scores are absolute coefficients, to rank columns by importance.
    """

    learner = MapleLearner
    paper = "Plumb et al. 2018"
    summary = "a linear model of the rows that a forest considers similar"
    absolute: bool = False

    def explain(self, task: Task) -> Steps:
        """Fit the linear model around the input."""
        scores = yield from self.predict(task)
        if self.absolute:
            return Finding(squeeze_columns(np.abs(scores)), meaning="magnitude")
        return Finding(squeeze_columns(scores))
