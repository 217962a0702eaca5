"""What the checks of removals have in common: every removal gets the same masks, and is compared by input."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

import numpy as np

from pertinent.array_types import Floats
from pertinent.config.serialization import expect
from pertinent.config.settings import Count, Seed
from pertinent.diagnostics import base
from pertinent.errors import unknown
from pertinent.printable import visible
from pertinent.results.explanation import Explanation, Explanations
from pertinent.stats import FEWEST, Interval

logger = logging.getLogger(__name__)

if TYPE_CHECKING:
    from typing import Self

Verdict = Literal["in distribution", "somewhat out", "badly out", "too few inputs"]
Explained = TypeVar("Explained", Explanation, Explanations)

TONES: Mapping[Verdict, Literal["", "quiet", "caution", "alarm"]] = {
    "somewhat out": "caution",
    "badly out": "alarm",
    "too few inputs": "quiet",
}


@dataclass(frozen=True, kw_only=True, repr=False)
class ComparedRemovals(base.Diagnostic):
    """How far out of distribution removals are for a model, compared with the best of them.

    A subclass says how much an input is worth under a removal, `_worth`, and from which loss on a removal
    is `_somewhat_out` or `_badly_out` of distribution.

    Attributes
    ----------
    rows
        One for each input, removal and share; share 0 is the whole input.
    default
        The model's default removal.
    draws, seed
        The number of random masks per input and share, and the seed.
    skipped
        Removals that do not apply to the model or its inputs, each with the reason.
    """

    _somewhat_out: ClassVar[float]
    _badly_out: ClassVar[float]
    _one: ClassVar[str] = "input"

    default: str
    draws: Count
    seed: Seed
    skipped: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def _cells(self) -> dict[tuple[str, float], list[Any]]:
        """The rows by removal and share, in the order of inputs."""
        found: dict[tuple[str, float], list[Any]] = {}
        for row in sorted(self.rows, key=lambda row: row.input):
            found.setdefault((row.removal, row.share), []).append(row)
        return found

    def _values(self, of: str, removal: str, share: float) -> Floats:
        """A field of the rows of one removal and share: one number per input."""
        return np.array([getattr(row, of) for row in self._cells[removal, share]], dtype=np.float64)

    @abstractmethod
    def _worth(self, removal: str, share: float) -> Floats:
        """How good each input is under a removal; more is better."""

    @abstractmethod
    def _shown(self, removal: str, share: float) -> Interval:
        """What tables and charts show of a removal and a share, with a 95% bootstrap interval over inputs."""

    @cached_property
    def removals(self) -> list[str]:
        """The removals checked, in their order."""
        return list(dict.fromkeys(row.removal for row in self.rows))

    @cached_property
    def shares(self) -> list[float]:
        """The shares of features removed, the smallest first."""
        return sorted({row.share for row in self.rows} - {0.0})

    @property
    def half(self) -> float:
        """The share closest to one half."""
        return min(self.shares, key=lambda share: (abs(share - 0.5), share))

    @cached_property
    def _overall(self) -> dict[str, Floats]:
        """By removal, how good each input is, averaged over shares."""
        return {
            removal: np.mean([self._worth(removal, share) for share in self.shares], axis=0)
            for removal in self.removals
        }

    @cached_property
    def best(self) -> str:
        """The best removal over all shares, or the default if that may be as good."""
        found = self._overall
        top = max(found, key=lambda removal: float(found[removal].mean()))
        if self.default in found and not clearly(base.interval(found[top] - found[self.default]), 0.0):
            return self.default
        return top

    @cached_property
    def losses(self) -> dict[str, Interval]:
        """How much worse than the best each removal is, paired by input, over all shares."""
        best = self._overall[self.best]
        return {removal: base.interval(best - found) for removal, found in self._overall.items()}

    def verdict(self, removal: str) -> Verdict:
        """How far out of distribution a removal is, compared to the best one with the same masks.

        ``"badly out"`` if its loss is at least `_badly_out`, ``"somewhat out"`` if at least `_somewhat_out`,
        each with an interval above zero; else ``"in distribution"``, as far as these inputs can tell. Fewer
        than 20 are ``"too few inputs"``.
        """
        if removal not in self.losses:
            raise unknown("removal of this check", removal, self.losses)
        if self.inputs < FEWEST:
            return "too few inputs"
        if not clearly(self.losses[removal], self._somewhat_out):
            return "in distribution"
        return "badly out" if clearly(self.losses[removal], self._badly_out) else "somewhat out"

    @property
    def recommendation(self) -> str:
        """Which removal to use, and what else to do, in words."""
        if self.inputs < FEWEST:
            few = f"One {self._one} tells" if self.inputs == 1 else f"{self.inputs} {self._one}s tell"
            return f"{few} nothing about a removal: check at least {FEWEST} {self._one}s."
        return self._advice()

    @abstractmethod
    def _advice(self) -> str:
        """The recommendation where there are enough inputs for one."""

    def attach(self, explanations: Explained) -> Explained:
        """The explanations, with a warning where their removal was found badly out of distribution."""
        if isinstance(explanations, Explanation):
            return replace(explanations, warnings=self._warnings(explanations))
        warned = [replace(e, warnings=self._warnings(e)) for e in explanations]
        return Explanations(warned, explanations.failures)

    def _warnings(self, explanation: Explanation) -> tuple[str, ...]:
        """The warnings of an explanation, with one more where its removal is badly out of distribution."""
        removal = base.label(explanation.removal, explanation.request.removal_settings)
        if removal not in self.losses:
            logger.warning("The removal %r of an explanation was not checked.", removal)
            return explanation.warnings
        if self.verdict(removal) != "badly out":
            return explanation.warnings
        warning = (
            f"the removal {removal} is badly out of distribution for this model: over {self.inputs} "
            f"{self._one}s {self._loss_in_words(removal)}"
        )
        return tuple(dict.fromkeys((*explanation.warnings, warning)))

    @abstractmethod
    def _loss_in_words(self, removal: str) -> str:
        """How much worse than the best a removal is, as the end of a sentence."""

    def check_fields(self) -> None:
        """Every removal and share must have the same inputs, and share 0 the whole ones."""
        super().check_fields()
        complete = len(self._cells) == len(self.removals) * (len(self.shares) + 1) and bool(self.shares)
        same = len({tuple(row.input for row in own) for own in self._cells.values()}) == 1
        wanted = f"of the same {self._one}s for each removal and share"
        expect(complete and same, "rows", wanted, f"{len(self.rows)} rows")

    def conclusions(self) -> dict[str, Any]:
        """The recommendation, the best removal and the verdicts."""
        verdicts = {removal: self.verdict(removal) for removal in self.removals}
        return {"recommendation": self.recommendation, "best": self.best, "verdicts": verdicts}

    @classmethod
    def _chart(cls, several: Sequence[Self], y_label: str, *, percent: bool) -> base.Chart:
        """The score against the share removed, a line for each removal."""
        lines = []
        for check in several:
            for removal in check.removals:
                shares = (0.0, *check.shares)
                found = {share: check._shown(removal, share) for share in shares}  # noqa: SLF001  our own
                name = f"{removal}, {check.verdict(removal)}"
                lines.append(base.Line(name, tuple(found), tuple(found.values()), removal == check.best))
        first = several[0]
        counted = f"{first.inputs:,} {cls._one}s, {first.draws} masks each, 95% intervals"
        places = sorted({0.0, *(share for check in several for share in check.shares)})
        return base.Chart(
            panels={f"Best: {first.best} · {counted}": tuple(lines)},
            x_label=f"{first.features} removed, %",
            y_label=y_label,
            ticks={share: f"{100 * share:g}" for share in places},
            percent=percent,
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.inputs} {self._one}s: {visible(self.recommendation)}>"


def clearly(found: Interval, least: float) -> bool:
    """Whether a mean is at least `least`, and not by chance."""
    return found.n >= FEWEST and round(found.mean, 9) >= least and found.low > 0


def percent(share: float) -> str:
    """As ``50%``."""
    return f"{100 * share:g}%"
