"""A removal defines what an input looks like without some of its features."""

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
"""Saved in place of a setting that cannot be stored in a file."""


@dataclass(frozen=True, eq=False)
class TokenRows:
    """Rows of one tokenised text for a transformer.

    Attributes
    ----------
    tokens
        The tokens of the text; every row is a variant of them.
    attend
        Which tokens each row may attend to (rows, length).
    ids
        Token ids (rows, length) where they differ from the text's own.
    zeroed
        Which word embeddings are set to zero, if any (rows, length).
    renumber
        Whether tokens that are not attended to are cut out and the rest get new positions.
    """

    tokens: Tokens
    attend: Masks
    ids: Ints | None = None
    zeroed: Masks | None = None
    renumber: bool = False

    def __getitem__(self, some: slice) -> TokenRows:
        """Some of the rows."""
        ids = None if self.ids is None else self.ids[some]
        zeroed = None if self.zeroed is None else self.zeroed[some]
        return replace(self, attend=self.attend[some], ids=ids, zeroed=zeroed)

    def changed(self) -> Masks:
        """Which tokens are not the text's own: replaced, or with an embedding of zero (rows, length)."""
        changed = np.zeros_like(self.attend) if self.ids is None else self.ids != self.tokens.ids
        return changed if self.zeroed is None else changed | self.zeroed

    def whole_row(self) -> int | None:
        """The number of the first row that is the whole text, if there is one."""
        rows = np.flatnonzero(self.attend.all(axis=1) & ~self.changed().any(axis=1))
        return int(rows[0]) if len(rows) else None

    def windows(self) -> list[TokenRows]:
        """The rows of each window of the text; the rows themselves if it is read as a whole."""
        if not self.tokens.lengths:
            return [self]
        return [
            TokenRows(
                tokens,
                self.attend[:, own],
                None if self.ids is None else self.ids[:, own],
                None if self.zeroed is None else self.zeroed[:, own],
                self.renumber,
            )
            for own, tokens in self.tokens.windows
        ]


Rows: TypeAlias = TokenRows | list[Text] | list[RenderedPrompt] | Array

MOST_GROUPS = 10
"""The largest number of groups of draws; each is left out in turn to estimate the error due to the draws."""


@dataclass(frozen=True)
class Removal(Settings, ABC):
    """Pure and row-paired: one row (or `draws` rows) for each mask, ``True`` keeps.

    Random draws depend only on (seed, input, mask), so the same question always gets the same
    answer. A removal with several draws returns them mask by mask; the engine averages.
    """

    name: ClassVar[str]
    inputs: ClassVar[type[Input]]
    """The class of inputs that it can be applied to; subclasses, too."""
    summary: ClassVar[str]
    hides: ClassVar[Literal["nothing", "tokens", "tokens and positions"]] = "nothing"
    opens: ClassVar[tuple[str, ...]] = ()
    """Settings that name a file or folder; read from a saved explanation, they are not opened."""

    @property
    def draws(self) -> int:
        """Number of rows per mask: the setting `samples`, if it has one."""
        return int(getattr(self, "samples", 1))

    @property
    def is_random(self) -> bool:
        """Whether the result depends on the seed."""
        return False

    @property
    def undrawn(self) -> float:
        """Fraction of the distinct values that are not drawn; 1 if draws are made with replacement."""
        return 1.0

    @property
    def constant(self) -> float | None:
        """The value that it fills in, if that is the same for all removed values."""
        return None

    @property
    def groups(self) -> tuple[Ints, ...]:
        """The indices of the draws of each group; no groups if nothing is random or there is one draw."""
        return _groups(self.draws) if self.is_random and self.draws > 1 else ()

    @cached_property
    def fingerprint(self) -> bytes:
        """A digest of everything that its result depends on, besides input, mask and seed."""
        return digest(self.name, {f.name: getattr(self, f.name) for f in fields(self)})

    def bind(self, model: Model) -> Removal:
        """This removal, with the data that it needs from the model."""
        return self

    def settings(self, model: Model) -> dict[str, Any]:
        """The settings from which, together with the model, this removal can be recreated."""
        return changed_settings(self)

    @classmethod
    def kinds(cls) -> list[str]:
        """The kinds of input that it can be applied to."""
        return [kind for kind, own in modalities.all().items() if issubclass(own.input_type, cls.inputs)]

    def check(self, input: Any) -> None:
        """Raise a `SettingError` if this removal cannot be applied to the input."""
        if not isinstance(input, self.inputs):
            raise SettingError(
                f"The removal {self.name!r} is for {' and '.join(self.kinds())}, but the input is "
                f"{input.kind}; choose from {', '.join(removals.for_kind(input.kind))}."
            )

    @abstractmethod
    def __call__(self, input: Any, masks: Masks, seed: int) -> Rows:
        """The rows that the model will see; `input` is of the class `inputs`."""


class Removals(Registry[Removal]):
    """The registered removals."""

    def for_kind(self, kind: str) -> list[str]:
        """The names of the removals for a kind of input."""
        return [name for name, cls in self.all().items() if kind in cls.kinds()]


removals = Removals("removal", "pertinent.removals")


@lru_cache
def _groups(draws: int) -> tuple[Ints, ...]:
    """Groups of nearly equal size; shuffled, because draws may be in the order of a table."""
    shuffled = np.random.default_rng(0).permutation(draws)
    return tuple(np.array_split(shuffled, min(draws, MOST_GROUPS)))


def kept_tokens(input: TextInput, masks: Masks) -> Masks:
    """Masks over features as masks over tokens; fixed tokens are always kept."""
    assert input.tokens is not None
    feature = input.tokens.feature  # −1 for a fixed token
    kept = masks.take(feature, axis=1)
    return np.maximum(kept, feature < 0, out=kept)  # masks may be soft: shares that are kept


def row_generators(input: Input, masks: Masks, seed: int, name: str) -> list[np.random.Generator]:
    """One generator per mask, which depends only on the seed, the removal, the input and the mask."""
    return [generator(seed, name, input.fingerprint, key) for key in mask_bytes(masks)]
