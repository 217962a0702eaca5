"""A masked language model that fills in missing tokens."""

from __future__ import annotations

import inspect
from functools import cached_property, lru_cache, partial
from typing import Any

import numpy as np
import torch

from pertinent.array_types import Floats, Ints, Masks
from pertinent.config.fingerprints import digest
from pertinent.errors import ModelError, SettingError
from pertinent.inputs.tokens import Tokens
from pertinent.models.embedded.load import LOCAL, no_progress_bar, require_model
from pertinent.models.torch import devices
from pertinent.models.torch.inference import evaluating

_MAX_LOGITS = {"cuda": 2**27}
"""Largest number of logits per batch (tokens × vocabulary), which dominate memory use; elsewhere 2²⁵."""


class Filler:
    """A transformers masked language model with its tokenizer.

    Parameters
    ----------
    model, tokenizer
        ``AutoModelForMaskedLM`` and its tokenizer.
    folder
        Folder that they were loaded from, if any.
    """

    def __init__(self, model: Any, tokenizer: Any, folder: str | None = None) -> None:
        if not hasattr(model, "config") or not hasattr(tokenizer, "mask_token_id"):
            raise SettingError("`filler` must be a pair (masked language model, tokenizer).")
        if tokenizer.mask_token_id is None:
            raise SettingError("The tokenizer of `filler` must have a mask token.")
        self.model = model
        self.tokenizer = tokenizer
        self.folder = folder
        self.device, self.dtype = devices.device_and_dtype(model)
        self._arguments = set(inspect.signature(model.forward).parameters)
        self._n_logits = int(model.config.vocab_size)
        self._barred = torch.from_numpy(self._find_barred()).to(self.device)
        self._checked_tokenizer: Any = None

    def __repr__(self) -> str:
        return f"<filler {self.folder or type(self.model).__name__}>"

    @cached_property
    def fingerprint(self) -> bytes:
        """Return a digest of the weights and the vocabulary."""
        return digest(self.model, self.tokenizer.get_vocab())

    def check_vocabulary(self, tokenizer: Any) -> None:
        """Raise a `SettingError` unless the tokenizer has the same tokens with the same ids."""
        if tokenizer is self._checked_tokenizer:
            return
        if tokenizer.get_vocab() != self.tokenizer.get_vocab():
            raise SettingError(
                "`filler` must have exactly the vocabulary of the explained model, "
                f"but has {len(self.tokenizer):,} tokens instead of {len(tokenizer):,}"
                f"{', with different ids or tokens' if len(self.tokenizer) == len(tokenizer) else ''}."
            )
        self._checked_tokenizer = tokenizer

    @property
    def max_length(self) -> int:
        """Return the largest number of tokens that the model reads."""
        positions = getattr(self.model.config, "max_position_embeddings", None)
        return int(min(self.tokenizer.model_max_length, positions or 10**9))

    def draw(self, tokens: Tokens, removed: Masks, uniform: Floats) -> Ints:
        """Draw tokens for the removed positions independently of each other (positions, samples).

        All removed tokens of a row are masked together, and the model reads each row once. Special tokens are
        never drawn.

        Parameters
        ----------
        removed
            Removed tokens of each row (rows, length).
        uniform
            Number in [0, 1] for each sample of each removed position, row by row.
        """
        step = max(1, _MAX_LOGITS.get(self.device.type, 2**25) // (self._n_logits * len(tokens.ids)))
        ends = np.cumsum(removed.sum(axis=1))
        drawn = np.empty(uniform.shape, dtype=np.int64)
        for first in range(0, len(removed), step):
            rows = removed[first : first + step]
            positions = slice(ends[first] - rows[0].sum(), ends[first + len(rows) - 1])
            drawn[positions] = self._draw(tokens, rows, uniform[positions])
        return drawn

    def _draw(self, tokens: Tokens, removed: Masks, uniform: Floats) -> Ints:
        """Draw tokens for the rows of one batch by inverse transform sampling."""
        setting = partial(devices.disable_onednn, self.device, self.dtype)
        with torch.inference_mode(), evaluating(self.model, setting=setting):
            logits = self._logits(tokens, removed)[devices.send(removed, self.device)].float()
            probabilities = logits.masked_fill_(self._barred, -torch.inf).softmax(dim=-1)
            thresholds = devices.send(uniform, self.device)
            cumulative = probabilities.cumsum(dim=-1, dtype=thresholds.dtype)
            if not torch.isfinite(cumulative[:, -1]).all():
                raise ModelError("The filler returned NaN or infinity.")
            drawn = torch.searchsorted(cumulative, thresholds * cumulative[:, -1:], right=True)
        return np.asarray(drawn.cpu())

    def _logits(self, tokens: Tokens, removed: Masks) -> torch.Tensor:
        ids = np.where(removed, self.tokenizer.mask_token_id, tokens.ids)
        options = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
        if tokens.types.any() and "token_type_ids" in self._arguments:
            options["token_type_ids"] = np.broadcast_to(tokens.types, ids.shape)
        output = self.model(**{name: devices.send(array, self.device) for name, array in options.items()})
        logits: torch.Tensor = output.logits
        return logits

    def _find_barred(self) -> Masks:
        """Return which ids are never drawn: special tokens and ids without a token."""
        barred = np.ones(self._n_logits, dtype=np.bool_)
        ids = np.array(sorted(self.tokenizer.get_vocab().values()), dtype=np.int64)
        barred[ids[ids < self._n_logits]] = False
        added = self.tokenizer.added_tokens_decoder
        special = {*self.tokenizer.all_special_ids, *(i for i, token in added.items() if token.special)}
        barred[[i for i in special if i < self._n_logits]] = True
        return barred


@lru_cache(maxsize=1)
def load_filler(folder: str, device: str) -> Filler:
    """Load the masked language model in a folder (safetensors only); the last one loaded is cached."""
    require_model(folder)
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    try:
        with no_progress_bar():
            tokenizer = AutoTokenizer.from_pretrained(folder, **LOCAL)
            model, report = AutoModelForMaskedLM.from_pretrained(
                folder, use_safetensors=True, output_loading_info=True, **LOCAL
            )
    except Exception as error:
        raise ModelError(f"The masked language model in {folder!r} cannot be loaded: {error}") from error
    if report["missing_keys"]:
        missing = min(report["missing_keys"])
        raise ModelError(f"The model in {folder!r} is not a masked language model: it has no {missing!r}.")
    return Filler(model.to(device), tokenizer, folder)
