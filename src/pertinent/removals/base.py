"""Base class and registry of removals, and the rows that they return."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import numpy as np

from pertinent.array_types import Array, Ints, Masks
from pertinent.config.fingerprints import digest, generator
from pertinent.config.registry import Registry
from pertinent.config.settings import Settings, changed_settings
from pertinent.errors import SettingError
from pertinent.inputs.base import Input
from pertinent.inputs.modality import modalities
from pertinent.inputs.rendered_prompt import RenderedPrompt
from pertinent.inputs.text import Text, TextInput
from pertinent.inputs.tokens import Tokens
from pertinent.masks import mask_bytes

if TYPE_CHECKING:
    from pertinent.models.base import Model


NOT_KEPT = "its own"
"""Placeholder for a setting that cannot be saved in a file."""


@dataclass(frozen=True, eq=False)
class TokenRows:
    """Rows of one tokenised text for a transformer.

    Attributes
    ----------
    tokens
        Tokens of the text, of which every row is a variant.
    attend
        Boolean mask of the tokens that each row attends to (rows, length).
    ids
        Token ids (rows, length); ``None`` if they equal those of the text.
    zeroed
        Boolean mask of the word embeddings that are set to zero (rows, length), or ``None``.
    renumber
        Whether masked tokens are dropped and the others get consecutive positions.
    """

    tokens: Tokens
    attend: Masks
    ids: Ints | None = None
    zeroed: Masks | None = None
    renumber: bool = False

    def __getitem__(self, rows: slice) -> TokenRows:
        """Return a slice of the rows."""
        ids = None if self.ids is None else self.ids[rows]
        zeroed = None if self.zeroed is None else self.zeroed[rows]
        return replace(self, attend=self.attend[rows], ids=ids, zeroed=zeroed)

    def changed(self) -> Masks:
        """Return a boolean mask of replaced tokens and zeroed embeddings (rows, length)."""
        changed = np.zeros_like(self.attend) if self.ids is None else self.ids != self.tokens.ids
        return changed if self.zeroed is None else changed | self.zeroed

    def whole_row(self) -> int | None:
        """Return the index of the first row without removed tokens, or ``None``."""
        rows = np.flatnonzero(self.attend.all(axis=1) & ~self.changed().any(axis=1))
        return int(rows[0]) if len(rows) else None

    def windows(self) -> list[TokenRows]:
        """Return the rows of each window of the text, or a list of only these rows for a single window."""
        if not self.tokens.lengths:
            return [self]
        return [
            TokenRows(
                tokens,
                self.attend[:, window],
                None if self.ids is None else self.ids[:, window],
                None if self.zeroed is None else self.zeroed[:, window],
                self.renumber,
            )
            for window, tokens in self.tokens.windows
        ]


Rows: TypeAlias = TokenRows | list[Text] | list[RenderedPrompt] | Array

MOST_GROUPS = 10
"""Largest number of groups of draws in the jackknife that estimates the error due to the draws."""


@dataclass(frozen=True)
class Removal(Settings, ABC):
    """A pure function from an input and masks to the rows that the model reads.

    It returns `draws` rows for each mask, in the order of the masks; ``True`` keeps a feature. Random draws
    depend only on (seed, input, mask), so repeated questions get identical answers. The engine averages the
    predictions over the draws of a mask.
    """

    name: ClassVar[str]
    inputs: ClassVar[type[Input]]
    """The class of inputs that it supports, subclasses included."""
    summary: ClassVar[str]
    hides: ClassVar[Literal["nothing", "tokens", "tokens and positions"]] = "nothing"
    opens: ClassVar[tuple[str, ...]] = ()
    """Settings that name a file or folder, which are not opened when they come from a saved explanation."""

    @property
    def draws(self) -> int:
        """Return the number of rows per mask: the setting `samples`, or 1."""
        return int(getattr(self, "samples", 1))

    @property
    def is_random(self) -> bool:
        """Return whether the result depends on the seed."""
        return False

    @property
    def undrawn(self) -> float:
        """Return the share of distinct values that are not drawn; 1 for draws with replacement."""
        return 1.0

    @property
    def constant(self) -> float | None:
        """Return the value that replaces all removed values, or ``None`` if it varies."""
        return None

    @property
    def groups(self) -> tuple[Ints, ...]:
        """Return the indices of the draws of each jackknife group; empty without several random draws."""
        return group_draws(self.draws) if self.is_random and self.draws > 1 else ()

    @cached_property
    def fingerprint(self) -> bytes:
        """Return a digest of the name and settings."""
        return digest(self.name, {f.name: getattr(self, f.name) for f in fields(self)})

    def bind(self, model: Model) -> Removal:
        """Return this removal with the data that it needs from the model."""
        return self

    def settings(self, model: Model) -> dict[str, Any]:
        """Return the settings that recreate this removal when bound to the model."""
        return changed_settings(self)

    @classmethod
    def kinds(cls) -> list[str]:
        """Return the kinds of input that it supports."""
        return [
            kind for kind, modality in modalities.all().items() if issubclass(modality.input_type, cls.inputs)
        ]

    def check(self, input: Any) -> None:
        """Raise a `SettingError` if this removal does not support the input."""
        if not isinstance(input, self.inputs):
            raise SettingError(
                f"The removal {self.name!r} supports {' and '.join(self.kinds())}, but the input is "
                f"{input.kind}; choose from {', '.join(removals.for_kind(input.kind))}."
            )

    @abstractmethod
    def __call__(self, input: Any, masks: Masks, seed: int) -> Rows:
        """Return `draws` rows for each mask; `input` is of the class `inputs`."""


class Removals(Registry[Removal]):
    """Registry of removals."""

    def for_kind(self, kind: str) -> list[str]:
        """Return the names of the removals for a kind of input."""
        return [name for name, cls in self.all().items() if kind in cls.kinds()]


removals = Removals("removal", "pertinent.removals")


@lru_cache
def group_draws(draws: int) -> tuple[Ints, ...]:
    """Return the indices of the draws of each of at most `MOST_GROUPS` jackknife groups."""
    # Shuffled, because draws may be in the order of a table.
    shuffled = np.random.default_rng(0).permutation(draws)
    return tuple(np.array_split(shuffled, min(draws, MOST_GROUPS)))


def kept_tokens(input: TextInput, masks: Masks) -> Masks:
    """Return masks over tokens (masks, length) for masks over features; fixed tokens are always kept."""
    assert input.tokens is not None
    feature = input.tokens.feature  # −1 for a fixed token
    kept = masks.take(feature, axis=1)
    return np.maximum(kept, feature < 0, out=kept)  # soft masks are supported


def row_generators(input: Input, masks: Masks, seed: int, name: str) -> list[np.random.Generator]:
    """Return a generator for each mask, seeded by the seed, the removal, the input and the mask."""
    return [generator(seed, name, input.fingerprint, key) for key in mask_bytes(masks)]
