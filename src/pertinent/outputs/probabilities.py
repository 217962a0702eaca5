"""Probabilities of mutually exclusive classes or independent labels."""

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
    "The model returns probabilities, so its raw scores are unknown: choose scale='logit' (log-odds), or "
    "wrap a model that returns logits with output='logit'. For boosted trees, use tree-shap."
)

ROUNDING = 0.02
"""Largest deviation of the sum of class probabilities from one; some models round to two digits."""


@dataclass(frozen=True)
class Probabilities(Output):
    """Base class of probabilities, or logits in their place."""

    from_logits: bool = False
    prefix: ClassVar[str] = ""

    @property
    def name(self) -> str:
        """Return ``"probability"`` or ``"logit"``; for labels with the prefix ``"label-"``."""
        return self.prefix + ("logit" if self.from_logits else "probability")

    @property
    def scales(self) -> tuple[Scale, ...]:
        """Return the available scales; raw scores only if the model returns logits."""
        return SCALES if self.from_logits else SCALES[:-1]

    def as_scale(self, outputs: Floats, scale: Scale) -> Floats:
        """Return probabilities, their log-odds or logarithms, or the model's logits."""
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
        """Raise a `SettingError` unless the model returns raw scores."""
        if not self.from_logits:
            raise SettingError(NO_RAW)

    @abstractmethod
    def log_odds(self, outputs: Floats) -> Floats:
        """Return the log-odds of each class or label against the rest."""

    @abstractmethod
    def log_probabilities(self, outputs: Floats) -> Floats:
        """Return the logarithms of the probabilities."""

    def unusable(self, outputs: Floats) -> dict[int, str]:
        """Return the indices of rows that are unusable or not probabilities, with the reasons."""
        reasons = super().unusable(outputs)
        if not self.from_logits:
            with np.errstate(invalid="ignore"):
                invalid = np.flatnonzero(~self._are_valid(outputs)).tolist()
            for row in invalid:
                answer, hint = self._diagnose(outputs[row])
                reasons.setdefault(
                    row,
                    f"the model returned {np.round(answer, 3).tolist()}, which are not probabilities "
                    f"of {self.plural}: wrap it with {hint}, or output='value' if it is a regressor",
                )
        return reasons

    def _are_valid(self, outputs: Floats) -> Masks:
        """Return whether all numbers of each row are in [0, 1], up to rounding."""
        return np.asarray(((outputs > -1e-6) & (outputs < 1 + 1e-6)).all(axis=1))

    @abstractmethod
    def _diagnose(self, row: Floats) -> tuple[Floats, str]:
        """Return the model's answer in an invalid row, and the `output` that may be appropriate."""

    def natural_slopes(self, values: Floats) -> Floats:
        """Return the probabilities: dp / d log p = p."""
        return values

    def default_target(self, prediction: Floats) -> int:
        """Return the most probable class or label."""
        return int(prediction.argmax())

    def objective(self, values: Floats, prediction: Floats, target: int) -> Floats:
        """Return the target's probability."""
        return values[:, target]

    def describe(self, value: float) -> str:
        """Return a probability as text, such as ``93.1%``."""
        return percent(value)


