"""Removals for tokens or words of a text (Hase et al. 2021, Sec. 5)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import compress, pairwise
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

import numpy as np

from pertinent.array_types import Ints, Masks
from pertinent.config.settings import Count, changed_settings
from pertinent.errors import InputError, SettingError, require
from pertinent.inputs.text import TextInput
from pertinent.inputs.tokens import Tokens
from pertinent.removals.base import NOT_KEPT, Removal, Rows, TokenRows, kept_tokens, removals, row_generators

if TYPE_CHECKING:
    from pertinent.models.base import Model


class TokenRemoval(Removal):
    """Base class of removals that replace tokens, which need a transformer."""

    inputs = TextInput

    def check(self, input: TextInput) -> None:
        """Raise a `SettingError` if the model reads strings."""
        super().check(input)
        self.tokens_of(input)

    def tokens_of(self, input: TextInput) -> Tokens:
        """Return the tokens of a text; raise a `SettingError` if the model reads strings."""
        if input.tokens is None:
            raise SettingError(
                f"The removal {self.name!r} works on a transformer's tokens, but this model reads "
                "strings; choose 'slice-out' or 'mask-token'."
            )
        return input.tokens


@removals.register("attention-mask")
@dataclass(frozen=True)
class AttentionMask(TokenRemoval):
    """Hase et al. 2021, Sec. 5: the attention distribution times the mask, renormalised.

    Where the architecture allows it, the model runs only on the kept tokens at their original positions,
    which gives the same result.
    """

    summary = "hidden from attention, positions kept (Hase et al. 2021)"
    hides = "tokens"

    def __call__(self, input: TextInput, masks: Masks, seed: int) -> TokenRows:
        """Return rows with the same ids that attend only to the kept tokens."""
        return TokenRows(self.tokens_of(input), kept_tokens(input, masks))


@removals.register("slice-out")
@dataclass(frozen=True)
class SliceOut(Removal):
    """Hase et al. 2021, Sec. 5: the kept tokens as a shorter text, with consecutive positions."""

    inputs = TextInput
    summary = "dropped, and the rest is joined (Hase et al. 2021)"
    hides = "tokens and positions"

    def __call__(self, input: TextInput, masks: Masks, seed: int) -> Rows:
        """Return shorter rows of tokens, or shorter strings if the model reads strings."""
        if input.tokens is None:
            return _rebuild(input, masks, "")
        return TokenRows(input.tokens, kept_tokens(input, masks), renumber=True)


@removals.register("mask-token")
@dataclass(frozen=True)
class MaskToken(Removal):
    """Hase et al. 2021, Sec. 5: each removed token is replaced by the mask token.

    If the model reads strings, each removed feature is replaced by `text`.

    Parameters
    ----------
    text
        Replacement of a removed feature.
    """

    inputs = TextInput
    summary = "replaced by the mask token (Hase et al. 2021)"
    text: str = "[MASK]"

    def check(self, input: TextInput) -> None:
        """Raise a `SettingError` if a transformer's tokenizer has no mask token."""
        super().check(input)
        if input.tokens is not None and input.tokens.mask_id is None:
            raise SettingError("The removal 'mask-token' needs a tokenizer with a mask token.")

    def __call__(self, input: TextInput, masks: Masks, seed: int) -> Rows:
        """Return one row per mask, as long as the text."""
        if input.tokens is None:
            return _rebuild(input, masks, self.text)
        return _replace_tokens(input, input.tokens, masks, input.tokens.mask_id)


@removals.register("pad-token")
@dataclass(frozen=True)
class PadToken(TokenRemoval):
    """Each removed token is replaced by the padding token, which remains visible to attention."""

    summary = "replaced by the padding token, which stays visible to attention"

    def check(self, input: TextInput) -> None:
        """Raise a `SettingError` if the tokenizer has no padding token."""
        super().check(input)
        if self.tokens_of(input).pad_id is None:
            raise SettingError("The removal 'pad-token' needs a tokenizer with a padding token.")

    def __call__(self, input: TextInput, masks: Masks, seed: int) -> TokenRows:
        """Return one row per mask, as long as the text."""
        tokens = self.tokens_of(input)
        return _replace_tokens(input, tokens, masks, tokens.pad_id)


