"""Δ log-odds: how much less sure the model is without the top features, or without the others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pertinent.asks import Values
from pertinent.errors import SettingError
from pertinent.masks import full_mask
from pertinent.metric.base import Measures, metrics
from pertinent.metric.top_features import TopFeatures, decided
from pertinent.outputs import log_odds
from pertinent.results.explanation import Explanation


@dataclass(frozen=True)
class DeltaLogOdds(TopFeatures):
    r""":math:`\log\frac{p}{1-p}` of the predicted class for the whole input, minus that for a masked input.

    The log-odds of 0 and 1 are finite: probabilities are clipped to 10⁻¹² and 1 − 10⁻¹².
    """

    def _delta(self, explanation: Explanation, *, keep_top: bool) -> Measures:
        if explanation.output.kind == "value":
            raise SettingError("Log-odds need probabilities, but this model answers with plain values.")
        sets = self.sets(explanation)
        top = np.array([*sets.values()])
        answer = yield Values(
            np.concatenate([full_mask(len(explanation.features)), top if keep_top else ~top])
        )
        found = log_odds(answer[:, decided(explanation, answer[0])])
        return dict(zip(sets, (found[0] - found[1:]).tolist(), strict=True))


@metrics.register("positive-delta-log-odds")
@dataclass(frozen=True)
class PositiveDeltaLogOdds(DeltaLogOdds):
    """The important features, those of S, are masked."""

    paper = "Vo et al. 2023, App. B.5; Schwab & Karlen 2019"
    summary = "fall of the predicted class's log-odds when the top K features are removed"
    better = "higher"

    def measure(self, explanation: Explanation) -> Measures:
        """Remove the top features."""
        return (yield from self._delta(explanation, keep_top=False))


@metrics.register("negative-delta-log-odds")
@dataclass(frozen=True)
class NegativeDeltaLogOdds(DeltaLogOdds):
    """The unimportant features, all that are not in S, are masked; below 0 the model is surer than before."""

    paper = "Vo et al. 2023, App. B.5; Schwab & Karlen 2019"
    summary = "fall of the predicted class's log-odds when only the top K features are kept"
    better = "lower"

    def measure(self, explanation: Explanation) -> Measures:
        """Keep the top features."""
        return (yield from self._delta(explanation, keep_top=True))
