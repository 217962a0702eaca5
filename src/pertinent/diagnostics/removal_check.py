"""The result of `check_removal`: how a model's accuracy suffers from each removal."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from pertinent._optional import optional
from pertinent.control_characters import visible
from pertinent.diagnostics.ablated_predictions import Ablated, Ablations, Point, interval
from pertinent.errors import InputError, unknown
from pertinent.intervals import FEWEST, Interval
from pertinent.results.explanation import Explanation, Explanations
from pertinent.results.failures import Failure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

logger = logging.getLogger(__name__)

Verdict = Literal["in distribution", "somewhat out", "badly out", "too few inputs"]
Explained = TypeVar("Explained", Explanation, Explanations)

SOMEWHAT_OUT = 0.02
BADLY_OUT = 0.05
"""A removal that scores this much lower than the best is somewhat or badly out of distribution. In Hase et
al. 2021, Sec. 5, the removals they advise against lose from 1.6 to over 10 points of accuracy."""

MUCH_LOST = 0.10
"""The loss with half of the features removed from which counterfactual training is recommended."""

OVERCONFIDENT = 0.10
"""The growth of confidence − accuracy with half of the features removed from which it is, too."""


@dataclass(frozen=True)
class RemovalCheck:
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
    classes, features, draws, seed
        The class names, the kind of features, the random masks per input and share, and the seed.
    skipped
        Removals that do not apply to the model or its inputs, each with the reason.
    failures
        Inputs that could not be checked, each with the reason.
    """

    rows: tuple[Ablated, ...]
    measure: Literal["accuracy", "agreement"]
    default: str
    classes: tuple[str, ...]
    features: str
    draws: int
    seed: int
    skipped: Mapping[str, str] = field(default_factory=dict)
    failures: tuple[Failure, ...] = ()

    @cached_property
    def _found(self) -> Ablations:
        return Ablations(self.rows)

    @property
    def removals(self) -> list[str]:
        """The removals checked, in their order."""
        return self._found.removals

    @property
    def shares(self) -> list[float]:
        """The shares of features removed, the smallest first."""
        return self._found.shares

    @property
    def inputs(self) -> int:
        """How many inputs all removals were checked on."""
        return self._found.inputs

    @cached_property
    def points(self) -> list[Point]:
        """Means with 95% bootstrap intervals over inputs, by removal and share."""
        return self._found.points()

    @cached_property
    def best(self) -> str:
        """The removal with the highest score over all shares, or the default if that may be as good."""
        scores = {removal: self._found.overall(removal) for removal in self.removals}
        top = max(scores, key=lambda removal: float(scores[removal].mean()))
        if self.default in scores and not _clearly(interval(scores[top] - scores[self.default]), 0.0):
            return self.default
        return top

    @cached_property
    def losses(self) -> dict[str, Interval]:
        """How much lower than the best each removal scores, paired by input, over all shares."""
        best = self._found.overall(self.best)
        return {removal: interval(best - self._found.overall(removal)) for removal in self.removals}

    def verdict(self, removal: str) -> Verdict:
        """How far out of distribution a removal is, compared to the best one with the same masks.

        ``"badly out"`` if it scores at least 0.05 lower, ``"somewhat out"`` if at least 0.02, each with
        an interval above zero; else ``"in distribution"``, as far as these inputs can tell. Fewer than
        20 are ``"too few inputs"``.
        """
        if removal not in self.losses:
            raise unknown("removal of this check", removal, self.losses)
        if self.inputs < FEWEST:
            return "too few inputs"
        if not _clearly(self.losses[removal], SOMEWHAT_OUT):
            return "in distribution"
        return "badly out" if _clearly(self.losses[removal], BADLY_OUT) else "somewhat out"

    @property
    def half(self) -> float:
        """The share closest to one half, at which the need for training is assessed."""
        return min(self.shares, key=lambda share: (abs(share - 0.5), share))

    @cached_property
    def lost(self) -> Interval:
        """How much lower than on whole inputs the best removal scores at the share `half`."""
        whole, less = (self._found.values("right", self.best, share) for share in (0.0, self.half))
        return interval(whole - less)

    @cached_property
    def overconfidence(self) -> Interval | None:
        """How much confidence − accuracy of single draws grows from whole inputs to the share `half`.

        In distribution, a model gets less confident as it gets less accurate. ``None`` without labels,
        because agreement does not say how accurate a model is.
        """
        if self.measure == "agreement":
            return None
        whole, less = (
            self._found.values("confidence", self.best, share) - self._found.values("hits", self.best, share)
            for share in (0.0, self.half)
        )
        return interval(less - whole)

    @property
    def needs_training(self) -> bool:
        """Whether the model should be trained counterfactually (Hase et al. 2021, Sec. 4).

        It should if, at the share `half` and with the best removal, `lost` or `overconfidence` is at
        least 0.10, with an interval above zero and at least 20 inputs.
        """
        over = self.overconfidence
        return _clearly(self.lost, MUCH_LOST) or (over is not None and _clearly(over, OVERCONFIDENT))

    @property
    def recommendation(self) -> str:
        """Which removal to use, and whether to train the model counterfactually."""
        from pertinent.report.advice import advice

        return advice(self)

    def attach(self, explanations: Explained) -> Explained:
        """The explanations, with a warning where their removal was found badly out of distribution."""
        if isinstance(explanations, Explanation):
            return replace(explanations, warnings=self._warnings(explanations))
        warned = [replace(e, warnings=self._warnings(e)) for e in explanations]
        return Explanations(warned, explanations.failures)

    def _warnings(self, explanation: Explanation) -> tuple[str, ...]:
        if explanation.classes != self.classes:
            raise InputError(
                f"The checked model has the classes {', '.join(self.classes)}, but the explanation has "
                f"{', '.join(explanation.classes)}: check the model that was explained."
            )
        removal = label(explanation.removal, explanation.removal_settings)
        if removal not in self.losses:
            logger.warning("The removal %r of an explanation was not checked.", removal)
        elif self.verdict(removal) == "badly out":
            warning = (
                f"the removal {removal} is badly out of distribution for this model: over {self.inputs} "
                f"inputs {self.measure} is {self.losses[removal]} lower than with {self.best}, same masks"
            )
            return tuple(dict.fromkeys((*explanation.warnings, warning)))
        return explanation.warnings

    def to_dataframe(self) -> Any:
        """A pandas frame with one row per removal and share."""
        rows = []
        for p in self.points:
            row = {"removal": p.removal, "share": p.share, self.measure: p.score.mean}
            row |= {"low": p.score.low, "high": p.score.high, "confidence": p.confidence.mean}
            row |= {"entropy": p.entropy.mean, "inputs": p.score.n, "verdict": self.verdict(p.removal)}
            rows.append(row)
        return optional("pandas").DataFrame(rows)

    def to_json(self) -> str:
        """A JSON string: every row, and the results derived from them."""
        from pertinent.diagnostics.removal_check_files import to_json

        return to_json(self)

    def save(self, path: str | Path) -> None:
        """Write a JSON file that `read` reads back."""
        from pertinent.diagnostics.removal_check_files import write

        write(self, path)

    @classmethod
    def read(cls, path: str | Path) -> RemovalCheck:
        """Read a check that was saved."""
        from pertinent.diagnostics.removal_check_files import read

        return read(path)

    def plot(self) -> Figure:
        """A matplotlib figure: the score against the share removed, a line for each removal."""
        from pertinent.report.plots import plot_check

        return plot_check(self)

    def __repr__(self) -> str:
        return f"<RemovalCheck of {self.inputs} inputs: {visible(self.recommendation)}>"

    def _repr_html_(self) -> str:
        from pertinent.report.check_table import html

        return html(self)

    def __rich__(self) -> Any:
        from pertinent.report.check_table import rendered

        return rendered(self)


def label(name: str, settings: Mapping[str, Any]) -> str:
    """A removal's name, with the settings that differ from their defaults.

    >>> label("constant", {"value": 0.5})
    'constant value=0.5'
    """
    return " ".join([name, *(f"{k}={v}" for k, v in settings.items())])


def _clearly(found: Interval, least: float) -> bool:
    """Whether a mean is at least `least`, and not by chance."""
    return found.n >= FEWEST and round(found.mean, 9) >= least and found.low > 0
