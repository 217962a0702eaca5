"""Shapley values from a network that was trained on those of other inputs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

import numpy as np

from pertinent.asks import Network, NetworkOutputs, Values
from pertinent.errors import SettingError
from pertinent.explainers.base import Explainer, Finding, Steps, Task
from pertinent.explainers.shapley.shapley_sampling import ShapleySampling
from pertinent.masks import empty_mask, full_mask
from pertinent.outputs import Scale
from pertinent.settings import Range
from pertinent.types import Floats


@dataclass(frozen=True)
class AmortizedShapley(Explainer):
    r"""Shapley values predicted by a network, :math:`\phi_{AM}(i, \hat y) = W e_i + b` (Sec. 5).

    `fit` makes it. One pass of the network explains an input, and the same input always gets the same
    scores. With `refine`, permutations of the real features are added to the prediction (Sec. 5.1).

    Parameters
    ----------
    network
        The fitted network.
    normalize
        Shift all scores by the same amount, so that they sum to :math:`v(N) - v(\emptyset)`, which costs
        these two evaluations. A refined explanation is always normalized, except by Alg. 1.
    refine
        Number of permutations for local adaption.
    combine
        ``"precision"``: the prediction and the mean over the permutations, weighted by their precision,
        which was measured on the dev inputs. ``"paper"``: Alg. 1 to the letter.

    Note
    ----
    Alg. 1 starts the sum over m permutations with the prediction and divides it by m, which gives
    :math:`\phi_{AM} / m` plus the mean over the permutations: its scores are too large.
    """

    name = "amortized-shapley"
    paper = "Yang et al. 2023, Sec. 5 and Alg. 1"
    summary = "Shapley values predicted by a network trained on those of other inputs"
    network: Network
    normalize: bool = False
    refine: Annotated[int, Range(at_least=0, at_most=10**9)] = 0
    combine: Literal["precision", "paper"] = "precision"

    @property
    def scales(self) -> tuple[Scale, ...]:  # type: ignore[override]
        """The scale of the values it was fitted to."""
        return (self.network.card["scale"],)

    def refined(
        self, permutations: int, *, combine: Literal["precision", "paper"] = "precision"
    ) -> AmortizedShapley:
        """The same explainer with local adaption by so many permutations."""
        return replace(self, refine=permutations, combine=combine)

    def save(self, folder: str | Path) -> None:
        """Write the network and its card into a folder, for `load_explainer`."""
        self.network.save(Path(folder))

    def evaluations(self, n_features: int) -> int:
        """One pass of the network, and what the permutations or the two ends cost."""
        if self.refine:
            return 1 + (self._sampling.evaluations(n_features) or 0)
        return 3 if self.normalize else 1

    def explain(self, task: Task) -> Steps:
        """Predict, and adapt to the input if asked to."""
        columns = self._columns(task)
        scores = yield NetworkOutputs(self.network)
        if not self.refine and not self.normalize:
            return Finding(_found(scores))
        if not self.refine:
            ends = yield Values(np.concatenate([empty_mask(task.n_features), full_mask(task.n_features)]))
            total = (ends[1] - ends[0])[columns]
            return Finding(_found(normalized(scores, total)), base_values=ends[0])
        sampled = yield from self._sampling.explain(task)
        assert sampled.scores is not None and sampled.base_values is not None
        mean = sampled.scores[columns]
        if self.combine == "paper":
            return Finding(_found(scores / self.refine + mean))  # Alg. 1
        prediction = normalized(scores, mean.sum(axis=1))
        of_prediction, of_mean = self._variances()
        both = of_prediction + of_mean
        trust = np.divide(of_prediction, both, out=np.ones_like(both), where=both > 0)
        assert sampled.standard_errors is not None
        squares = sampled.standard_errors[columns] ** 2
        errors = np.sqrt(
            trust**2 * np.where(np.isnan(squares), of_mean, squares) + (1 - trust) ** 2 * of_prediction
        )
        scores = trust * mean + (1 - trust) * prediction
        return Finding(_found(scores), _found(errors), base_values=sampled.base_values)

    @property
    def _sampling(self) -> ShapleySampling:
        return ShapleySampling(samples=self.refine, antithetic=self.combine != "paper")

    def _columns(self, task: Task) -> list[int]:
        """The model's columns that the network has scores for."""
        if self.network.card["classes"] == "all":
            return list(range(len(task.prediction)))
        if task.target != task.output.default_target(task.prediction):
            raise SettingError(
                "This explainer was fitted for the predicted class alone: leave out `target`, or fit one "
                "with classes='all'."
            )
        return [task.target]

    def _variances(self) -> tuple[Floats, Floats]:
        """Of the error of the prediction and of the mean over the permutations (columns, 1).

        Both were measured on dev inputs: of a few permutations an input has too little to tell its own.
        They come in pairs of an order and its reverse, with one left over if their number is odd.
        """
        of_one, of_pair = (np.array(rows)[:, None] for rows in self.network.card["sampling_variances"])
        pairs, odd = divmod(self.refine, 2)
        of_mean = (pairs * 4 * of_pair + odd * of_one) / self.refine**2
        return np.array(self.network.card["error_variances"])[:, None], of_mean


def normalized(scores: Floats, total: Floats) -> Floats:
    """The scores (columns, features), all shifted by the same amount to sum to the total (columns,)."""
    return np.asarray(scores + ((total - scores.sum(axis=1)) / scores.shape[1])[:, None])


def _found(rows: Floats) -> Floats:
    """One row alone, or a row for each column."""
    return rows[0] if len(rows) == 1 else rows
