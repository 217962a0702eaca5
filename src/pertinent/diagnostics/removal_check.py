"""The result of `check_removal`: how a model's accuracy suffers from each removal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from pertinent._optional import optional
from pertinent.array_types import Floats
from pertinent.config.serialization import Index, expect
from pertinent.config.settings import ShareOrZero
from pertinent.diagnostics import base
from pertinent.diagnostics.compared_removals import TONES, ComparedRemovals, clearly, percent
from pertinent.errors import InputError
from pertinent.results.explanation import Explanation
from pertinent.stats import Interval

SOMEWHAT_OUT = 0.02
BADLY_OUT = 0.05
"""A removal that scores this much lower than the best is somewhat or badly out of distribution. In Hase et
al. 2021, Sec. 5, the removals they advise against lose from 1.6 to over 10 points of accuracy."""

MUCH_LOST = 0.10
"""The loss with half of the features removed from which counterfactual training is recommended."""

OVERCONFIDENT = 0.10
"""Training is also recommended if confidence − accuracy grows this much with half of the features removed."""

FEW_INPUTS = 100
"""With fewer inputs, intervals are too wide to show differences of a few points."""


@dataclass(frozen=True)
class AblatedInput:
    """A model's predictions for one input with a share of its features removed.

    `predicted` is the majority vote over the draws and `right` whether it is the label (without
    labels: the prediction for the whole input); `hits` is the share of single draws that are right;
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


@dataclass(frozen=True)
class Point:
    """Means over inputs for one removal and share; `score` is that of the majority votes."""

    removal: str
    share: float
    score: Interval
    confidence: Interval
    entropy: Interval


