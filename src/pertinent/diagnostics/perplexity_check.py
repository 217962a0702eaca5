"""The result of `check_removal` for language models: how surprised a model is by what is left of prompts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pertinent.array_types import Floats
from pertinent.config.serialization import Index
from pertinent.config.settings import ShareOrZero
from pertinent.diagnostics import base
from pertinent.diagnostics.compared_removals import TONES, ComparedRemovals, percent
from pertinent.stats import Interval

SOMEWHAT_OUT, BADLY_OUT = 0.1, 0.5
"""A removal whose prompts surprise the model by so many nats per token more than those of the best removal is
somewhat or badly out of distribution: a perplexity that is 11% or 65% higher."""


@dataclass(frozen=True)
class PerplexityRow:
    """The surprise of a model, in nats per token, at a prompt without a share of its features.

    It is the mean of −log p over the tokens that are kept, each given what the model reads before it, and
    over random masks.
    """

    input: Index
    removal: str
    share: ShareOrZero
    surprise: float


@base.diagnostics.register("perplexity-check")
@dataclass(frozen=True, kw_only=True, repr=False)
class PerplexityCheck(ComparedRemovals):
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

    _somewhat_out, _badly_out = SOMEWHAT_OUT, BADLY_OUT
    _one = "prompt"

    rows: tuple[PerplexityRow, ...]

    def _worth(self, removal: str, share: float) -> Floats:
        return -self._values("surprise", removal, share)

    def perplexity(self, removal: str, share: float) -> Interval:
        """The perplexity of what is left, e to the surprise, with a 95% bootstrap interval over prompts."""
        found = base.interval(self._values("surprise", removal, share))
        mean, low, high = np.exp([found.mean, found.low, found.high]).tolist()
        return Interval(mean, low, high, found.n)

    def _shown(self, removal: str, share: float) -> Interval:
        return self.perplexity(removal, share)

    def _advice(self) -> str:
        left, whole = (self.perplexity(self.best, share).mean for share in (self.half, 0.0))
        found = (
            f"with {percent(self.half)} of the {self.features} removed, the perplexity of what is left is "
            f"{left:.3g} against {whole:.3g} of whole prompts"
        )
        if self.best == self.default:
            return f"Use {self.best}, the model's default: {found}, and no other removal is clearly better."
        return f"Use {self.best}, which surprises the model least: {found}."

    def _loss_in_words(self, removal: str) -> str:
        return (
            f"what is left surprises it by {self.losses[removal]} nats per token more than with {self.best}"
        )

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
        return cls._chart(several, "perplexity of what is left", percent=False)
