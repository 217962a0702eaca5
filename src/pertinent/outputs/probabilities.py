"""Probabilities: of classes that exclude each other, and of labels that may be true together."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from pertinent.array_types import Floats, Masks
from pertinent.errors import SettingError
from pertinent.outputs.base import SCALES, TINY, Output, Scale, percent

if TYPE_CHECKING:
    from torch import Tensor

NO_RAW = (
    "The model answers with probabilities, so its raw scores are not known: choose scale='logit' (log-odds), "
    "or wrap a model that answers with logits, output='logit'. Of boosted trees, tree-shap knows them."
)

ROUNDING = 0.02
"""The largest deviation of the sum of class probabilities from one: some models round to two digits."""


@dataclass(frozen=True)
class Probabilities(Output):
    """What classes and labels share: probabilities, or the logits that the model returns instead."""

    from_logits: bool = False
    prefix: ClassVar[str] = ""

    @property
    def name(self) -> str:
        """``"probability"`` or ``"logit"``, of labels ``"label-probability"`` or ``"label-logit"``."""
        return self.prefix + ("logit" if self.from_logits else "probability")

    @property
    def scales(self) -> tuple[Scale, ...]:
        """All; raw ones only where the model answers with logits."""
        return SCALES if self.from_logits else SCALES[:-1]

    def as_scale(self, outputs: Floats, scale: Scale) -> Floats:
        """Probabilities, their log-odds or logarithms, or the model's own logits."""
        if scale == "natural":
            return self.natural(outputs)
        if scale == "raw":
            self._check_raw()
            return outputs
        return self.log_odds(outputs) if scale == "logit" else self.log_probabilities(outputs)

    def span(self, scale: Scale) -> float:
        """Return 1 for probabilities."""
        return 1.0 if scale == "natural" else super().span(scale)

    def _check_raw(self) -> None:
        """Raise an error unless the model answers with its raw scores."""
        if not self.from_logits:
            raise SettingError(NO_RAW)

    @abstractmethod
    def log_odds(self, outputs: Floats) -> Floats:
        """Log-odds of each class or label against the rest."""

    @abstractmethod
    def log_probabilities(self, outputs: Floats) -> Floats:
        """Logarithms of the probabilities."""

    def unusable(self, outputs: Floats) -> dict[int, str]:
        """Also the rows that should be probabilities, but are none."""
        reasons = super().unusable(outputs)
        if not self.from_logits:
            with np.errstate(invalid="ignore"):
                bad = np.flatnonzero(~self._are_valid(outputs)).tolist()
            for row in bad:
                answer, hint = self._flaw(outputs[row])
                reasons.setdefault(
                    row,
                    f"the model answered {np.round(answer, 3).tolist()}, which are not probabilities "
                    f"of {self.plural}: wrap it with {hint}, output='value' if it is a regressor",
                )
        return reasons

    def _are_valid(self, outputs: Floats) -> Masks:
        """Whether all numbers of each row lie in [0, 1], up to rounding."""
        return np.asarray(((outputs > -1e-6) & (outputs < 1 + 1e-6)).all(axis=1))

    @abstractmethod
    def _flaw(self, row: Floats) -> tuple[Floats, str]:
        """What the model answered in a row that is not valid, and the `output` that it may mean."""

    def natural_slopes(self, values: Floats) -> Floats:
        """The probabilities: dp / d log p = p."""
        return values

    def default_target(self, prediction: Floats) -> int:
        """The most probable class or label."""
        return int(prediction.argmax())

    def objective(self, values: Floats, prediction: Floats, target: int) -> Floats:
        """The target's probability."""
        return values[:, target]

    def describe(self, value: float) -> str:
        """As ``93.1%``."""
        return percent(value)


