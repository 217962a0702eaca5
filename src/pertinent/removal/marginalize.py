"""Removed tokens are filled in by a masked language model, and the predictions averaged."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

import numpy as np

from pertinent.array_types import Masks
from pertinent.errors import InputError, SettingError, require
from pertinent.inputs.text import TextInput
from pertinent.registry import settings_of
from pertinent.removal.base import NOT_KEPT, TokenRemoval, TokenRows, kept_tokens, removals, row_generators
from pertinent.settings import Count

if TYPE_CHECKING:
    from pertinent.models.base import Model


_MASKED_LM = "pertinent.models.torch.masked_lm"
"""Imported when a masked language model is given, as it needs torch."""


@removals.register("marginalize")
@dataclass(frozen=True)
class Marginalize(TokenRemoval):
    """Hase et al. 2021, Sec. 5 (2): class probabilities averaged over fillings x̃ ~ p_φ(x̃ | x, e).

    `filler` is a masked language model with its tokenizer, as a pair or as the name of a folder in
    transformers' format; its vocabulary must be the explained model's. It runs once per mask, with all
    removed tokens masked, and `samples` fillings are drawn, each token independently of the others.

    Note
    ----
    This is a plain average; the authors' code also weights each sample by its probability.
    """

    summary = "filled in by a masked language model and averaged (Hase et al. 2021)"
    opens = ("filler",)
    is_random = True
    filler: Any = None
    samples: Count = 10

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        if isinstance(self.filler, tuple | list):
            require(len(self.filler) == 2, "filler", "a pair or a folder", f"{len(self.filler)} things")
            object.__setattr__(self, "filler", resolve_name(f"{_MASKED_LM}:Filler")(*self.filler))
        is_known = self.filler is None or isinstance(self.filler, str | Path)
        must = "a pair (masked language model, its tokenizer) or a folder"
        require(is_known or hasattr(self.filler, "check_vocabulary"), "filler", must, self.filler)

    def bind(self, model: Model) -> Marginalize:
        """The same removal with the filler loaded on the model's device and its vocabulary checked."""
        if self.filler is None or model.tokenizer is None:
            return self
        filler = self.filler
        if isinstance(filler, str | Path):
            filler = resolve_name(f"{_MASKED_LM}:load_filler")(str(filler), str(model.device or "cpu"))
        filler.check_vocabulary(model.tokenizer)
        return self if filler is self.filler else replace(self, filler=filler)

    def settings(self, model: Model) -> dict[str, Any]:
        """The settings, with the folder of the filler; a pair is saved as a placeholder."""
        settings = settings_of(self)
        if self.filler is not None:
            folder = self.filler if isinstance(self.filler, str | Path) else self.filler.folder
            settings["filler"] = NOT_KEPT if folder is None else str(folder)
        return settings

    def check(self, input: TextInput) -> None:
        """There must be a filler, and it must be able to read the text."""
        super().check(input)
        if self.filler is None:
            raise SettingError(
                "The removal 'marginalize' needs a masked language model: "
                "Marginalize(filler=(model, tokenizer)), or the name of a folder."
            )
        longest, length = self.filler.max_length, len(self.tokens_of(input).ids)
        if length > longest:
            raise InputError(f"The filler reads at most {longest} tokens, but the text has {length}.")

    def __call__(self, input: TextInput, masks: Masks, seed: int) -> TokenRows:
        """`samples` rows per mask, as long as the text."""
        tokens = self.tokens_of(input)
        removed = ~kept_tokens(input, masks)
        generators = row_generators(input, masks, seed, self.name)
        uniform = np.concatenate(
            [g.random((self.samples, n)).T for g, n in zip(generators, removed.sum(axis=1), strict=True)]
        )
        row, column = removed.nonzero()
        ids = np.tile(tokens.ids, (len(masks), self.samples, 1))
        ids[row, :, column] = self.filler.draw(tokens, removed, uniform)
        ids = ids.reshape(-1, len(tokens.ids))
        return TokenRows(tokens, np.ones(ids.shape, dtype=np.bool_), ids)