def _rebuild(input: TextInput, masks: Masks, placeholder: str) -> list[Any]:
    """Return the text as strings, with each removed feature replaced by the placeholder.

    An empty placeholder also removes the space after the feature, unless that would join its neighbours, and
    the space that would be left before a segment that starts with one.
    """
    segments = input.text.segments
    heads, kept, removed, owner = list(segments), [], [], []
    for i, segment in enumerate(segments):
        spans = input.spans[input.spans[:, 0] == i]
        if len(spans):
            starts = [*spans[:, 1].tolist(), len(segment)]
            heads[i] = segment[: starts[0]]
            for (_, start, end), after in zip(spans.tolist(), starts[1:], strict=True):
                kept.append(segment[start:after])
                joined = start > 0 and not segment[start - 1].isspace()
                rest = segment[end:after]
                removed.append(placeholder + rest if placeholder or joined else rest.lstrip())
                owner.append(i)
    rows = []
    for mask in masks.tolist():
        chosen = [a if keep else b for a, b, keep in zip(kept, removed, mask, strict=True)]
        parts = [head + "".join(compress(chosen, [o == i for o in owner])) for i, head in enumerate(heads)]
        for i, (part, after) in enumerate(pairwise(segments)):
            if not placeholder and after[:1].isspace() and not part[-1:].isspace():
                parts[i] = parts[i].rstrip()
        rows.append(input.with_segments(parts))
    return rows


def _replace_tokens(input: TextInput, tokens: Tokens, masks: Masks, token_id: int | None) -> TokenRows:
    assert token_id is not None
    kept = kept_tokens(input, masks)
    return TokenRows(tokens, np.ones_like(kept), np.where(kept, tokens.ids, token_id))


@removals.register("zero-vector")
@dataclass(frozen=True)
class ZeroVector(TokenRemoval):
    """Hase et al. 2021, Sec. 5: the word embedding of each removed token is the zero vector.

    Position and type embeddings stay.
    """

    summary = "word embedding set to zero (Hase et al. 2021)"

    def __call__(self, input: TextInput, masks: Masks, seed: int) -> TokenRows:
        """Return one row per mask, as long as the text."""
        kept = kept_tokens(input, masks)
        return TokenRows(self.tokens_of(input), np.ones_like(kept), zeroed=~kept)


@removals.register("random-token")
@dataclass(frozen=True)
class RandomToken(TokenRemoval):
    """Each removed token is replaced by one drawn uniformly from the vocabulary without special tokens.

    The prediction is averaged over `samples` draws per mask.

    Parameters
    ----------
    samples
        Draws per mask.
    """

    summary = "replaced by random tokens and averaged"
    is_random = True
    samples: Count = 10
    vocabulary: Ints | None = field(default=None, init=False, compare=False, repr=False)

    def bind(self, model: Model) -> RandomToken:
        """Return this removal with the token ids of the model's vocabulary."""
        bound = replace(self)
        object.__setattr__(bound, "vocabulary", model.words)
        return bound

    def __call__(self, input: TextInput, masks: Masks, seed: int) -> TokenRows:
        """Return `samples` rows per mask, as long as the text."""
        tokens = self.tokens_of(input)
        if self.vocabulary is None:
            raise SettingError("The removal 'random-token' must be bound to a transformer: call bind(model).")
        kept = np.repeat(kept_tokens(input, masks), self.samples, axis=0)
        shape = (self.samples, kept.shape[1])
        generators = row_generators(input, masks, seed, self.name)
        drawn = np.concatenate(
            [self.vocabulary[g.integers(len(self.vocabulary), size=shape)] for g in generators]
        )
        return TokenRows(tokens, np.ones_like(kept), np.where(kept, tokens.ids, drawn))


_MASKED_LM = "pertinent.models.tokens.masked_lm"
"""A module that needs torch, imported only if there is a filler."""