@dataclass(frozen=True)
class Classes(Probabilities):
    """Class probabilities that sum to one, or logits whose softmax gives them."""

    kind = "class"
    plural = "classes"

    def natural(self, outputs: Floats) -> Floats:
        """Probabilities."""
        return softmax(outputs) if self.from_logits else outputs

    def log_odds(self, outputs: Floats) -> Floats:
        """Those of the most probable class from the sum over the others, as 1 − p loses digits near p = 1."""
        logs = self.log_probabilities(outputs)
        top = logs.argmax(axis=1, keepdims=True)
        others = logs.copy()
        np.put_along_axis(others, top, -np.inf, axis=1)
        rest = np.log1p(-np.exp(np.minimum(logs, -np.log(2))))
        np.put_along_axis(rest, top, np.logaddexp.reduce(others, axis=1, keepdims=True), axis=1)
        return np.asarray(logs - rest)

    def log_probabilities(self, outputs: Floats) -> Floats:
        """Those of logits without a detour over probabilities."""
        if not self.from_logits:
            return np.asarray(np.log(np.clip(outputs, TINY, None)))
        return np.asarray(outputs - np.logaddexp.reduce(outputs, axis=1, keepdims=True))

    def same_decision(self, values: Floats, prediction: Floats, target: int) -> Masks:
        """Whether the target is predicted."""
        return np.asarray(values.argmax(axis=1) == target)

    def widen(self, outputs: Floats) -> Floats:
        """A single column is the second of two classes; add the first."""
        if outputs.shape[1] != 1:
            return outputs
        other = np.zeros_like(outputs) if self.from_logits else 1.0 - outputs
        return np.concatenate([other, outputs], axis=1)

    def _are_valid(self, outputs: Floats) -> Masks:
        """Whether each row lies in [0, 1] and sums to one."""
        return np.asarray(super()._are_valid(outputs) & (np.abs(outputs.sum(axis=1) - 1) < ROUNDING))

    def _flaw(self, row: Floats) -> tuple[Floats, str]:
        was_widened = len(row) == 2 and row.sum() == 1 and row.min() < 0
        if super()._are_valid(row[None])[0]:
            return row, "output='label-probability' if several labels may be true at once"
        return row[1:] if was_widened else row, "output='logit' if they are logits"

    def followed_scores(self, outputs: Tensor, scale: Scale) -> Tensor:
        """Log-probabilities, log-odds as in `log_odds`, or the model's logits."""
        from torch.nn.functional import logsigmoid

        logits = self._tensor_logits(outputs)
        if scale == "raw":
            self._check_raw()
            return logits
        logs = logits.log_softmax(dim=1) if self.from_logits else logits
        top = logs.argmax(dim=1, keepdim=True)
        others = logs.scatter(1, top, -np.inf).logsumexp(dim=1, keepdim=True)
        if scale != "logit":  # the gradient of log_softmax is lost to rounding near p = 1
            own = logsigmoid(logs.gather(1, top) - others)
            return logs.scatter(1, top, own) if self.from_logits else logs
        rest = (-logs.clamp_max(-np.log(2)).exp()).log1p()
        return logs - rest.scatter(1, top, others)

    def mean_answer(self, outputs: Tensor, windows: Tensor) -> Tensor:
        """The mean of probabilities; of logits, the logarithm of the mean of their softmax."""
        if not self.from_logits:
            return super().mean_answer(outputs, windows)
        if outputs.shape[1] == 1:
            return _mean_logits(outputs, windows)
        return _log_mean(outputs.float().log_softmax(dim=1), windows)

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

    def decided_logits(self, outputs: Tensor, decided: Tensor, toward: Tensor, sides: Tensor) -> Tensor:
        """The logit of the class decided for; or the negative one of `toward`."""
        import torch

        logits = self._tensor_logits(outputs)
        aimed = -logits.gather(1, toward.clamp_min(0))
        return torch.where(toward >= 0, aimed, logits.gather(1, decided))[:, 0]

    def _tensor_logits(self, outputs: Tensor) -> Tensor:
        """The logits of all classes: `widen` and `logits` for a tensor."""
        import torch

        outputs = outputs.float()
        if outputs.shape[1] == 1:
            other = torch.zeros_like(outputs) if self.from_logits else 1 - outputs
            outputs = torch.cat([other, outputs], dim=1)
        return outputs if self.from_logits else outputs.clamp_min(TINY).log()


