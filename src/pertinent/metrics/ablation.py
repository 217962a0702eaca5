"""Ablation metrics: sufficiency and comprehensiveness at each sparsity, insertion and deletion curves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from pertinent.array_types import Floats
from pertinent.asks import Values
from pertinent.config.settings import Count, Share
from pertinent.errors import require
from pertinent.metrics.base import Measures, Metric, measure_drops, metrics, objective, top_masks
from pertinent.outputs import log_odds
from pertinent.results.explanation import Explanation

_NO_LOG_ODDS = "'natural' for a model of plain values, which have no log-odds"


@dataclass(frozen=True)
class AblationMetric(Metric):
    """The effect of removing features at each sparsity: a drop in probability or an absolute change of value.

    Parameters
    ----------
    scale
        ``"natural"`` for probabilities or values, ``"weight-of-evidence"`` for log-odds.
    sparsities
        Shares of features that count as chosen; by default the sparsities of the explanation.
    """

    keep_chosen: ClassVar[bool]
    scale: Literal["natural", "weight-of-evidence"] = "natural"
    sparsities: tuple[Share, ...] | None = None

    def measure(self, explanation: Explanation) -> Measures:
        """Compute f(x) − f(x without …) for the target."""
        is_natural = self.scale == "natural"
        require(is_natural or explanation.output.kind != "value", "scale", _NO_LOG_ODDS, self.scale)
        sets = {s: explanation.mask(s) for s in self.sparsities or explanation.request.sparsities}

        def value(answers: Floats) -> Floats:
            return objective(explanation, answers) if is_natural else log_odds(answers[:, explanation.target])

        return (yield from measure_drops(explanation, sets, value, keep=self.keep_chosen))


@metrics.register("sufficiency")
@dataclass(frozen=True)
class Sufficiency(AblationMetric):
    r""":math:`f(x)_{\hat y} - f(\mathrm{Replace}(x, e))_{\hat y}`, with only the chosen features kept."""

    paper = "DeYoung et al. 2020; Hase et al. 2021, Eqn. 1"
    summary = "drop of the target's probability (or change of a value) with only the chosen features kept"
    better = "lower"
    keep_chosen = True


@metrics.register("comprehensiveness")
@dataclass(frozen=True)
class Comprehensiveness(AblationMetric):
    r""":math:`f(x)_{\hat y} - f(\mathrm{Replace}(x, 1 - e))_{\hat y}`, with the chosen features removed."""

    paper = "DeYoung et al. 2020; Hase et al. 2021, Sec. 3"
    summary = "drop of the target's probability (or change of a value) with the chosen features removed"
    better = "higher"
    keep_chosen = False


@dataclass(frozen=True)
class Curve(Metric):
    """The area under a curve over the share of features, by the trapezoidal rule.

    The curve is the target's probability, or the negative distance of a plain value from that of the whole
    input.

    Parameters
    ----------
    steps
        Number of points on the curve after its start; fewer if there are fewer features.
    """

    insert: ClassVar[bool]
    steps: Count = 20

    def measure(self, explanation: Explanation) -> Measures:
        """Insert or delete the features by rank and integrate."""
        d = len(explanation.features)
        counts = np.unique(np.round(np.linspace(0, d, min(self.steps, d) + 1)).astype(int))
        masks = top_masks(explanation, counts)
        answers = yield Values(masks if self.insert else ~masks)
        return {None: float(np.trapezoid(objective(explanation, answers), counts / d))}


@metrics.register("insertion")
@dataclass(frozen=True)
class Insertion(Curve):
    """The curve from the empty input that adds features, most important first."""

    paper = "Petsiuk, Das & Saenko 2018, Alg. 1"
    summary = "area under the target's probability (closeness of a value) as features are added by rank"
    better = "higher"
    insert = True


@metrics.register("deletion")
@dataclass(frozen=True)
class Deletion(Curve):
    """The curve from the whole input that removes features, most important first."""

    paper = "Petsiuk, Das & Saenko 2018, Alg. 1"
    summary = "area under the target's probability (closeness of a value) as features are removed by rank"
    better = "lower"
    insert = False
