"""Log-likelihoods of a language model's answer and its tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pertinent.array_types import Floats
from pertinent.errors import SettingError
from pertinent.number_format import number_text
from pertinent.outputs.base import TINY, Output, Scale
from pertinent.outputs.values import PlainValues

CONTRAST, SPAN, ANSWER = "contrast", "span", "answer"
"""Names of the columns for a whole answer of a language model, or for a span of it."""

PER_TOKEN = "nats per token"  # noqa: S105
"""Unit of log-likelihoods divided by the number of tokens."""


def scaled_columns(output: Output, columns: Sequence[str], outputs: Floats, scale: Scale) -> Floats:
    """Return an answer's columns on a scale; a contrast, the log-odds of two answers, is unchanged."""
    first = int(columns[0] == CONTRAST)
    return np.concatenate([outputs[:, :first], output.as_scale(outputs, scale)[:, first:]], axis=1)


@dataclass(frozen=True)
class LogLikelihoods(PlainValues):
    """Log-likelihoods, in nats, of an answer or its tokens.

    Unlike for other plain values, larger is better: features that make the answer more likely support it.
    """

    unit: str = "nats"
    plural = "log-likelihoods"
    name = "log-likelihood"
    no_decision = (
        "This method compares decisions, but the likelihood of an answer is not a decision: choose a "
        "method that measures changes of the value, such as parallel-local-search or shapley."
    )

    @property
    def scales(self) -> tuple[Scale, ...]:
        """Return the available scales: log-likelihoods, and log-odds of the probabilities."""
        return ("natural", "logit", "log-probability")

    def as_scale(self, outputs: Floats, scale: Scale) -> Floats:
        """Return log-likelihoods, or the log-odds log p − log(1 − p)."""
        if scale == "raw":
            raise SettingError("`scale` must be 'natural' or 'logit' for log-likelihoods, but got 'raw'.")
        if scale != "logit":
            return outputs
        logs = np.minimum(outputs, -TINY)
        return np.asarray(logs - np.log(-np.expm1(logs)))

    def objective(self, values: Floats, prediction: Floats, target: int) -> Floats:
        """Return the log-likelihood."""
        return values[:, target]

    def importance(self, scores: Floats) -> Floats:
        """Return signed effects, so features that support the answer rank first."""
        return scores

    def describe(self, value: float) -> str:
        """Return a log-likelihood with its unit, such as ``-0.105 nats``."""
        return f"{number_text(value)} {self.unit}"
