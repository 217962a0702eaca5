"""Exact Shapley values, from all coalitions or from a model's trees."""

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
    r"""The Shapley value computed from its definition.

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
                f"exact-shapley evaluates all 2^d masks of at most {MOST_FEATURES} features, but there are "
                f"{n_features}. Use shapley-sampling, kernel-shap or coarser features."
            )
        return int(2**n_features)

    def explain(self, task: Task) -> Steps:
        """Evaluate all coalitions and sum."""
        values = yield Values(all_coalitions(task.n_features))
        return Finding(scores=shapley_values_of(values).T, base_values=values[0])


@explainers.register("tree-shap")
@dataclass(frozen=True)
class TreeShap(Explainer):
    r"""The Shapley values of a tree-based model, from a single walk through its trees.

    The game is defined by the ``background`` removal, for the rows z that it draws:

    .. math:: v(S) = \frac{1}{|Z|} \sum_{z \in Z} \sum_t f_t(x_S, z_{N \setminus S})

    so the values equal those of exact-shapley, for any number of columns.

    Note
    ----
    Supported models: single trees, forests and boosting from scikit-learn, xgboost, lightgbm and catboost
    (numbers only), also at the end of a pipeline whose steps compute each number from one column. If the sum
    is followed by a link function, as for the probabilities of boosted classifiers, the tree sums are
    computed for all masks, provided there are not too many (about 4 million sums per row).
    """

    paper = "Lundberg et al. 2020 (interventional TreeSHAP)"
    traits = Traits(asks=(TreeValues,), deterministic=True, all_classes=True, adds_up=True)
    summary = "exact Shapley values of forests and boosted trees in one walk"

    def evaluations(self, n_features: int) -> int:
        """Return 1, for the walk."""
        return 1

    def explain(self, task: Task) -> Steps:
        """Request the values."""
        trees = yield TreeValues()
        return Finding(scores=trees.scores, base_values=trees.base_values)
