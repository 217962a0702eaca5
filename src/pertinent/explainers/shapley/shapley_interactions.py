"""Which features act together: interaction values of pairs of features."""

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
from pertinent.explainers.shapley.error_bounds import limited, may_fit_by_chance, with_reason
from pertinent.explainers.shapley.exact_shapley import MOST_FEATURES as MOST_EXACT
from pertinent.explainers.shapley.interaction_gaussian_process import Estimate, InteractionPosterior, estimate
from pertinent.explainers.shapley.interaction_index import (
    INDICES,
    INDICES_OF_THREE,
    MOST_OF_THREE,
    Index,
    IndexName,
    exact_pairs,
    exact_singles,
    exact_triples,
    largest_values,
)
from pertinent.explainers.shapley.paired_answers import PairedAnswers
from pertinent.masks import all_coalitions

MOST_FEATURES = 500
"""Largest number of features whose pairs are valued in seconds."""

MOST_PAIRS = 2000
"""Largest number of pairs of masks to which a Gaussian process is fitted for all pairs of features."""

FEW = 6
"""Largest number of features for which early stopping asks for all masks at once."""

FIRST = 5
"""Number of pairs of masks per feature after which stopping is tested for the first time."""


@explainers.register("shapley-interactions")
@dataclass(frozen=True)
class ShapleyInteractions(Explainer):
    r"""The effect of each pair of features beyond the effects of the two alone.

    .. math:: I_{ij} = \mathbb{E}_S\bigl[v(S \cup \{i, j\}) - v(S \cup \{i\}) - v(S \cup \{j\}) + v(S)\bigr]

    It is positive if the two features do more together than each alone, and negative if one makes the other
    superfluous or reverses it. Where the budget covers all :math:`2^d` masks (at most 16 features), all are
    asked for and the values are exact. Otherwise a Gaussian process is fitted to the answers to pairs of a
    mask and its complement, at most 2,000 of them; its interaction values and their standard errors are known
    in closed form (`interaction_process`).

    The scores are the index's values of single features; pairs are valued for the target alone.

    Parameters
    ----------
    index
        ``"k-sii"`` (Bordt & von Luxburg 2023): the pairs of the Shapley interaction index; a score is the
        Shapley value less half of the feature's pairs, so that all together explain the prediction.
        ``"sii"`` (Grabisch & Roubens 1999): the same pairs beside plain Shapley values. ``"stii"``
        (Sundararajan et al. 2020): Shapley–Taylor, whose scores are the effect of each feature alone.
        ``"faith-shap"`` (Tsai et al. 2023): the sum of features and pairs that fits the game best.
        ``"banzhaf"``: the mean over all subsets, beside Banzhaf values.
    order
        3 values triples as well (`Explanation.top_triples`), of at most 30 features, for the indices
        ``"k-sii"``, ``"sii"`` and ``"banzhaf"``.

    Note
    ----
    Trees are not walked for pairs: the values of a forest or of boosting are exact if the budget covers all
    masks, as for any other model.
    """

    paper = "Grabisch & Roubens 1999; Bordt & von Luxburg 2023; pertinent (a Gaussian process on the game)"
    traits = Traits(evaluations_per_feature=5, stops_early=True, all_classes=True, standard_errors=True)
    summary = "which pairs of features act together, beside the effects of single features"
    also_called = ("interactions", "sii", "k-sii", "stii", "faith-shap")
    index: IndexName = "k-sii"
    order: Annotated[int, Range(at_least=2, at_most=3)] = 2

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        is_known = self.order == 2 or self.index in INDICES_OF_THREE
        require(is_known, "index", f"one of {', '.join(INDICES_OF_THREE)} if `order` is 3", self.index)

    def min_budget(self, n_features: int) -> int:
        """All masks of a few features; else the empty mask, the full mask and d pairs of masks."""
        if self.order == 3 and n_features > MOST_OF_THREE:
            raise BudgetError(
                f"shapley-interactions values the triples of at most {MOST_OF_THREE} features, but the input "
                f"has {n_features:,}. Leave out `order`, or use coarser features, such as sentences."
            )
        if n_features > MOST_FEATURES:
            raise BudgetError(
                f"shapley-interactions values all pairs of at most {MOST_FEATURES} features, but the input "
                f"has {n_features:,}. Use coarser features, such as sentences or superpixels."
            )
        return int(min(2**n_features, 2 * n_features + 2))

    def explain(self, task: Task) -> Steps:
        """Ask for all masks, or for pairs of a mask and its complement."""
        d = task.n_features
        is_exact = d <= MOST_EXACT and task.budget >= 2**d
        if is_exact and (not task.stops_early or d <= FEW):
            return (yield from self._exact(task))
        return (yield from self._process(task))

    def _exact(self, task: Task) -> Steps:
        """Ask for all masks."""
        values = yield Values(all_coalitions(task.n_features))
        found = self._found(task, (yield Compute(partial(self._exact_values, task, values))), values[0])
        return task.record_stop(found, "all masks")

    def _process(self, task: Task) -> Steps:
        """Fit a process to the answers; with early stopping, pairs of masks are drawn round by round."""
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
            fitted = yield Compute(fit)
            found = self._found(task, self._limited(task, fitted, answers.all), ends[0])
            found = with_reason(task, found, answers.all)
            if task.is_settled(found, len(rounds)):
                return task.record_stop(found, "stable")
            if size < rounds[-1]:
                yield from task.publish(found)
        return task.record_stop(found, "budget")

    def _exact_values(self, task: Task, values: Floats) -> InteractionPosterior:
        """Return the values from the answers to all masks; their errors are zero."""
        of_target = values[:, _target_columns(task, values.shape[1])]
        triples = exact_triples(self._index, of_target) if self.order == 3 else np.zeros((0, 1))
        found = exact_singles(self._index, values), exact_pairs(self._index, of_target), triples
        return InteractionPosterior(*(Estimate(each, np.zeros_like(each)) for each in found))

    @property
    def _index(self) -> Index:
        return (INDICES_OF_THREE if self.order == 3 else INDICES)[self.index]

    def _fitted_values(self, task: Task, masks: Masks, odd: Floats, even: Floats) -> InteractionPosterior:
        """Return the values of the process that explains the answers best, given the model's own columns."""
        own, columns = slice(len(task.prediction)), _target_columns(task, odd.shape[1])
        found = estimate(self._index, masks, odd, even, own=own, of_pairs=columns)
        if self.index != "sii":
            return found
        singles = found.singles.values
        singles = singles + (2 * odd[0] - singles.sum(axis=0)) / len(
            singles
        )  # Shapley values sum to the gain
        return found._replace(singles=found.singles._replace(values=singles))

    def _limited(self, task: Task, posterior: InteractionPosterior, answers: Floats) -> InteractionPosterior:
        """Limit standard errors to what is possible; NaN where the answers do not determine them."""
        d = task.n_features
        unknown = may_fit_by_chance(answers, len(answers) // 2 - d)
        every, columns = list(range(answers.shape[1])), _target_columns(task, answers.shape[1])
        largest = largest_values(self.index, self.order, d)
        found = []
        for each, own, bound in zip(posterior, (every, columns, columns), largest, strict=True):
            errors = limited(task, each.values.T, each.errors.T, answers[:, own], bound).T
            found.append(Estimate(each.values, np.where(unknown[own], np.nan, errors)))
        found[1].errors[np.diag_indices(d)] = 0.0
        return InteractionPosterior(*found)

    def _found(self, task: Task, posterior: InteractionPosterior, empty: Floats) -> Finding:
        """Return the finding, given what the model answers to the empty mask."""
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
            interactions=Interactions(*(each.transpose(2, 0, 1) for each in pairs)),
            details=details,
        )


def _target_columns(task: Task, n_columns: int) -> list[int]:
    """The target's column, and its repetitions without each group of a random removal's draws."""
    return list(range(task.target, n_columns, len(task.prediction)))
