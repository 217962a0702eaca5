"""Attention in which every token has a weight, and which has a cheap slope along it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.nn.functional import pad, scaled_dot_product_attention
from transformers import AttentionInterface

from pertinent.outputs import TINY

NAME = "pertinent-weighted"
MULTIPLE = 8
"""Fused kernels want widths and strides to be multiples of this."""


def attention_bias(weights: torch.Tensor, hidden: torch.Tensor | None, dtype: torch.dtype) -> torch.Tensor:
    """What is added to attention scores so that every weight is multiplied by its entry of `weights`.

    A removed token keeps a weight of 1e-12, because the logarithm of nothing has no slope.
    """
    bias = torch.log(weights * (1 - TINY) + TINY).to(dtype)
    if hidden is not None:
        bias = bias.masked_fill(hidden, torch.finfo(dtype).min / 1e6)
    return bias[:, None, None, :]


def hiding_bias(mask: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """What is added to attention scores so that tokens where `mask` is 0 are not looked at.

    Its rows begin at a `MULTIPLE`; else every layer would make a copy of it, for every pair of tokens.
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
    """q·k + b as [q, 1]·[k, b]: the bias is one more dimension of the keys.

    So its gradient comes with the keys', and no matrix of all pairs of tokens is ever made.
    """
    del module, unused
    width = query.shape[-1]
    scale = width**-0.5 if scaling is None else scaling
    ones = pad(torch.ones_like(query[..., :1]), (0, MULTIPLE - 1))
    bias = (attention_mask.transpose(-1, -2) / scale).to(key.dtype).expand(*key.shape[:-1], 1)
    mixed = scaled_dot_product_attention(
        torch.cat([query, ones], dim=-1),
        torch.cat([key, pad(bias, (0, MULTIPLE - 1))], dim=-1),
        pad(value, (0, MULTIPLE)),
        scale=scale,
    )
    return mixed[..., :width].transpose(1, 2).contiguous(), None


AttentionInterface.register(NAME, attend)


@contextmanager
def in_use(model: Any) -> Iterator[None]:
    """The model attends by weights, if it lets one choose how it attends.

    One that does not adds the bias to its scores itself, which comes to the same.
    """
    before = model.config._attn_implementation  # noqa: SLF001
    model.config._attn_implementation = NAME  # noqa: SLF001
    try:
        yield
    finally:
        model.config._attn_implementation = before  # noqa: SLF001