@dataclass(frozen=True)
class Labels(Probabilities):
    """Probabilities of independent labels, or logits whose sigmoid gives them."""

    kind = "label"
    plural = "labels"
    prefix = "label-"

    def natural(self, outputs: Floats) -> Floats:
        """Probabilities."""
        return np.asarray(0.5 * (1 + np.tanh(outputs / 2))) if self.from_logits else outputs

    def log_odds(self, outputs: Floats) -> Floats:
        """The model's logits, or the log-odds of its probabilities."""
        return outputs if self.from_logits else log_odds(outputs)

    def log_probabilities(self, outputs: Floats) -> Floats:
        """Those of logits without a detour over probabilities."""
        if self.from_logits:
            return np.asarray(-np.logaddexp(0, -outputs))
        return np.asarray(np.log(np.clip(outputs, TINY, None)))

    def same_decision(self, values: Floats, prediction: Floats, target: int) -> Masks:
        """Whether the target's probability is on the same side of 0.5 as for the whole input."""
        return np.asarray((values[:, target] >= 0.5) == (prediction[target] >= 0.5))

    def _flaw(self, row: Floats) -> tuple[Floats, str]:
        return row, "output='label-logit' if they are logits"

    def followed_scores(self, outputs: Tensor, scale: Scale) -> Tensor:
        """Log-probabilities that the labels are true, or log-odds."""
        from torch.nn.functional import logsigmoid

        outputs = outputs.float()
        if scale == "raw":
            self._check_raw()
        if scale in ("logit", "raw"):
            return outputs if self.from_logits else outputs.clamp(TINY, 1 - TINY).logit()
        return logsigmoid(outputs) if self.from_logits else outputs.clamp_min(TINY).log()

    def mean_answer(self, outputs: Tensor, windows: Tensor) -> Tensor:
        """The mean of probabilities; of logits, the log-odds of the mean of their sigmoid."""
        if not self.from_logits:
            return super().mean_answer(outputs, windows)
        return _mean_logits(outputs, windows)

    def side(self, prediction: Floats, target: int) -> float:
        """1 if the target is more likely true than not, else −1."""
        return 1.0 if prediction[target] >= 0.5 else -1.0

    def margins(self, outputs: Tensor, decided: Tensor, toward: Tensor, sides: Tensor) -> Tensor:
        """The log-odds of the label, or of its opposite if it is predicted to be false."""
        own = outputs.float().gather(1, decided)
        if not self.from_logits:
            own = own.clamp(TINY, 1 - TINY).logit()
        return own * sides[:, None]


def _mean_logits(logits: Tensor, windows: Tensor) -> Tensor:
    """The log-odds of the mean of the sigmoid of logits; `windows` as in `Output.mean_answer`."""
    from torch.nn.functional import logsigmoid

    logits = logits.float()
    return _log_mean(logsigmoid(logits), windows) - _log_mean(logsigmoid(-logits), windows)


def _log_mean(logs: Tensor, windows: Tensor) -> Tensor:
    """The logarithm of a mean, from logarithms; `windows` as in `Output.mean_answer`."""
    real = (windows >= 0)[..., None]
    return logs[windows].where(real, -np.inf).logsumexp(dim=1) - real.sum(dim=1).log()


def softmax(logits: Floats) -> Floats:
    """Probabilities of logits, row by row."""
    shifted = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=-1, keepdims=True))


def log_odds(probabilities: Floats) -> Floats:
    """Log-odds, clipped where a probability is 0 or 1."""
    p = np.clip(probabilities, TINY, 1 - TINY)
    return np.asarray(np.log(p) - np.log1p(-p))
