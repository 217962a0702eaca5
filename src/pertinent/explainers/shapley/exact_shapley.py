"""Exact Shapley values, from all coalitions or from the trees of a model."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import numpy as np

from pertinent.array_types import Floats, Masks
from pertinent.asks import TreeValues, Values
from pertinent.errors import BudgetError
from pertinent.explainers.base import Explainer, Finding, Steps, Task, explainers

MOST_FEATURES = 16


def all_coalitions(n_features: int) -> Masks:
    """Every mask; row r keeps the features whose bits are set in r."""
    return (np.arange(2**n_features)[:, None] >> np.arange(n_features) & 1).astype(np.bool_)


@explainers.register("exact-shapley")
@dataclass(frozen=True)
class ExactShapley(Explainer):
    r"""The Shapley value by its definition.

    .. math:: \phi_i = \sum_{S \subseteq N \setminus \{i\}}
        \frac{|S|!\,(d-|S|-1)!}{d!} \bigl(v(S \cup \{i\}) - v(S)\bigr)
    """

    paper = "Shapley 1953"
    summary = "Shapley values from all 2^d masks (at most 16 features)"

    def evaluations(self, n_features: int) -> int:
        """All coalitions."""
        if n_features > MOST_FEATURES:
            raise BudgetError(
                f"exact-shapley asks for all 2^{n_features} masks; it takes at most {MOST_FEATURES} "
                "features. Use shapley-sampling or kernel-shap, or coarser features."
            )
        return int(2**n_features)

    def explain(self, task: Task) -> Steps:
        """Ask for all coalitions and sum."""
        values = yield Values(all_coalitions(task.n_features))
        return Finding(scores=shapley_of(values).T, base_values=values[0])


def shapley_of(values: Floats) -> Floats:
    """Shapley values (features, …) of a game given by its value for every mask in binary order."""
    d = len(values).bit_length() - 1
    masks = all_coalitions(d)
    size = masks.sum(axis=1)
    weight = np.array([1.0 / (d * comb(d - 1, s)) for s in range(d)])
    phi = np.empty((d, *values.shape[1:]))
    for i in range(d):
        without = np.flatnonzero(~masks[:, i])
        gain = values[without + 2**i] - values[without]
        phi[i] = np.tensordot(weight[size[without]], gain, axes=1)
    return phi


@explainers.register("tree-shap")
@dataclass(frozen=True)
class TreeShap(Explainer):
    r"""The Shapley values of a sum of trees, from one walk through them.

    The game is that of the removal ``background``, for the rows z that it draws:

    .. math:: v(S) = \frac{1}{|Z|} \sum_{z \in Z} \sum_t f_t(x_S, z_{N \setminus S})

    so the values are those of exact-shapley, for any number of columns.

    Note
    ----
    Walked are forests and single trees, boosted regressors, and boosted classifiers on the scales
    ``"raw"`` and, of two classes, ``"logit"``. A boosted classifier's probabilities are not a sum over its
    trees: shap rescales the values of the logits to them, which is not exact, and is not done here.
    """

    paper = "Lundberg et al. 2020 (interventional TreeSHAP)"
    summary = "exact Shapley values of forests and boosted trees in one walk"

    def evaluations(self, n_features: int) -> int:
        """One walk."""
        return 1

    def explain(self, task: Task) -> Steps:
        """Ask for the values."""
        found = yield TreeValues()
        return Finding(scores=found.scores, base_values=found.base_values)
