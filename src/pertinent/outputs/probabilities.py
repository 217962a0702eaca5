"""Probabilities of classes that exclude each other, or logits whose softmax gives them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pertinent.array_types import Floats, Masks
from pertinent.outputs.base import TINY, Probabilities, are_probabilities

if TYPE_CHECKING:
    from torch import Tensor

ROUNDING = 0.02
"""How far from one the sum of class probabilities may be: some models round them to two digits."""


@dataclass(frozen=True)
class Classes(Probabilities):
    """Class probabilities that sum to one, or logits whose softmax gives them."""

    kind = "class"
    plural = "classes"

    @property
    def name(self) -> str:
        """``"probability"`` or ``"logit"``."""
        return "logit" if self.from_logits else "probability"

    def natural(self, outputs: Floats) -> Floats:
        """Probabilities."""
        return softmax(outputs) if self.from_logits else outputs

    @staticmethod
    def to_logits(probabilities: Floats) -> Floats:
        """The logarithms of the probabilities."""
        return np.asarray(np.log(np.clip(probabilities, TINY, None)))

    def same_decision(self, values: Floats, prediction: Floats, target: int) -> Masks:
        """Whether the target is predicted."""
        return np.asarray(values.argmax(axis=1) == target)

    def widen(self, outputs: Floats) -> Floats:
        """A single column is the second of two classes; add the first."""
        if outputs.shape[1] != 1:
            return outputs
        other = np.zeros_like(outputs) if self.from_logits else 1.0 - outputs
        return np.concatenate([other, outputs], axis=1)

    def unusable(self, outputs: Floats) -> dict[int, str]:
        """Probabilities must lie in [0, 1] and sum to one."""
        reasons = super().unusable(outputs)
        if not self.from_logits:
            with np.errstate(invalid="ignore"):
                bad = ~(are_probabilities(outputs) & (np.abs(outputs.sum(axis=1) - 1) < ROUNDING))
            for row in np.flatnonzero(bad):
                hint = "output='logit' if they are logits, output='value' if it is a regressor"
                if are_probabilities(outputs[row : row + 1])[0]:
                    hint = (
                        "output='label-probability' if several labels may be true at once, "
                        "output='value' if it is a regressor"
                    )
                answer = outputs[row, 1:] if _is_widened(outputs[row]) else outputs[row]
                reasons.setdefault(
                    int(row),
                    f"the model answered {np.round(answer, 3).tolist()}, which are not probabilities "
                    f"of classes: wrap it with {hint}",
                )
        return reasons

    def followed_scores(self, outputs: Tensor) -> Tensor:
        """Log-probabilities."""
        logits = self._tensor_logits(outputs)
        return logits.log_softmax(dim=1) if self.from_logits else logits

    def n_rivals(self, n_columns: int) -> int:
        """All other classes."""
        return n_columns - 1

    def margins(self, outputs: Tensor, decided: Tensor, toward: Tensor, sides: Tensor) -> Tensor:
        """Differences of logits to each other class; or of the largest other logit to that of `toward`."""
        import torch

        logits = self._tensor_logits(outputs)
        aim = toward.clamp_min(0)
        short = logits.scatter(1, aim, -torch.inf).amax(dim=1, keepdim=True) - logits.gather(1, aim)
        alone = torch.nn.functional.pad(short, (0, logits.shape[1] - 1), value=torch.inf)
        stands = (logits.gather(1, decided) - logits).scatter(1, decided, torch.inf)
        return torch.where(toward >= 0, alone, stands)

    def _tensor_logits(self, outputs: Tensor) -> Tensor:
        """The logits of all classes, as `logits` and `widen` make them of an array."""
        import torch

        outputs = outputs.float()
        if outputs.shape[1] == 1:
            other = torch.zeros_like(outputs) if self.from_logits else 1 - outputs
            outputs = torch.cat([other, outputs], dim=1)
        return outputs if self.from_logits else outputs.clamp_min(TINY).log()


def softmax(logits: Floats) -> Floats:
    """Probabilities of logits, row by row."""
    shifted = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=-1, keepdims=True))


def _is_widened(row: Floats) -> bool:
    """Whether the model answered with the second of these numbers alone."""
    return len(row) == 2 and bool(row.sum() == 1) and bool(row.min() < 0)


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
