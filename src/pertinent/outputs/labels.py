"""Probabilities of labels that may be true together, or logits whose sigmoid gives them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pertinent.array_types import Floats, Masks
from pertinent.outputs.base import TINY, Probabilities, are_probabilities

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Labels(Probabilities):
    """Probabilities of independent labels, or logits whose sigmoid gives them."""

    kind = "label"
    plural = "labels"

    @property
    def name(self) -> str:
        """``"label-probability"`` or ``"label-logit"``."""
        return "label-logit" if self.from_logits else "label-probability"

    def natural(self, outputs: Floats) -> Floats:
        """Probabilities."""
        return np.asarray(0.5 * (1 + np.tanh(outputs / 2))) if self.from_logits else outputs

    @staticmethod
    def to_logits(probabilities: Floats) -> Floats:
        """Log-odds."""
        return log_odds(probabilities)

    def same_decision(self, values: Floats, prediction: Floats, target: int) -> Masks:
        """Whether the target's probability is on the same side of 0.5 as for the whole input."""
        return np.asarray((values[:, target] >= 0.5) == (prediction[target] >= 0.5))

    def unusable(self, outputs: Floats) -> dict[int, str]:
        """Probabilities must lie in [0, 1]."""
        reasons = super().unusable(outputs)
        if not self.from_logits:
            with np.errstate(invalid="ignore"):
                bad = ~are_probabilities(outputs)
            for row in np.flatnonzero(bad):
                reasons.setdefault(
                    int(row),
                    f"the model answered {np.round(outputs[row], 3).tolist()}, which are not "
                    "probabilities of labels: wrap it with output='label-logit' if they are logits, "
                    "output='value' if it is a regressor",
                )
        return reasons

    def followed_scores(self, outputs: Tensor) -> Tensor:
        """Log-probabilities that the labels are true."""
        from torch.nn.functional import logsigmoid

        outputs = outputs.float()
        return logsigmoid(outputs) if self.from_logits else outputs.clamp_min(TINY).log()

    def side(self, prediction: Floats, target: int) -> float:
        """1 if the target is more likely true than not, else −1."""
        return 1.0 if prediction[target] >= 0.5 else -1.0

    def margins(self, outputs: Tensor, decided: Tensor, toward: Tensor, sides: Tensor) -> Tensor:
        """The log-odds of the label, or of its opposite if it is predicted to be false."""
        own = outputs.float().gather(1, decided)
        if not self.from_logits:
            own = own.clamp(TINY, 1 - TINY).logit()
        return own * sides[:, None]


def log_odds(probabilities: Floats) -> Floats:
    """Log-odds, clipped where a probability is 0 or 1."""
    p = np.clip(probabilities, TINY, 1 - TINY)
    return np.asarray(np.log(p) - np.log1p(-p))
