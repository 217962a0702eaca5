"""Sufficiency and Comprehensiveness: what the chosen features do alone, and what is left without them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pertinent.engine.asks import Values
from pertinent.errors import unknown
from pertinent.explanation import Explanation
from pertinent.inputs.base import whole
from pertinent.metric.base import Measures, Metric, Scale, metrics, on_scale


@dataclass(frozen=True)
class Ablation(Metric):
    """The difference that removing features makes, at each sparsity.

    Parameters
    ----------
    scale
        ``"probability"`` or ``"weight-of-evidence"`` (log-odds).
    sparsities
        Shares of features that count as chosen; by default those the explanation was made for.
    """

    scale: Scale = "probability"
    sparsities: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        """Check the settings."""
        if self.scale not in ("probability", "weight-of-evidence"):
            raise unknown("scale", self.scale, ("probability", "weight-of-evidence"))

    def _drop(self, explanation: Explanation, *, keep_chosen: bool) -> Measures:
        """f(x) − f(x without …), for the target class."""
        sparsities = self.sparsities or explanation.sparsities
        chosen = np.array([explanation.mask(s) for s in sparsities])
        masks = chosen if keep_chosen else ~chosen
        answer = yield Values(np.concatenate([whole(len(explanation.features)), masks]))
        values = on_scale(answer[:, explanation.target], self.scale)
        return dict(zip(sparsities, (values[0] - values[1:]).tolist(), strict=True))


@metrics.register("sufficiency")
@dataclass(frozen=True)
class Sufficiency(Ablation):
    r""":math:`f(x)_{\hat y} - f(\mathrm{Replace}(x, e))_{\hat y}`, only the chosen features kept."""

    paper = "DeYoung et al. 2020; Hase et al. 2021, Eqn. 1"
    summary = "drop of the target's probability when only the chosen features are kept"
    better = "lower"

    def measure(self, explanation: Explanation) -> Measures:
        """Keep the chosen features."""
        return (yield from self._drop(explanation, keep_chosen=True))


@metrics.register("comprehensiveness")
@dataclass(frozen=True)
class Comprehensiveness(Ablation):
    r""":math:`f(x)_{\hat y} - f(\mathrm{Replace}(x, 1 - e))_{\hat y}`, the chosen features removed."""

    paper = "DeYoung et al. 2020; Hase et al. 2021, Sec. 3"
    summary = "drop of the target's probability when the chosen features are removed"
    better = "higher"

    def measure(self, explanation: Explanation) -> Measures:
        """Remove the chosen features."""
        return (yield from self._drop(explanation, keep_chosen=False))
