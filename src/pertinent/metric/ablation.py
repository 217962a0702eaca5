"""Sufficiency and Comprehensiveness: the effect of keeping only the chosen features, or removing them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from pertinent.array_types import Floats
from pertinent.asks import Values
from pertinent.errors import SettingError
from pertinent.masks import full_mask
from pertinent.metric.base import Measures, Metric, metrics, objective
from pertinent.outputs import log_odds
from pertinent.results.explanation import Explanation
from pertinent.settings import Share


@dataclass(frozen=True)
class Ablation(Metric):
    """The effect of removing features, at each sparsity.

    The drop of a probability, or the absolute change of a plain value.

    Parameters
    ----------
    scale
        ``"natural"``, probabilities or values, or ``"weight-of-evidence"``, log-odds.
    sparsities
        Shares of features that count as chosen; by default the sparsities of the explanation.
    """

    scale: Literal["natural", "weight-of-evidence"] = "natural"
    sparsities: tuple[Share, ...] | None = None

    def _drop(self, explanation: Explanation, *, keep_chosen: bool) -> Measures:
        """f(x) − f(x without …), for the target."""
        sparsities = self.sparsities or explanation.sparsities
        chosen = np.array([explanation.mask(s) for s in sparsities])
        masks = chosen if keep_chosen else ~chosen
        answer = yield Values(np.concatenate([full_mask(len(explanation.features)), masks]))
        values = self._scaled(explanation, answer)
        return dict(zip(sparsities, (values[0] - values[1:]).tolist(), strict=True))

    def _scaled(self, explanation: Explanation, answer: Floats) -> Floats:
        if self.scale == "natural":
            return objective(explanation, answer)
        if explanation.output.kind == "value":
            raise SettingError(
                "Weight of evidence needs probabilities, but this model answers with plain values."
            )
        return log_odds(answer[:, explanation.target])


@metrics.register("sufficiency")
@dataclass(frozen=True)
class Sufficiency(Ablation):
    r""":math:`f(x)_{\hat y} - f(\mathrm{Replace}(x, e))_{\hat y}`, only the chosen features kept."""

    paper = "DeYoung et al. 2020; Hase et al. 2021, Eqn. 1"
    summary = "drop of the target's probability (change of a value) when only the chosen features are kept"
    better = "lower"

    def measure(self, explanation: Explanation) -> Measures:
        """Keep the chosen features."""
        return (yield from self._drop(explanation, keep_chosen=True))


@metrics.register("comprehensiveness")
@dataclass(frozen=True)
class Comprehensiveness(Ablation):
    r""":math:`f(x)_{\hat y} - f(\mathrm{Replace}(x, 1 - e))_{\hat y}`, the chosen features removed."""

    paper = "DeYoung et al. 2020; Hase et al. 2021, Sec. 3"
    summary = "drop of the target's probability (change of a value) when the chosen features are removed"
    better = "higher"

    def measure(self, explanation: Explanation) -> Measures:
        """Remove the chosen features."""
        return (yield from self._drop(explanation, keep_chosen=False))
