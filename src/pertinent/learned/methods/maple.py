"""MAPLE: a linear model of the rows around an input, which a forest has found to be alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pertinent.asks import NetworkOutputs
from pertinent.explainers.base import Finding, Steps, Task
from pertinent.learned.base import LearnedExplainer, Learner, LearnerSpec, TrainedNetwork, learned, of_columns
from pertinent.learned.selection import Prediction
from pertinent.settings import Count, Positive, Share

if TYPE_CHECKING:
    from pertinent.learned.context import TrainingContext


@dataclass(frozen=True)
class LearnsMaple(Learner):
    r"""A random forest of the model's answers, and the columns that are of use (Plumb et al. 2018).

    Around x, a row x_i of the inputs has the weight

    .. math:: w(x_i, x) = \sum_k \frac{[x_i \text{ is in the leaf of } x \text{ in tree } k]}
        {\text{rows in that leaf}}

    and a linear model is fitted to the weighted rows (SILO). It sees the columns that lower the
    impurity most at the roots of the trees (DStump), as many as predict the dev inputs best.

    Parameters
    ----------
    trees, leaf, share
        The number of trees, the least rows in a leaf, and the share of columns among which a split is chosen.
    alpha
        The ridge penalty of the linear model.

    Note
    ----
    Columns are standardised. One forest serves all columns of the model's answers. The defaults are those
    of the authors' code; there a root counts by the impurity before the split, here by what the split
    takes away, as DStump is defined.
    """

    spec = LearnerSpec(Prediction(), classes=("all",), scales=("natural",), modalities=("table",))
    trees: Count = 200
    leaf: Count = 10
    share: Share = 0.5
    alpha: Positive = 0.001

    def train(self, context: TrainingContext) -> TrainedNetwork:
        """Grow the forest, and choose the columns."""
        from pertinent.learned.networks.forest_scorer import grow_forest

        examples = context.examples(lambda explanation, *_: {"predictions": explanation.prediction})
        return TrainedNetwork(*grow_forest(self, context.model, *context.split(examples), context.seed))


@learned.register("maple")
@dataclass(frozen=True)
class Maple(LearnedExplainer):
    """The coefficients of a linear model of the answers to rows around the input, for table rows.

    `fit` makes it. A score is by how much the answer grows with a number, by one standard deviation, or
    with the category that the row has; it is not the number's own part in the answer.

    Parameters
    ----------
    network
        The forest and its rows.
    absolute
        Whether scores are the sizes of the coefficients, to rank columns by how much they matter.
    """

    learner = LearnsMaple
    paper = "Plumb et al. 2018"
    summary = "a linear model of the rows that a forest finds alike"
    absolute: bool = False

    def explain(self, task: Task) -> Steps:
        """Fit the linear model around the input."""
        self.columns(task)
        scores = yield NetworkOutputs(self.network)
        if self.absolute:
            return Finding(of_columns(np.abs(scores)), meaning="magnitude")
        return Finding(of_columns(scores))
