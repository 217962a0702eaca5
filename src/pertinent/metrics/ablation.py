"""How the decision changes as features are kept or removed: ablation at each sparsity, and curves by rank."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from pertinent.asks import Values
from pertinent.config.settings import Count, Share
from pertinent.errors import SettingError
from pertinent.metrics.base import Measures, Metric, ask_whole_and, metrics, objective, top_masks
from pertinent.outputs import log_odds
from pertinent.results.explanation import Explanation


@dataclass(frozen=True)
class AblationMetric(Metric):
    """The effect of removing features, at each sparsity.

    The drop of a probability, or the absolute change of a plain value.

    Parameters
    ----------
    scale
        ``"natural"``, probabilities or values, or ``"weight-of-evidence"``, log-odds.
    sparsities
        Shares of features that count as chosen; by default the sparsities of the explanation.
    """

    keep_chosen: ClassVar[bool]
    scale: Literal["natural", "weight-of-evidence"] = "natural"
    sparsities: tuple[Share, ...] | None = None

    def measure(self, explanation: Explanation) -> Measures:
        """f(x) − f(x without …), for the target."""
        sparsities = self.sparsities or explanation.request.sparsities
        chosen = np.array([explanation.mask(s) for s in sparsities])
        answer = yield from ask_whole_and(explanation, chosen if self.keep_chosen else ~chosen)
        if self.scale == "natural":
            values = objective(explanation, answer)
        elif explanation.output.kind == "value":
            raise SettingError(
                "Weight of evidence needs probabilities, but this model answers with plain values."
            )
        else:
            values = log_odds(answer[:, explanation.target])
        return dict(zip(sparsities, (values[0] - values[1:]).tolist(), strict=True))


@metrics.register("sufficiency")
@dataclass(frozen=True)
class Sufficiency(AblationMetric):
    r""":math:`f(x)_{\hat y} - f(\mathrm{Replace}(x, e))_{\hat y}`, only the chosen features kept."""

    paper = "DeYoung et al. 2020; Hase et al. 2021, Eqn. 1"
    summary = "drop of the target's probability (change of a value) when only the chosen features are kept"
    better = "lower"
    keep_chosen = True


@metrics.register("comprehensiveness")
@dataclass(frozen=True)
class Comprehensiveness(AblationMetric):
    r""":math:`f(x)_{\hat y} - f(\mathrm{Replace}(x, 1 - e))_{\hat y}`, the chosen features removed."""

    paper = "DeYoung et al. 2020; Hase et al. 2021, Sec. 3"
    summary = "drop of the target's probability (change of a value) when the chosen features are removed"
    better = "higher"
    keep_chosen = False


@dataclass(frozen=True)
class Curve(Metric):
    """The area under the curve over the share of features, by the trapezoid rule.

    The curve is the target's probability, or for a plain value, minus its distance to the value for
    the whole input.

    Parameters
    ----------
    steps
        Points of the curve besides its start; fewer if there are fewer features.
    """

    insert: ClassVar[bool]
    steps: Count = 20

    def measure(self, explanation: Explanation) -> Measures:
        """Insert or delete the features by rank."""
        d = len(explanation.features)
        counts = np.unique(np.round(np.linspace(0, d, min(self.steps, d) + 1)).astype(int))
        masks = top_masks(explanation, counts)
        answer = yield Values(masks if self.insert else ~masks)
        return {None: float(np.trapezoid(objective(explanation, answer), counts / d))}


@metrics.register("insertion")
@dataclass(frozen=True)
class Insertion(Curve):
    """Start with no features and add them, the most important first."""

    paper = "Petsiuk, Das & Saenko 2018, Alg. 1"
    summary = "area under the target's probability (closeness of a value) as features are added by rank"
    better = "higher"
    insert = True


@metrics.register("deletion")
@dataclass(frozen=True)
class Deletion(Curve):
    """Start with the whole input and remove features, the most important first."""

    paper = "Petsiuk, Das & Saenko 2018, Alg. 1"
    summary = "area under the target's probability (closeness of a value) as features are removed by rank"
    better = "lower"
    insert = False
