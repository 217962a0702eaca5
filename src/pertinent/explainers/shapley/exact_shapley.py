"""Exact Shapley values, from all coalitions or from the trees of a model."""

from __future__ import annotations

from dataclasses import dataclass

from pertinent.asks import TreeValues, Values
from pertinent.errors import BudgetError
from pertinent.explainers.base import Explainer, Finding, Steps, Task, Traits, explainers
from pertinent.masks import all_coalitions, shapley_values_of

MOST_FEATURES = 16


@explainers.register("exact-shapley")
@dataclass(frozen=True)
class ExactShapley(Explainer):
    r"""The Shapley value by its definition.

    .. math:: \phi_i = \sum_{S \subseteq N \setminus \{i\}}
        \frac{|S|!\,(d-|S|-1)!}{d!} \bigl(v(S \cup \{i\}) - v(S)\bigr)
    """

    paper = "Shapley 1953"
    traits = Traits(deterministic=True, all_classes=True, adds_up=True)
    summary = "Shapley values from all 2^d masks (at most 16 features)"

    def evaluations(self, n_features: int) -> int:
        """Return the number of coalitions."""
        if n_features > MOST_FEATURES:
            raise BudgetError(
                f"exact-shapley asks for all 2^d masks of at most {MOST_FEATURES} features, but there are "
                f"{n_features}. Use shapley-sampling, kernel-shap or coarser features."
            )
        return int(2**n_features)

    def explain(self, task: Task) -> Steps:
        """Ask for all coalitions, and sum."""
        values = yield Values(all_coalitions(task.n_features))
        return Finding(scores=shapley_values_of(values).T, base_values=values[0])


@explainers.register("tree-shap")
@dataclass(frozen=True)
class TreeShap(Explainer):
    r"""The Shapley values of a model made of trees, from one walk through them.

    The game is that of the removal ``background``, for the rows z that it draws:

    .. math:: v(S) = \frac{1}{|Z|} \sum_{z \in Z} \sum_t f_t(x_S, z_{N \setminus S})

    so the values are those of exact-shapley, for any number of columns.

    Note
    ----
    Supported are single trees, forests and boosting of scikit-learn, xgboost, lightgbm and catboost (numbers
    only), also at the end of a pipeline whose steps compute each number from one column. If a link function
    follows the sum, as for the probabilities of boosted classifiers, the sums over the trees are computed for
    all masks, if these are not too many (about 4 million sums for each row).
    """

    paper = "Lundberg et al. 2020 (interventional TreeSHAP)"
    traits = Traits(asks=(TreeValues,), deterministic=True, all_classes=True, adds_up=True)
    summary = "exact Shapley values of forests and boosted trees in one walk"

    def evaluations(self, n_features: int) -> int:
        """Return one evaluation for the walk."""
        return 1

    def explain(self, task: Task) -> Steps:
        """Ask for the values."""
        trees = yield TreeValues()
        return Finding(scores=trees.scores, base_values=trees.base_values)
