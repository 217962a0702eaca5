"""Rows that a model answers several times, because its answers are random."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pertinent.array_types import Ints, Masks
from pertinent.config.fingerprints import digest
from pertinent.inputs.rendered_prompt import RenderedPrompt
from pertinent.removals.base import Removal, Rows, group_draws, row_generators

if TYPE_CHECKING:
    from pertinent.models.base import Model


@dataclass(frozen=True)
class RepeatedRows(Removal):
    """A removal each of whose rows gets several sampled answers.

    The draws are the answers, so the jackknife over draws adds their variance to the standard errors. If the
    removal has several draws itself, all answers to a draw are in one group.

    Attributes
    ----------
    removal
        The removal.
    samples
        Answers to each row.
    """

    removal: Removal
    samples: int

    def __post_init__(self) -> None:
        """Take the name of the removal."""
        for name in ("name", "summary", "inputs", "hides", "opens"):
            object.__setattr__(self, name, getattr(self.removal, name))

    @property
    def draws(self) -> int:
        """Return the number of answers for each mask."""
        return self.removal.draws * self.samples

    @property
    def is_random(self) -> bool:
        """Return that the answers depend on the seed."""
        return True

    @property
    def constant(self) -> float | None:
        """Return the removal's constant."""
        return self.removal.constant

    @property
    def groups(self) -> tuple[Ints, ...]:
        """Return the answers of each jackknife group."""
        index = np.arange(self.draws).reshape(-1, self.samples)
        return tuple(index[group].ravel() for group in self.removal.groups) or group_draws(self.draws)

    @property
    def fingerprint(self) -> bytes:
        """Return a digest of the removal and the number of answers."""
        return digest(self.removal.fingerprint, self.samples)

    def settings(self, model: Model) -> dict[str, Any]:
        """Return the removal's settings."""
        return self.removal.settings(model)

    def check(self, input: Any) -> None:
        """Raise a `SettingError` if the removal does not support the input."""
        self.removal.check(input)

    def __call__(self, input: Any, masks: Masks, seed: int) -> Rows:
        """Return the rows of each mask, several times with different seeds."""
        rows: list[RenderedPrompt] = self.removal(input, masks, seed)  # type: ignore[assignment]
        generators = row_generators(input, masks, seed, "answers")
        seeds = np.concatenate([generator.integers(2**31 - 1, size=self.draws) for generator in generators])
        repeated = [row for row in rows for _ in range(self.samples)]
        return [replace(row, answer_seed=s) for row, s in zip(repeated, seeds.tolist(), strict=True)]