@removals.register("marginalize")
@dataclass(frozen=True)
class Marginalize(TokenRemoval):
    """Hase et al. 2021, Sec. 5 (2): class probabilities averaged over fillings x̃ ~ p_φ(x̃ | x, e).

    A masked language model runs once per mask, with all removed tokens masked. Then `samples` fillings are
    drawn, each token independently.

    Parameters
    ----------
    filler
        Masked language model: a pair of model and tokenizer, or a folder in transformers' format. Its
        vocabulary must be that of the explained model.
    samples
        Fillings drawn per mask.

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
            require(len(self.filler) == 2, "filler", "a pair or a folder", f"{len(self.filler)} items")
            object.__setattr__(self, "filler", resolve_name(f"{_MASKED_LM}:Filler")(*self.filler))
        is_folder = self.filler is None or isinstance(self.filler, str | Path)
        must = "a pair (masked language model, tokenizer) or a folder"
        require(is_folder or hasattr(self.filler, "check_vocabulary"), "filler", must, self.filler)

    def bind(self, model: Model) -> Marginalize:
        """Return this removal with the filler loaded on the model's device; check its vocabulary."""
        if self.filler is None or model.tokenizer is None:
            return self
        filler = self.filler
        if isinstance(filler, str | Path):
            filler = resolve_name(f"{_MASKED_LM}:load_filler")(str(filler), str(model.device or "cpu"))
        filler.check_vocabulary(model.tokenizer)
        return self if filler is self.filler else replace(self, filler=filler)

    def settings(self, model: Model) -> dict[str, Any]:
        """Return the settings with the folder of the filler, or a placeholder for a pair."""
        settings = changed_settings(self)
        if self.filler is not None:
            folder = self.filler if isinstance(self.filler, str | Path) else self.filler.folder
            settings["filler"] = NOT_KEPT if folder is None else str(folder)
        return settings

    def check(self, input: TextInput) -> None:
        """Raise an error if there is no filler, or if the text is too long for it."""
        super().check(input)
        if self.filler is None:
            raise SettingError(
                "The removal 'marginalize' needs a masked language model: "
                "pass Marginalize(filler=(model, tokenizer)) or a folder."
            )
        longest, length = self.filler.max_length, self.tokens_of(input).longest
        if length > longest:
            raise InputError(f"The filler reads at most {longest} tokens, but the text has {length}.")

    def __call__(self, input: TextInput, masks: Masks, seed: int) -> TokenRows:
        """Return `samples` rows per mask, as long as the text."""
        tokens = self.tokens_of(input)
        context, positions = _filler_context(tokens)
        removed = ~kept_tokens(input, masks)[:, positions[0]]
        generators = row_generators(input, masks, seed, self.name)
        uniform = np.concatenate(
            [g.random((self.samples, n)).T for g, n in zip(generators, removed.sum(axis=1), strict=True)]
        )
        row, column = removed.nonzero()
        ids = np.tile(tokens.ids, (len(masks), self.samples, 1))
        for span, window in context.windows:
            inside = (column >= span.start) & (column < span.stop)
            drawn = self.filler.draw(window, removed[:, span], uniform[inside])
            for position in positions:
                ids[row[inside], :, position[column[inside]]] = drawn
        ids = ids.reshape(-1, len(tokens.ids))
        return TokenRows(tokens, np.ones(ids.shape, dtype=np.bool_), ids)


def _filler_context(tokens: Tokens) -> tuple[Tokens, list[Ints]]:
    """Return the tokens that the filler reads, and each copy's positions among all tokens.

    The filler reads all tokens of a text, but not the answer to a prompt, which would reveal removed tokens.
    A prompt with a contrast occurs twice: before the answer and before its rival.
    """
    if tokens.scored is None:
        return tokens, [np.arange(len(tokens.ids))]
    positions = [np.flatnonzero(~tokens.scored[span]) + span.start for span, _ in tokens.windows]
    first = positions[0]
    context = Tokens(
        tokens.ids[first], tokens.types[first], tokens.feature[first], tokens.mask_id, tokens.pad_id
    )
    return context, positions
