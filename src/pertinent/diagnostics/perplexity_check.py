"""Result of `check_removal` for language models: the perplexity of prompts after each removal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pertinent.array_types import Floats
from pertinent.config.serialization import Index
from pertinent.config.settings import ShareOrZero
from pertinent.diagnostics import base
from pertinent.diagnostics.compared_removals import ComparedRemovals
from pertinent.stats import Interval


@dataclass(frozen=True)
class PerplexityRow:
    """Surprise of a language model, in nats per token, at a prompt without a share of its features.

    It is the mean of −log p over the kept tokens, each given the preceding tokens that the model reads, and
    over random masks.
    """

    input: Index
    removal: str
    share: ShareOrZero
    surprise: float


@base.diagnostics.register("perplexity-check")
@dataclass(frozen=True, kw_only=True, repr=False)
class PerplexityCheck(ComparedRemovals):
    """How far out of distribution removals are for a language model, by the perplexity of the rest.

    A prompt with features removed is harder to predict for two reasons: the removed features carried
    information, and the remaining text reads unnaturally. All removals get equal masks, and the same tokens
    are counted, so the *difference between removals* is only due to the removals; verdicts depend only on
    that difference.

    A removal whose prompts surprise the model by 0.1 or 0.5 nats per token more than those of the best
    removal (a perplexity that is 11% or 65% higher) is somewhat or badly out of distribution.

    Attributes
    ----------
    rows
        One row for each prompt, removal and share; share 0 is the whole prompt.
    default
        Default removal of the model.
    draws, seed
        Number of random masks per prompt and share, and the seed.
    skipped
        Removals that do not apply to the model or its prompts, with reasons.
    """

    _input_noun = "prompt"
    _somewhat_out, _badly_out = 0.1, 0.5
    _score_format = (".3g", 1.0)

    rows: tuple[PerplexityRow, ...]

    def _quality(self, removal: str, share: float) -> Floats:
        return -self._values("surprise", removal, share)

    def _score(self, removal: str, share: float) -> Interval:
        """Return the perplexity of the remaining prompt: e to the mean surprise."""
        surprise = base.interval(self._values("surprise", removal, share))
        mean, low, high = np.exp([surprise.mean, surprise.low, surprise.high]).tolist()
        return Interval(mean, low, high, surprise.n)

    def _facts(self) -> str:
        half, whole = (self.score(self.best, share).mean for share in (self.half, 0.0))
        return (
            f"the perplexity of the remaining text is {half:.3g}, compared with {whole:.3g} for whole prompts"
        )

    def _loss(self, removal: str) -> str:
        return (
            f"the remaining text surprises the model by {self.losses[removal]} nats per token more with "
            f"{removal} than with {self.best}"
        )

    def _captions(self) -> Iterator[str]:
        whole, _ = base.cell(self.score(self.best, 0.0), *self._score_format)
        yield f"Perplexity of the kept tokens by share of {self.features} removed (whole prompts: {whole})."
        yield from super()._captions()

    def chart(self) -> base.Chart:
        """Return the perplexity against the share of removed features, with a line for each removal."""
        return self._chart("perplexity of the remaining text", percent=False)
