"""Result of `check_removal` for classifiers: the accuracy after each removal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from pertinent._optional import optional
from pertinent.array_types import Floats
from pertinent.config.serialization import Index, expect
from pertinent.config.settings import ShareOrZero
from pertinent.diagnostics import base
from pertinent.diagnostics.compared_removals import ComparedRemovals, clearly, percent
from pertinent.errors import InputError
from pertinent.results.explanation import Explanation
from pertinent.stats import Interval

MUCH_LOST = 0.10
"""Loss at half of the features from which on counterfactual training is recommended."""

OVERCONFIDENT = 0.10
"""Increase of confidence − accuracy at half of the features from which on training is recommended."""

FEW_INPUTS = 100
"""With fewer inputs, intervals are too wide to show differences of a few points."""


@dataclass(frozen=True)
class AblatedInput:
    """Predictions of a model for one input with a share of its features removed.

    `predicted` is the majority vote over the draws, and `right` whether it equals the label (or, without
    labels, the prediction for the whole input); `hits` is the share of individual draws that are right;
    `confidence` (the probability of the predicted class) and `entropy` (in nats) are means over draws.
    """

    input: Index
    removal: str
    share: ShareOrZero
    predicted: Index
    right: bool
    hits: float
    confidence: float
    entropy: float


@base.diagnostics.register("removal-check")
@dataclass(frozen=True, kw_only=True, repr=False)
class RemovalCheck(ComparedRemovals):
    """How far out of distribution removals are for a classifier (Hase et al. 2021, Sec. 5 and Figure 2).

    A drop in accuracy has two causes: the information lost with the features, and inputs unlike the training
    data. All removals get equal masks, so the *difference between removals* is only due to the removals;
    verdicts depend only on that difference.

    A removal that scores 0.02 or 0.05 lower than the best is somewhat or badly out of distribution: the
    removals that Hase et al. 2021, Sec. 5, advise against lose from 1.6 to over 10 points of accuracy.

    Attributes
    ----------
    rows
        One row for each input, removal and share; share 0 is the whole input. Inputs on which any removal
        failed are missing.
    measure
        ``"accuracy"`` if labels were passed, else ``"agreement"`` with the prediction for the whole input.
    default
        Default removal of the model.
    classes, draws, seed
        Class names, number of random masks per input and share, and the seed.
    skipped
        Removals that do not apply to the model or its inputs, with reasons.
    trainable
        Whether `pertinent.train`, which trains text models, can train the model.
    """

    _somewhat_out, _badly_out = 0.02, 0.05
    _score_format = (".0f", 100.0)

    rows: tuple[AblatedInput, ...]
    measure: Literal["accuracy", "agreement"]
    classes: tuple[str, ...]
    trainable: bool = True

    def _quality(self, removal: str, share: float) -> Floats:
        return self._values("right", removal, share)

    def _score(self, removal: str, share: float) -> Interval:
        return base.interval(self._values("right", removal, share), within=(0, 1))

    @cached_property
    def lost(self) -> Interval:
        """Return the best removal's drop in score from whole inputs to the share `half`."""
        whole, less = (self._values("right", self.best, share) for share in (0.0, self.half))
        return base.interval(whole - less)

    @cached_property
    def overconfidence(self) -> Interval | None:
        """Return the increase of confidence − accuracy of individual draws from whole inputs to `half`.

        In distribution, a model becomes less confident as it becomes less accurate. ``None`` without labels,
        because agreement is not accuracy.
        """
        if self.measure == "agreement":
            return None
        whole, less = (
            self._values("confidence", self.best, share) - self._values("hits", self.best, share)
            for share in (0.0, self.half)
        )
        return base.interval(less - whole)

    @property
    def needs_training(self) -> bool:
        """Return whether the model should be trained counterfactually (Hase et al. 2021, Sec. 4).

        It should if, at the share `half` and with the best removal, `lost` or `overconfidence` is at least
        0.10, with an interval above zero and at least 20 inputs.
        """
        over = self.overconfidence
        return clearly(self.lost, MUCH_LOST) or (over is not None and clearly(over, OVERCONFIDENT))

    def _facts(self) -> str:
        half, whole = (self.score(self.best, share).mean for share in (self.half, 0.0))
        return f"{self.measure} is {half:.3f}, compared with {whole:.3f} on whole inputs"

    def _further_advice(self) -> str:
        if not self.needs_training:
            return "There is no sign that the model needs counterfactual training." if self.trainable else ""
        if self.lost.mean >= MUCH_LOST and self.lost.low > 0:
            reason = f"it loses {self.lost}, and training can recover the loss due to distribution shift"
        else:
            over = self.overconfidence
            reason = f"its confidence exceeds its accuracy by {over} more than on whole inputs"
        if self.trainable:
            return f"Train the model counterfactually: {reason}."
        return (
            f"Before you trust its explanations, refit the model on data in which {self.features} are "
            f"removed in the same way: {reason}."
        )

    def _warnings(self, explanation: Explanation) -> tuple[str, ...]:
        if explanation.classes != self.classes:
            raise InputError(
                f"The checked model has the classes {', '.join(self.classes)}, but the explanation has "
                f"{', '.join(explanation.classes)}: run the check on the explained model."
            )
        return super()._warnings(explanation)

    def _loss(self, removal: str) -> str:
        return f"{self.measure} is {self.losses[removal]} lower with {removal} than with {self.best}"

    def check_fields(self) -> None:
        """Raise an `InputError` unless predictions are classes, and removals have the same inputs."""
        super().check_fields()
        largest = max(row.predicted for row in self.rows)
        expect(largest < len(self.classes), "predicted", f"from 0 to {len(self.classes) - 1}", largest)

    def to_dataframe(self) -> Any:
        """Return a pandas frame with one row per removal and share."""
        rows = []
        for removal, share in self._cells:
            score = self.score(removal, share)
            row = {"removal": removal, "share": share, self.measure: score.mean, "low": score.low}
            row |= {"high": score.high, "confidence": self._mean("confidence", removal, share)}
            row |= {"entropy": self._mean("entropy", removal, share)}
            rows.append(row | {"inputs": score.n, "verdict": self.verdict(removal)})
        return optional("pandas").DataFrame(rows)

    def _mean(self, name: str, removal: str, share: float) -> float:
        return float(self._values(name, removal, share).mean())

    def _extra_cells(self, removal: str) -> dict[str, tuple[str, str]]:
        return {"confidence": (f"{100 * self._mean('confidence', removal, self.half):.0f}", "")}

    def _captions(self) -> Iterator[str]:
        whole = "".join(base.cell(self.score(self.best, 0.0), *self._score_format))
        accuracy = f" (whole inputs: {whole})" if self.measure == "accuracy" else ""
        yield (
            f"{self.measure.capitalize()} of majority votes in % by share of {self.features} "
            f"removed{accuracy}, confidence at {percent(self.half)} (whole inputs: "
            f"{100 * self._mean('confidence', self.best, 0.0):.0f})."
        )
        yield from super()._captions()
        if self.inputs < FEW_INPUTS:
            yield f"Fewer than {FEW_INPUTS} inputs: small differences cannot be detected."

    def chart(self) -> base.Chart:
        """Return the accuracy against the share of removed features, with a line for each removal."""
        return self._chart(f"{self.measure}, %", percent=True)