@dataclass(frozen=True)
class Classes(Probabilities):
    """Class probabilities that sum to one, or logits whose softmax does."""

    kind = "class"
    plural = "classes"

    def natural(self, outputs: Floats) -> Floats:
        """Return probabilities."""
        return softmax(outputs) if self.from_logits else outputs

    def log_odds(self, outputs: Floats) -> Floats:
        """Return log-odds; the most probable class uses the sum of the rest, because 1 − p loses digits."""
        logs = self.log_probabilities(outputs)
        top = logs.argmax(axis=1, keepdims=True)
        others = logs.copy()
        np.put_along_axis(others, top, -np.inf, axis=1)
        rest = np.log1p(-np.exp(np.minimum(logs, -np.log(2))))
        np.put_along_axis(rest, top, np.logaddexp.reduce(others, axis=1, keepdims=True), axis=1)
        return np.asarray(logs - rest)

    def log_probabilities(self, outputs: Floats) -> Floats:
        """Return log-probabilities, directly from logits if the model returns them."""
        if not self.from_logits:
            return np.asarray(np.log(np.clip(outputs, TINY, None)))
        return np.asarray(outputs - np.logaddexp.reduce(outputs, axis=1, keepdims=True))

    def same_decision(self, values: Floats, prediction: Floats, target: int) -> Masks:
        """Return whether each row predicts the target."""
        return np.asarray(values.argmax(axis=1) == target)

    def widen(self, outputs: Floats) -> Floats:
        """Return the outputs with the first of two classes added if the model returns only the second."""
        if outputs.shape[1] != 1:
            return outputs
        first = np.zeros_like(outputs) if self.from_logits else 1.0 - outputs
        return np.concatenate([first, outputs], axis=1)

    def _are_valid(self, outputs: Floats) -> Masks:
        """Return whether each row is in [0, 1] and sums to one."""
        return np.asarray(super()._are_valid(outputs) & (np.abs(outputs.sum(axis=1) - 1) < ROUNDING))

    def _diagnose(self, row: Floats) -> tuple[Floats, str]:
        was_widened = len(row) == 2 and row.sum() == 1 and row.min() < 0
        if super()._are_valid(row[None])[0]:
            return row, "output='label-probability' for independent labels"
        return row[1:] if was_widened else row, "output='logit' if they are logits"

    def followed_scores(self, outputs: Tensor, scale: Scale) -> Tensor:
        """Return log-probabilities, log-odds as in `log_odds`, or the model's logits."""
        from torch.nn.functional import logsigmoid

        logits = self._tensor_logits(outputs)
        if scale == "raw":
            self._check_raw()
            return logits
        logs = logits.log_softmax(dim=1) if self.from_logits else logits
        top = logs.argmax(dim=1, keepdim=True)
        others = logs.scatter(1, top, -np.inf).logsumexp(dim=1, keepdim=True)
        if scale != "logit":  # near p = 1 the gradient of log_softmax is lost to rounding
            log_top = logsigmoid(logs.gather(1, top) - others)
            return logs.scatter(1, top, log_top) if self.from_logits else logs
        rest = (-logs.clamp_max(-np.log(2)).exp()).log1p()
        return logs - rest.scatter(1, top, others)

    def mean_answer(self, outputs: Tensor, windows: Tensor) -> Tensor:
        """Return means of probabilities; for logits, the logarithms of the means of their softmax."""
        if not self.from_logits:
            return super().mean_answer(outputs, windows)
        if outputs.shape[1] == 1:
            return _mean_logits(outputs, windows)
        return _log_mean(outputs.float().log_softmax(dim=1), windows)

    def n_rivals(self, n_columns: int) -> int:
        """Return the number of other classes."""
        return n_columns - 1

    def margins(self, outputs: Tensor, decided: Tensor, toward: Tensor, sides: Tensor) -> Tensor:
        """Return logit differences to each other class, or from the largest other logit to `toward`'s."""
        import torch

        logits = self._tensor_logits(outputs)
        target = toward.clamp_min(0)
        distance = logits.scatter(1, target, -torch.inf).amax(dim=1, keepdim=True) - logits.gather(1, target)
        to_target = torch.nn.functional.pad(distance, (0, logits.shape[1] - 1), value=torch.inf)
        to_any = (logits.gather(1, decided) - logits).scatter(1, decided, torch.inf)
        return torch.where(toward >= 0, to_target, to_any)

    def decided_logits(self, outputs: Tensor, decided: Tensor, toward: Tensor, sides: Tensor) -> Tensor:
        """Return the logit of the predicted class, or minus the logit of `toward`."""
        import torch

        logits = self._tensor_logits(outputs)
        to_target = -logits.gather(1, toward.clamp_min(0))
        return torch.where(toward >= 0, to_target, logits.gather(1, decided))[:, 0]

    def _tensor_logits(self, outputs: Tensor) -> Tensor:
        """Return the logits of all classes from a tensor of outputs, or the logarithms of probabilities."""
        import torch

        outputs = outputs.float()
        if outputs.shape[1] == 1:
            first = torch.zeros_like(outputs) if self.from_logits else 1 - outputs
            outputs = torch.cat([first, outputs], dim=1)
        return outputs if self.from_logits else outputs.clamp_min(TINY).log()