@base.diagnostics.register("removal-check")
@dataclass(frozen=True, kw_only=True, repr=False)
class RemovalCheck(ComparedRemovals):
    """How out of distribution removals are for a model (Hase et al. 2021, Sec. 5 and Figure 2).

    A drop in accuracy has two causes: the information lost with the features, and inputs unlike those
    that the model was trained on. All removals get the same masks, so the *difference between
    removals* is due to the removals alone; verdicts are based only on that.

    Attributes
    ----------
    rows
        One for each input, removal and share; share 0 is the whole input. Only inputs on which
        every removal worked, so that all are compared on the same inputs.
    measure
        ``"accuracy"`` if labels were given, else ``"agreement"`` with the whole input's prediction.
    default
        The model's default removal.
    classes, draws, seed
        The class names, the number of random masks per input and share, and the seed.
    skipped
        Removals that do not apply to the model or its inputs, each with the reason.
    trainable
        Whether `pertinent.train` can train the model: it trains models of texts.
    """

    _somewhat_out, _badly_out = SOMEWHAT_OUT, BADLY_OUT

    rows: tuple[AblatedInput, ...]
    measure: Literal["accuracy", "agreement"]
    classes: tuple[str, ...]
    trainable: bool = True

    @cached_property
    def points(self) -> list[Point]:
        """Means over inputs with 95% bootstrap intervals, by removal and share; share 0: the whole input."""
        return [
            Point(
                removal,
                share,
                base.interval(self._values("right", removal, share), within=(0, 1)),
                base.interval(self._values("confidence", removal, share)),
                base.interval(self._values("entropy", removal, share)),
            )
            for removal in self.removals
            for share in (0.0, *self.shares)
        ]

    def _points_of(self, removal: str) -> dict[float, Point]:
        """The points of one removal, by share."""
        return {p.share: p for p in self.points if p.removal == removal}

    def _worth(self, removal: str, share: float) -> Floats:
        return self._values("right", removal, share)

    def _shown(self, removal: str, share: float) -> Interval:
        return self._points_of(removal)[share].score

    @cached_property
    def lost(self) -> Interval:
        """How much lower than on whole inputs the best removal scores at the share `half`."""
        whole, less = (self._values("right", self.best, share) for share in (0.0, self.half))
        return base.interval(whole - less)

    @cached_property
    def overconfidence(self) -> Interval | None:
        """How much confidence − accuracy of single draws grows from whole inputs to the share `half`.

        In distribution, a model gets less confident as it gets less accurate. ``None`` without labels,
        because agreement does not say how accurate a model is.
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
        """Whether the model should be trained counterfactually (Hase et al. 2021, Sec. 4).

        It should if, at the share `half` and with the best removal, `lost` or `overconfidence` is at
        least 0.10, with an interval above zero and at least 20 inputs.
        """
        over = self.overconfidence
        return clearly(self.lost, MUCH_LOST) or (over is not None and clearly(over, OVERCONFIDENT))

    def _advice(self) -> str:
        return f"{self._which()} {self._training()}".rstrip()

    def _which(self) -> str:
        score = {share: point.score.mean for share, point in self._points_of(self.best).items()}
        found = (
            f"with {percent(self.half)} of the {self.features} removed, {self.measure} is "
            f"{score[self.half]:.3f} against {score[0.0]:.3f} on whole inputs"
        )
        if len(self.removals) == 1:
            return f"Only {self.best} was checked: {found}."
        if self.best == self.default:
            return f"Use {self.best}, the model's default: {found}, and no other removal is clearly better."
        instead = "which scores best over all shares"
        if self.default in self.losses:
            loss = self.losses[self.default]
            instead = f"which over all shares scores {loss} higher than the default, {self.default}"
        return f"Use {self.best}, {instead}: {found}."

    def _training(self) -> str:
        if not self.needs_training:
            return "There is no sign that the model needs counterfactual training." if self.trainable else ""
        if self.lost.mean >= MUCH_LOST and self.lost.low > 0:
            reason = (
                f"it loses {self.lost} there, and training can recover the part due to distribution shift"
            )
        else:
            over = self.overconfidence
            reason = f"its confidence exceeds its accuracy there by {over} more than on whole inputs"
        if self.trainable:
            return f"The model should be trained counterfactually: {reason}."
        return (
            f"Before its explanations are trusted, the model should be fitted again to data in which "
            f"{self.features} are removed in the same way: {reason}."
        )

    def _warnings(self, explanation: Explanation) -> tuple[str, ...]:
        if explanation.classes != self.classes:
            raise InputError(
                f"The checked model has the classes {', '.join(self.classes)}, but the explanation has "
                f"{', '.join(explanation.classes)}: check the model that was explained."
            )
        return super()._warnings(explanation)

    def _loss_in_words(self, removal: str) -> str:
        return f"{self.measure} is {self.losses[removal]} lower than with {self.best}, same masks"

    def check_fields(self) -> None:
        """Every removal and share must have the same inputs, and share 0 the whole ones."""
        super().check_fields()
        largest = max(row.predicted for row in self.rows)
        expect(largest < len(self.classes), "predicted", f"from 0 to {len(self.classes) - 1}", largest)

    def to_dataframe(self) -> Any:
        """A pandas frame with one row per removal and share."""
        rows = []
        for p in self.points:
            row = {"removal": p.removal, "share": p.share, self.measure: p.score.mean}
            row |= {"low": p.score.low, "high": p.score.high, "confidence": p.confidence.mean}
            row |= {"entropy": p.entropy.mean, "inputs": p.score.n, "verdict": self.verdict(p.removal)}
            rows.append(row)
        return optional("pandas").DataFrame(rows)

    def table(self) -> base.DiagnosticTable:
        """A row for each removal, with its score at each share in percent."""
        rows = []
        for removal in self.removals:
            points, verdict = self._points_of(removal), self.verdict(removal)
            scores = [base.percent_cell(points[share].score) for share in self.shares]
            confidence, _ = base.percent_cell(points[self.half].confidence)
            cells = (*scores, (confidence, ""))
            rows.append(base.TableRow(removal, cells, verdict, TONES.get(verdict, ""), removal == self.best))
        return base.DiagnosticTable(
            question="Is removal in distribution?",
            columns=("removal", *map(percent, self.shares), "confidence"),
            rows=tuple(rows),
            notes=tuple(self._notes()),
            answer=self.recommendation,
        )

    def _notes(self) -> Iterator[str]:
        whole = self._points_of(self.best)[0.0]
        accuracy = f" (whole inputs: {''.join(base.percent_cell(whole.score))})"
        few = f" Fewer than {FEW_INPUTS} inputs: small differences cannot be detected."
        yield (
            f"{self.measure.capitalize()} in % by share of {self.features} removed"
            f"{accuracy if self.measure == 'accuracy' else ''}, confidence at {percent(self.half)} "
            f"(whole inputs: {100 * whole.confidence.mean:.0f}). "
            f"{self.inputs:,} input{'' if self.inputs == 1 else 's'}, {self.draws} random masks each, "
            "the same for every removal; majority vote; 95% bootstrap intervals. "
            "A drop is due to lost information and distribution shift; differences between removals are due "
            f"to shift alone.{few if self.inputs < FEW_INPUTS else ''}"
        )
        yield from (f"Not checked: {removal}: {reason}" for removal, reason in self.skipped.items())

    @classmethod
    def chart(cls, several: Sequence[RemovalCheck]) -> base.Chart:
        """The score against the share removed, a line for each removal."""
        return cls._chart(several, f"{several[0].measure}, %", percent=True)
