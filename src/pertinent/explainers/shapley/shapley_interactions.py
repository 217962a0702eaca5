"""Interaction values of pairs of features."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import numpy as np

from pertinent.array_types import Floats, Masks
from pertinent.asks import Compute, Values
from pertinent.config.settings import Range
from pertinent.errors import BudgetError, require
from pertinent.explainers.base import Explainer, Finding, Interactions, Steps, Task, Traits, explainers
from pertinent.explainers.shapley import interaction_index
from pertinent.explainers.shapley.error_bounds import add_warning, limit, may_fit_by_chance
from pertinent.explainers.shapley.exact_shapley import MOST_FEATURES as MOST_EXACT
from pertinent.explainers.shapley.gaussian_process import Estimate
from pertinent.explainers.shapley.interaction_gaussian_process import InteractionPosterior, estimate
from pertinent.explainers.shapley.interaction_index import MOST_OF_THREE, Index, IndexName
from pertinent.explainers.shapley.paired_answers import PairedAnswers
from pertinent.masks import all_coalitions

MOST_FEATURES = 500
"""Largest number of features whose pairs are valued within seconds."""

MOST_PAIRS = 2000
"""Largest number of mask pairs to which a Gaussian process is fitted for all feature pairs."""

FEW = 6
"""Largest number of features for which all masks are evaluated in one question despite early stopping."""

FIRST = 5
"""Number of mask pairs per feature before the first test for early stopping."""


@explainers.register("shapley-interactions")
@dataclass(frozen=True)
class ShapleyInteractions(Explainer):
    r"""The effect of each pair of features beyond the effects of the single features.

    .. math:: I_{ij} = \mathbb{E}_S\bigl[v(S \cup \{i, j\}) - v(S \cup \{i\}) - v(S \cup \{j\}) + v(S)\bigr]

    It is positive if the two features together have a larger effect than the sum of their single effects, and
    negative if one makes the other redundant or reverses it. If the budget covers all :math:`2^d` masks (at
    most 16 features), all are evaluated and the values are exact. Otherwise a Gaussian process is fitted to
    the answers to pairs of a mask and its complement, at most 2,000 of them; its interaction values and their
    standard errors have a closed form (`interaction_gaussian_process`).

    The scores are the index's values for single features. Pairs are valued only for the target.

    Parameters
    ----------
    index
        ``"k-sii"`` (Bordt & von Luxburg 2023): the pairs of the Shapley interaction index; a score is the
        Shapley value minus half of the feature's pairs, so all values sum to the prediction.
        ``"sii"`` (Grabisch & Roubens 1999): the same pairs, with plain Shapley values as scores. ``"stii"``
        (Sundararajan et al. 2020): Shapley–Taylor, whose scores are the effects of single features.
        ``"faith-shap"`` (Tsai et al. 2023): the sum of features and pairs that fits the game best.
        ``"banzhaf"``: the mean over all subsets, with Banzhaf values as scores.
    order
        3 also computes triples (`Explanation.top_triples`), for at most 30 features and the indices
        ``"k-sii"``, ``"sii"`` and ``"banzhaf"``.

    Note
    ----
    Pairs are not computed from trees: the values for a forest or boosting are exact if the budget covers all
    masks, as for any other model.
    """

    paper = "Grabisch & Roubens 1999; Bordt & von Luxburg 2023; pertinent (a Gaussian process on the game)"
    traits = Traits(evaluations_per_feature=5, stops_early=True, all_classes=True, standard_errors=True)
    summary = "effects of feature pairs beyond the effects of the single features"
    also_called = ("interactions", "sii", "k-sii", "stii", "faith-shap")
    index: IndexName = "k-sii"
    order: Annotated[int, Range(at_least=2, at_most=3)] = 2

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        is_known = self.order == 2 or self.index in interaction_index.INDICES_OF_THREE
        require(
            is_known,
            "index",
            f"one of {', '.join(interaction_index.INDICES_OF_THREE)} with order=3",
            self.index,
        )

    def min_budget(self, n_features: int) -> int:
        """Return the number of all masks for few features, else the empty mask, the full mask and d pairs."""
        if self.order == 3 and n_features > MOST_OF_THREE:
            raise BudgetError(
                f"shapley-interactions supports at most {MOST_OF_THREE} features with order=3, but there are "
                f"{n_features:,}. Use order=2 or coarser features, such as sentences."
            )
        if n_features > MOST_FEATURES:
            raise BudgetError(
                f"shapley-interactions supports at most {MOST_FEATURES} features, but there are "
                f"{n_features:,}. Use coarser features, such as sentences or superpixels."
            )
        return int(min(2**n_features, 2 * n_features + 2))

    def explain(self, task: Task) -> Steps:
        """Evaluate all masks, or pairs of a mask and its complement."""
        d = task.n_features
        is_exact = d <= MOST_EXACT and task.budget >= 2**d
        if is_exact and (not task.stops_early or d <= FEW):
            return (yield from self._exact(task))
        return (yield from self._process(task))

    def _exact(self, task: Task) -> Steps:
        """Evaluate all masks."""
        values = yield Values(all_coalitions(task.n_features))
        posterior = yield Compute(partial(self._exact_values, task, values))
        return task.record_stop(self._finding(task, posterior, values[0]), "all masks")

    def _process(self, task: Task) -> Steps:
        """Fit a process to the answers; with early stopping, mask pairs are drawn in rounds."""
        d = task.n_features
        ends = yield from task.ask_empty_and_full()
        most = min((task.budget - 2) // 2, MOST_PAIRS, 2 ** (d - 1) - 1)
        rounds = task.rounds(FIRST * d, most)
        answers = PairedAnswers(task, ends, most)
        for size in rounds:
            if size == 2 ** (d - 1) - 1:
                return (yield from self._exact(task))
            yield from answers.extend(size)
            fit = partial(self._fitted_values, task, answers.masks, answers.odd, answers.even)
            posterior = self._limit_errors(task, (yield Compute(fit)), answers.all)
            finding = add_warning(task, self._finding(task, posterior, ends[0]), answers.all)
            if task.is_settled(finding, len(rounds)):
                return task.record_stop(finding, "stable")
            if size < rounds[-1]:
                yield from task.publish(finding)
        return task.record_stop(finding, "budget")

    def _exact_values(self, task: Task, values: Floats) -> InteractionPosterior:
        """Return the values from the answers to all masks, with zero errors."""
        of_target = values[:, _target_columns(task, values.shape[1])]
        triples = (
            interaction_index.exact_triples(self._index, of_target) if self.order == 3 else np.zeros((0, 1))
        )
        exact = (
            interaction_index.exact_singles(self._index, values),
            interaction_index.exact_pairs(self._index, of_target),
            triples,
        )
        return InteractionPosterior(*(Estimate(part, np.zeros_like(part)) for part in exact))

    @property
    def _index(self) -> Index:
        return (interaction_index.INDICES_OF_THREE if self.order == 3 else interaction_index.INDICES)[
            self.index
        ]

    def _fitted_values(self, task: Task, masks: Masks, odd: Floats, even: Floats) -> InteractionPosterior:
        """Return the values of the most probable process, determined by the model's columns."""
        columns, of_target = slice(len(task.prediction)), _target_columns(task, odd.shape[1])
        posterior = estimate(self._index, masks, odd, even, columns=columns, pair_columns=of_target)
        if self.index != "sii":
            return posterior
        singles = posterior.singles.values  # Shapley values sum to the gain
        singles = singles + (2 * odd[0] - singles.sum(axis=0)) / len(singles)
        return posterior._replace(singles=Estimate(singles, posterior.singles.errors))

    def _limit_errors(
        self, task: Task, posterior: InteractionPosterior, answers: Floats
    ) -> InteractionPosterior:
        """Limit standard errors to possible values; NaN if the answers do not determine them."""
        d, unknown = task.n_features, may_fit_by_chance(answers, len(answers) // 2 - task.n_features)
        of_target = _target_columns(task, answers.shape[1])
        columns = [list(range(answers.shape[1])), of_target, of_target]
        bounds = interaction_index.largest_values(self.index, self.order, d)
        estimates = []
        for part, cols, bound in zip(posterior, columns, bounds, strict=True):
            errors = limit(task, part.values.T, part.errors.T, answers[:, cols], bound).T
            estimates.append(Estimate(part.values, np.where(unknown[cols], np.nan, errors)))
        estimates[1].errors[np.diag_indices(d)] = 0.0
        return InteractionPosterior(*estimates)

    def _finding(self, task: Task, posterior: InteractionPosterior, empty: Floats) -> Finding:
        """Return the finding; `empty` is the answer to the empty mask."""
        singles, pairs, triples = posterior
        details: dict[str, Any] = {"index": self.index, "base value": float(empty[task.target])}
        if self.order == 3:
            errors = triples.errors[:, 0]
            if triples.values.shape[1] > 1:
                errors = task.sampling.jackknife.standard_errors(triples.values.T, triples.errors.T)
            details["triples"] = {"values": triples.values[:, 0].tolist(), "standard_errors": errors.tolist()}
        return Finding(
            singles.values.T,
            singles.errors.T,
            base_values=empty if self.index == "sii" else None,
            interactions=Interactions(*(part.transpose(2, 0, 1) for part in pairs)),
            details=details,
        )


def _target_columns(task: Task, n_columns: int) -> list[int]:
    """Return the target's column and its copies without each group of a random removal's draws."""
    return list(range(task.target, n_columns, len(task.prediction)))
