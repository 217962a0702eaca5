"""TreeSHAP: exact Shapley values of models made of trees."""

from __future__ import annotations

from dataclasses import dataclass

from pertinent.asks import TreeValues
from pertinent.explainers.base import Explainer, Finding, Steps, Task, explainers


@explainers.register("tree-shap")
@dataclass(frozen=True)
class TreeShap(Explainer):
    r"""The Shapley values of a sum of trees, from one walk through them.

    The game is that of the removal ``background``, for the rows z that it draws:

    .. math:: v(S) = \frac{1}{|Z|} \sum_{z \in Z} \sum_t f_t(x_S, z_{N \setminus S})

    so the values are those of exact-shapley, for any number of columns.

    Note
    ----
    Walked are forests and single trees, boosted regressors, and boosted classifiers on the scale
    ``"logit"``. A boosted classifier's probabilities are not a sum over its trees: shap rescales the
    values of the logits to them, which is not exact, and is not done here.
    """

    paper = "Lundberg et al. 2020 (interventional TreeSHAP)"
    summary = "exact Shapley values of forests and boosted trees in one walk"

    def evaluations(self, n_features: int) -> int:
        """One walk."""
        del n_features
        return 1

    def explain(self, task: Task) -> Steps:
        """Ask for the values."""
        del task
        found = yield TreeValues()
        return Finding(scores=found.scores, base_values=found.base_values)
