"""Biases on attention scores that hide or weight tokens, and a check of which models accept them."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.nn.functional import pad, scaled_dot_product_attention

from pertinent.models.torch import devices
from pertinent.models.torch.inference import evaluating, exclusive

if TYPE_CHECKING:
    from pertinent.models.transformer import TransformerModel

NAME = "pertinent-weighted"
MULTIPLE = 8
"""Fused kernels require widths and strides that are multiples of this number."""

LEAST = math.exp(-46)
"""Weight of a removed token, 1e-20, whose logarithm is exact in bfloat16.

Attention scores may favour a removed token by many orders of magnitude; 1e-12 was too large.
"""


def attention_bias(weights: torch.Tensor, hidden: torch.Tensor | None, dtype: torch.dtype) -> torch.Tensor:
    """Return the bias on attention scores that multiplies the attention to each token by its weight.

    A removed token keeps a weight of `LEAST`, because log 0 has no gradient.
    """
    bias = torch.log(weights * (1 - LEAST) + LEAST).to(dtype)
    if hidden is not None:
        bias = bias.masked_fill(hidden, torch.finfo(dtype).min / 1e6)
    return bias[:, None, None, :]


def hiding_bias(mask: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return the bias on attention scores that hides tokens where `mask` is 0.

    The stride of its rows is a multiple of `MULTIPLE`; otherwise every layer would copy it for every pair of
    tokens.
    """
    hidden = pad(mask == 0, (0, -mask.shape[1] % MULTIPLE))
    bias = torch.zeros(hidden.shape, dtype=dtype, device=mask.device)
    bias.masked_fill_(hidden, torch.finfo(dtype).min)
    return bias[:, None, None, : mask.shape[1]]


def attend(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor,
    *,
    scaling: float | None = None,
    **unused: Any,
) -> tuple[torch.Tensor, None]:
    """Compute attention as ([q, 1/s]·[k, b]) s = (q·k) s + b, with the bias as a dimension of the keys.

    Its gradient is then part of the keys' gradient, and no matrix over all token pairs is needed. The factor
    1/s is in the queries, because b/s would be rounded more in bfloat16.
    """
    del module, unused
    width = query.shape[-1]
    scale = width**-0.5 if scaling is None else scaling
    unscaled = pad(torch.full_like(query[..., :1], 1 / scale), (0, MULTIPLE - 1))
    bias = attention_mask.transpose(-1, -2).to(key.dtype).expand(*key.shape[:-1], 1)
    mixed = scaled_dot_product_attention(
        torch.cat([query, unscaled], dim=-1),
        torch.cat([key, pad(bias, (0, MULTIPLE - 1))], dim=-1),
        pad(value, (0, MULTIPLE)),
        scale=scale,
    )
    return mixed[..., :width].transpose(1, 2).contiguous(), None


@cache
def _register() -> None:
    """Register weighted attention with transformers."""
    from transformers import AttentionInterface

    AttentionInterface.register(NAME, attend)


@contextmanager
def in_use(model: Any) -> Iterator[None]:
    """Use weighted attention in the model if its attention implementation can be chosen.

    Otherwise the model adds the bias to its attention scores, with the same result.
    """
    if "transformers" in sys.modules:  # otherwise it is an embedded model, which needs no slow import
        _register()
    with exclusive():
        before = model.config._attn_implementation  # noqa: SLF001
        model.config._attn_implementation = NAME  # noqa: SLF001
        try:
            yield
        finally:
            model.config._attn_implementation = before  # noqa: SLF001


@dataclass
class BiasCheck:
    """A check of whether a model accepts a bias instead of an attention mask, for each text length.

    A bias would override a local-attention window, which only matters for texts longer than the window.
    """

    model: TransformerModel
    _results: dict[tuple[int, bool], bool] = field(default_factory=dict, init=False)

    def holds(self, length: int, *, weighted: bool) -> bool:
        """Return whether a bias acts like a mask at this length, with weighted or the model's attention."""
        rounded = min(max(16, 1 << (length - 1).bit_length()), self.model.max_length)
        if (rounded, weighted) not in self._results:
            self._results[rounded, weighted] = self._try(rounded, weighted)
        return self._results[rounded, weighted]

    def _try(self, length: int, weighted: bool) -> bool:
        model, batch = self.model, self.model.whole_text(length)
        attended = np.ones_like(batch.ids)
        attended[0, 2:-1:2] = 0
        mask = devices.send(attended, model.device)
        bias = attention_bias(mask, None, torch.float32) if weighted else hiding_bias(mask, torch.float32)
        try:
            with evaluating(model.model):
                masked = model.head.answer_of(model.exactly(batch, attention_mask=mask))
                with in_use(model.model) if weighted else nullcontext():
                    biased = model.head.answer_of(model.exactly(batch, attention_mask=bias))
        except Exception as error:  # after any error, use a mask for this architecture
            if model.is_out_of_memory(error):
                raise
            return False
        return model.alike(biased, masked)
