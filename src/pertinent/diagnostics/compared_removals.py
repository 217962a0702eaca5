"""Base class of removal checks, which compare removals with equal masks on the same inputs."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np

from pertinent.array_types import Floats
from pertinent.config.serialization import expect
from pertinent.config.settings import Count, Seed
from pertinent.diagnostics import base
from pertinent.errors import unknown
from pertinent.number_format import count
from pertinent.printable import visible
from pertinent.results.explanation import Explanation, Explanations
from pertinent.stats import FEWEST, Interval

logger = logging.getLogger(__name__)

Verdict = Literal["in distribution", "somewhat out", "badly out", "too few inputs"]
ExplanationsT = TypeVar("ExplanationsT", Explanation, Explanations)

_TONES: Mapping[str, Literal["", "quiet", "caution", "alarm"]] = {
    "somewhat out": "caution",
    "badly out": "alarm",
    "too few inputs": "quiet",
}


@dataclass(frozen=True, kw_only=True, repr=False)
class ComparedRemovals(base.Diagnostic):
    """How far out of distribution removals are for a model, compared with the best removal.

    Attributes
    ----------
    rows
        One row for each input, removal and share; share 0 is the whole input. Inputs on which any removal
        failed are missing.
    default
        Default removal of the model.
    draws, seed
        Number of random masks per input and share, and the seed.
    skipped
        Removals that do not apply to the model or its inputs, with reasons.
    """

    _input_noun: ClassVar[str] = "input"
    _somewhat_out: ClassVar[float]
    _badly_out: ClassVar[float]
    _score_format: ClassVar[tuple[str, float]]
    """Format of a score in the table, and the factor it is multiplied by."""

    default: str
    draws: Count
    seed: Seed
    skipped: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def _cells(self) -> dict[tuple[str, float], list[Any]]:
        """Return the rows by removal and share, in the order of the inputs."""
        cells: dict[tuple[str, float], list[Any]] = {}
        for row in sorted(self.rows, key=lambda row: row.input):
            cells.setdefault((row.removal, row.share), []).append(row)
        return cells

    def _values(self, name: str, removal: str, share: float) -> Floats:
        """Return a field of the rows of one removal and share, (inputs,)."""
        return np.array([getattr(row, name) for row in self._cells[removal, share]], dtype=np.float64)

    @abstractmethod
    def _quality(self, removal: str, share: float) -> Floats:
        """Return the quality of each input under a removal (inputs,); higher is better."""

    @abstractmethod
    def _score(self, removal: str, share: float) -> Interval: ...

    @cached_property
    def _scores(self) -> dict[tuple[str, float], Interval]:
        return {key: self._score(*key) for key in self._cells}

    def score(self, removal: str, share: float) -> Interval:
        """Return the mean score of a removal with its 95% bootstrap interval; share 0 is the whole input."""
        return self._scores[removal, share]

    @cached_property
    def removals(self) -> list[str]:
        """Return the checked removals, in order."""
        return list(dict.fromkeys(row.removal for row in self.rows))

    @cached_property
    def shares(self) -> list[float]:
        """Return the shares of removed features in ascending order."""
        return sorted({row.share for row in self.rows} - {0.0})

    @property
    def half(self) -> float:
        """Return the share closest to one half."""
        return min(self.shares, key=lambda share: (abs(share - 0.5), share))

    @cached_property
    def _overall(self) -> dict[str, Floats]:
        """Return each input's quality averaged over shares, by removal."""
        return {
            removal: np.mean([self._quality(removal, share) for share in self.shares], axis=0)
            for removal in self.removals
        }

    @cached_property
    def best(self) -> str:
        """Return the best removal over all shares, or the default if it may be equally good."""
        overall = self._overall
        top = max(overall, key=lambda removal: float(overall[removal].mean()))
        if self.default in overall and not clearly(base.interval(overall[top] - overall[self.default]), 0.0):
            return self.default
        return top

    @cached_property
    def losses(self) -> dict[str, Interval]:
        """Return each removal's loss relative to the best, paired by input, over all shares."""
        best = self._overall[self.best]
        return {removal: base.interval(best - quality) for removal, quality in self._overall.items()}

    def verdict(self, removal: str) -> Verdict:
        """Return how far out of distribution a removal is, compared with the best removal on the same masks.

        ``"badly out"`` if its loss is at least the check's larger threshold, ``"somewhat out"`` if at least
        the smaller, each with an interval above zero; else ``"in distribution"``. ``"too few inputs"`` with
        fewer than 20 inputs.
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
        """Return advice on which removal to use, and any further advice."""
        if self.inputs < FEWEST:
            inputs = count(self.inputs, self._input_noun)
            return f"{inputs}: too few for a conclusion about removals. Check at least {FEWEST}."
        return f"{self._choice()} {self._further_advice()}".rstrip()

    def _choice(self) -> str:
        facts = f"with {percent(self.half)} of the {self.features} removed, {self._facts()}"
        if len(self.removals) == 1:
            return f"Only {self.best} was checked: {facts}."
        if self.best == self.default:
            return f"Use {self.best}, the model's default: {facts}, and no other removal is clearly better."
        loss = f"; over all shares, {self._loss(self.default)}" if self.default in self.losses else ""
        return f"Use {self.best}: {facts}{loss}."

    def _further_advice(self) -> str:
        return ""

    @abstractmethod
    def _facts(self) -> str:
        """Return a clause that compares the score at the share `half` with that of whole inputs."""

    @abstractmethod
    def _loss(self, removal: str) -> str:
        """Return a clause that compares a removal with the best one."""

    def attach(self, explanations: ExplanationsT) -> ExplanationsT:
        """Return the explanations, with a warning if their removal is badly out of distribution."""
        if isinstance(explanations, Explanation):
            return replace(explanations, warnings=self._warnings(explanations))
        with_warnings = [replace(e, warnings=self._warnings(e)) for e in explanations]
        return Explanations(with_warnings, explanations.failures)

    def _warnings(self, explanation: Explanation) -> tuple[str, ...]:
        """Return the warnings of an explanation, including one about a removal that is badly out."""
        removal = base.label(explanation.removal, explanation.request.removal_settings)
        if removal not in self.losses:
            logger.warning("The removal %r of an explanation was not checked.", removal)
            return explanation.warnings
        if self.verdict(removal) != "badly out":
            return explanation.warnings
        warning = (
            f"the removal {removal} is badly out of distribution for this model: over "
            f"{count(self.inputs, self._input_noun)}, {self._loss(removal)}"
        )
        return tuple(dict.fromkeys((*explanation.warnings, warning)))

    def check_fields(self) -> None:
        """Raise an `InputError` unless all removals and shares, including 0, have the same inputs."""
        super().check_fields()
        complete = len(self._cells) == len(self.removals) * (len(self.shares) + 1) and bool(self.shares)
        same = len({tuple(row.input for row in rows) for rows in self._cells.values()}) == 1
        must = f"of the same {self._input_noun}s for each removal and share"
        expect(complete and same, "rows", must, f"{len(self.rows)} rows")

    def conclusions(self) -> dict[str, Any]:
        """Return the recommendation, the best removal and the verdicts."""
        verdicts = {removal: self.verdict(removal) for removal in self.removals}
        return {"recommendation": self.recommendation, "best": self.best, "verdicts": verdicts}

    def table(self) -> base.DiagnosticTable:
        """Return a row for each removal, with the score at each share."""
        rows = []
        for removal in self.removals:
            verdict = self.verdict(removal)
            scores = (base.cell(self.score(removal, share), *self._score_format) for share in self.shares)
            cells = (*scores, *self._extra_cells(removal).values())
            rows.append(base.TableRow(removal, cells, verdict, _TONES.get(verdict, ""), removal == self.best))
        skipped = (f"Not checked: {removal}: {reason}" for removal, reason in self.skipped.items())
        return base.DiagnosticTable(
            question="Is removal in distribution?",
            columns=("removal", *map(percent, self.shares), *self._extra_cells(self.best)),
            rows=tuple(rows),
            notes=(" ".join(self._captions()), *skipped),
            answer=self.recommendation,
        )

    def _extra_cells(self, removal: str) -> dict[str, tuple[str, str]]:
        """Return additional cells of a row, by heading."""
        return {}

    def _captions(self) -> Iterator[str]:
        """Yield sentences on how to read the table."""
        yield (
            f"{count(self.inputs, self._input_noun)}, {self.draws} random masks each, the same for "
            "every removal; 95% bootstrap intervals. A worse score is due to lost information and "
            "distribution shift; differences between removals are only due to shift."
        )

    def _chart(self, y_label: str, *, percent: bool) -> base.Chart:
        """Return the score against the share of removed features, with a line for each removal."""
        shares = (0.0, *self.shares)
        lines = [
            base.Line(
                f"{removal}, {self.verdict(removal)}",
                {share: self.score(removal, share) for share in shares},
                removal == self.best,
            )
            for removal in self.removals
        ]
        counts = f"{count(self.inputs, self._input_noun)}, {self.draws} masks each, 95% intervals"
        return base.Chart(
            panels={f"Best: {self.best} · {counts}": tuple(lines)},
            x_label=f"{self.features} removed, %",
            y_label=y_label,
            ticks={share: f"{100 * share:g}" for share in shares},
            percent=percent,
        )

    def __repr__(self) -> str:
        inputs = count(self.inputs, self._input_noun)
        return f"<{type(self).__name__} of {inputs}: {visible(self.recommendation)}>"


def clearly(interval: Interval, least: float) -> bool:
    """Return whether a mean is at least `least` and its interval is above zero."""
    return interval.n >= FEWEST and round(interval.mean, 9) >= least and interval.low > 0


def percent(share: float) -> str:
    """Format a share, as ``50%``."""
    return f"{100 * share:g}%"
