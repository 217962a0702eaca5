"""The result of `check_removal` for language models: how surprised a model is by what is left of prompts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from pertinent.array_types import Floats
from pertinent.control_characters import visible
from pertinent.decoding import Index, expect
from pertinent.diagnostics import base
from pertinent.diagnostics.removal_check import TONES, Explained, Verdict, clearly, percent
from pertinent.errors import unknown
from pertinent.intervals import FEWEST, Interval
from pertinent.results.explanation import Explanation, Explanations
from pertinent.settings import Count, Seed, ShareOrZero

SOMEWHAT_OUT, BADLY_OUT = 0.1, 0.5
"""A removal whose prompts surprise the model by so many nats per token more than those of the best removal is
somewhat or badly out of distribution: a perplexity that is 11% or 65% higher."""


@dataclass(frozen=True)
class Surprised:
    """The surprise of a model, in nats per token, at a prompt without a share of its features.

    It is the mean of −log p over the tokens that are kept, each given what the model reads before it, and
    over random masks.
    """

    input: Index
    removal: str
    share: ShareOrZero
    surprise: float


@dataclass(frozen=True, kw_only=True)
class PerplexityCheck(base.Diagnostic):
    """How far prompts with parts removed are from what a language model knows.

    What is left of a prompt is harder to predict for two reasons: what was removed told something about it,
    and it no longer reads like a text. All removals get the same masks, and the same tokens are counted, so
    the *difference between removals* is due to the removals alone; verdicts are based only on that.

    Attributes
    ----------
    rows
        One for each prompt, removal and share; share 0 is the whole prompt.
    default
        The model's default removal.
    draws, seed
        The number of random masks per prompt and share, and the seed.
    skipped
        Removals that do not apply to the model or its prompts, each with the reason.
    """

    kind = "perplexity check"

    rows: tuple[Surprised, ...]
    default: str
    draws: Count
    seed: Seed
    skipped: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def _cells(self) -> dict[tuple[str, float], Floats]:
        """The surprise at each prompt by removal and share, in the order of prompts."""
        found: dict[tuple[str, float], list[float]] = {}
        for row in sorted(self.rows, key=lambda row: row.input):
            found.setdefault((row.removal, row.share), []).append(row.surprise)
        return {key: np.array(own) for key, own in found.items()}

    @cached_property
    def removals(self) -> list[str]:
        """The removals checked, in their order."""
        return list(dict.fromkeys(row.removal for row in self.rows))

    @cached_property
    def shares(self) -> list[float]:
        """The shares of features removed, the smallest first."""
        return sorted({row.share for row in self.rows} - {0.0})

    @cached_property
    def _overall(self) -> dict[str, Floats]:
        """By removal, the surprise at each prompt, averaged over shares."""
        return {
            own: np.mean([self._cells[own, share] for share in self.shares], axis=0) for own in self.removals
        }

    @cached_property
    def best(self) -> str:
        """The removal of the least surprise over all shares, or the default if that may be as good."""
        found = self._overall
        top = min(found, key=lambda removal: float(found[removal].mean()))
        if self.default in found and not clearly(base.interval(found[self.default] - found[top]), 0.0):
            return self.default
        return top

    @cached_property
    def losses(self) -> dict[str, Interval]:
        """How many nats per token more than the best each removal surprises, paired by prompt."""
        best = self._overall[self.best]
        return {removal: base.interval(found - best) for removal, found in self._overall.items()}

    def perplexity(self, removal: str, share: float) -> Interval:
        """The perplexity of what is left, e to the surprise, with a 95% bootstrap interval over prompts."""
        found = base.interval(self._cells[removal, share])
        mean, low, high = np.exp([found.mean, found.low, found.high]).tolist()
        return Interval(mean, low, high, found.n)

    def verdict(self, removal: str) -> Verdict:
        """How far out of distribution a removal is, compared to the best one with the same masks.

        ``"badly out"`` if it surprises by at least 0.5 nats per token more, ``"somewhat out"`` if by at least
        0.1, each with an interval above zero; fewer than 20 prompts are ``"too few inputs"``.
        """
        if removal not in self.losses:
            raise unknown("removal of this check", removal, self.losses)
        if self.inputs < FEWEST:
            return "too few inputs"
        if not clearly(self.losses[removal], SOMEWHAT_OUT):
            return "in distribution"
        return "badly out" if clearly(self.losses[removal], BADLY_OUT) else "somewhat out"

    @property
    def half(self) -> float:
        """The share closest to one half."""
        return min(self.shares, key=lambda share: (abs(share - 0.5), share))

    @property
    def recommendation(self) -> str:
        """Which removal to use: a sentence."""
        if self.inputs < FEWEST:
            few = "One prompt tells" if self.inputs == 1 else f"{self.inputs} prompts tell"
            return f"{few} nothing about a removal: check at least {FEWEST} prompts."
        left, whole = (self.perplexity(self.best, share).mean for share in (self.half, 0.0))
        found = (
            f"with {percent(self.half)} of the {self.features} removed, the perplexity of what is left is "
            f"{left:.3g} against {whole:.3g} of whole prompts"
        )
        if self.best == self.default:
            return f"Use {self.best}, the model's default: {found}, and no other removal is clearly better."
        return f"Use {self.best}, which surprises the model least: {found}."

    def attach(self, explanations: Explained) -> Explained:
        """The explanations, with a warning where their removal was found badly out of distribution."""
        if isinstance(explanations, Explanation):
            return replace(explanations, warnings=self._warnings(explanations))
        warned = [replace(e, warnings=self._warnings(e)) for e in explanations]
        return Explanations(warned, explanations.failures)

    def _warnings(self, explanation: Explanation) -> tuple[str, ...]:
        removal = base.label(explanation.removal, explanation.removal_settings)
        if removal not in self.losses or self.verdict(removal) != "badly out":
            return explanation.warnings
        warning = (
            f"the removal {removal} is badly out of distribution for this model: over {self.inputs} prompts "
            f"what is left surprises it by {self.losses[removal]} nats per token more than with {self.best}"
        )
        return tuple(dict.fromkeys((*explanation.warnings, warning)))

    def check_fields(self) -> None:
        """Every removal and share must have the same number of prompts."""
        super().check_fields()
        complete = len(self._cells) == len(self.removals) * (len(self.shares) + 1) and bool(self.shares)
        same = len({len(own) for own in self._cells.values()}) == 1
        wanted = "of the same prompts for each removal and share"
        expect(complete and same, "rows", wanted, f"{len(self.rows)} rows")

    def conclusions(self) -> dict[str, Any]:
        """The recommendation, the best removal and the verdicts."""
        verdicts = {removal: self.verdict(removal) for removal in self.removals}
        return {"recommendation": self.recommendation, "best": self.best, "verdicts": verdicts}

    def table(self) -> base.DiagnosticTable:
        """A row for each removal, with the perplexity at each share."""
        rows = []
        for removal in self.removals:
            verdict = self.verdict(removal)
            cells = tuple(base.cell(self.perplexity(removal, share), ".3g") for share in self.shares)
            rows.append(base.TableRow(removal, cells, verdict, TONES.get(verdict, ""), removal == self.best))
        return base.DiagnosticTable(
            question="Is removal in distribution?",
            columns=("removal", *map(percent, self.shares)),
            rows=tuple(rows),
            notes=tuple(self._notes()),
            answer=self.recommendation,
        )

    def _notes(self) -> Iterator[str]:
        whole, _ = base.cell(self.perplexity(self.best, 0.0), ".3g")
        yield (
            f"Perplexity of the tokens that are kept by share of {self.features} removed (whole prompts: "
            f"{whole}). {self.inputs:,} prompt{'' if self.inputs == 1 else 's'}, {self.draws} random masks "
            "each, the same for every removal; 95% bootstrap intervals. Differences between removals are due "
            "to prompts unlike those that the model knows."
        )
        yield from (f"Not checked: {removal}: {reason}" for removal, reason in self.skipped.items())

    @classmethod
    def chart(cls, several: Sequence[PerplexityCheck]) -> base.Chart:
        """The perplexity against the share removed, a line for each removal."""
        lines = []
        for check in several:
            for removal in check.removals:
                found = {share: check.perplexity(removal, share) for share in (0.0, *check.shares)}
                name = f"{removal}, {check.verdict(removal)}"
                lines.append(base.Line(name, tuple(found), tuple(found.values()), removal == check.best))
        first = several[0]
        title = f"Best: {first.best} · {first.inputs:,} prompts, {first.draws} masks each, 95% intervals"
        shares = sorted({0.0, *(share for check in several for share in check.shares)})
        return base.Chart(
            panels={title: tuple(lines)},
            x_label=f"{first.features} removed, %",
            y_label="perplexity of what is left",
            ticks={share: f"{100 * share:g}" for share in shares},
        )

    def __repr__(self) -> str:
        return f"<PerplexityCheck of {self.inputs} prompts: {visible(self.recommendation)}>"