@dataclass(frozen=True)
class Labels(Probabilities):
    """Probabilities of independent labels, or logits whose sigmoid yields them."""

    kind = "label"
    plural = "labels"
    prefix = "label-"

    def natural(self, outputs: Floats) -> Floats:
        """Return probabilities."""
        return np.asarray(0.5 * (1 + np.tanh(outputs / 2))) if self.from_logits else outputs

    def log_odds(self, outputs: Floats) -> Floats:
        """Return the model's logits, or the log-odds of its probabilities."""
        return outputs if self.from_logits else log_odds(outputs)

    def log_probabilities(self, outputs: Floats) -> Floats:
        """Return log-probabilities, directly from logits if the model returns them."""
        if self.from_logits:
            return np.asarray(-np.logaddexp(0, -outputs))
        return np.asarray(np.log(np.clip(outputs, TINY, None)))

    def same_decision(self, values: Floats, prediction: Floats, target: int) -> Masks:
        """Return whether each row's target probability is on the same side of 0.5."""
        return np.asarray((values[:, target] >= 0.5) == (prediction[target] >= 0.5))

    def _diagnose(self, row: Floats) -> tuple[Floats, str]:
        return row, "output='label-logit' if they are logits"

    def followed_scores(self, outputs: Tensor, scale: Scale) -> Tensor:
        """Return log-probabilities that the labels are true, or log-odds."""
        from torch.nn.functional import logsigmoid

        if scale == "raw":
            self._check_raw()
        if scale in ("logit", "raw"):
            return self._tensor_log_odds(outputs)
        return logsigmoid(outputs.float()) if self.from_logits else outputs.float().clamp_min(TINY).log()

    def _tensor_log_odds(self, outputs: Tensor) -> Tensor:
        """Return the log-odds from a tensor of outputs, finite even for a probability of 1 in float32."""
        import torch

        outputs = outputs.float()
        if self.from_logits:
            return outputs
        largest = 1 - torch.finfo(outputs.dtype).eps / 2
        return outputs.clamp_min(TINY).log() - (-outputs.clamp_max(largest)).log1p()

    def mean_answer(self, outputs: Tensor, windows: Tensor) -> Tensor:
        """Return means of probabilities; for logits, the log-odds of the means of their sigmoid."""
        if not self.from_logits:
            return super().mean_answer(outputs, windows)
        return _mean_logits(outputs, windows)

    def side(self, prediction: Floats, target: int) -> float:
        """Return 1 if the target is more likely true than not, else −1."""
        return 1.0 if prediction[target] >= 0.5 else -1.0

    def margins(self, outputs: Tensor, decided: Tensor, toward: Tensor, sides: Tensor) -> Tensor:
        """Return the log-odds of the label, or of its opposite if it is predicted to be false."""
        return self._tensor_log_odds(outputs).gather(1, decided) * sides[:, None]


def _mean_logits(logits: Tensor, windows: Tensor) -> Tensor:
    """Return the log-odds of the mean of the sigmoid of logits; `windows` as in `Output.mean_answer`."""
    from torch.nn.functional import logsigmoid

    logits = logits.float()
    return _log_mean(logsigmoid(logits), windows) - _log_mean(logsigmoid(-logits), windows)


def _log_mean(logs: Tensor, windows: Tensor) -> Tensor:
    """Return the logarithm of a mean, from logarithms; `windows` as in `Output.mean_answer`."""
    real = (windows >= 0)[..., None]
    return logs[windows].where(real, -np.inf).logsumexp(dim=1) - real.sum(dim=1).log()


def softmax(logits: Floats) -> Floats:
    """Return the probabilities of logits, row by row."""
    shifted = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=-1, keepdims=True))


def log_odds(probabilities: Floats) -> Floats:
    """Return log-odds, clipped at probabilities of 0 and 1."""
    p = np.clip(probabilities, TINY, 1 - TINY)
    return np.asarray(np.log(p) - np.log1p(-p))
