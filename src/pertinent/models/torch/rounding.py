"""Comparison of two results of a network that are equal up to rounding."""

from __future__ import annotations

import torch

TOLERANCES = {torch.float64: 1e-4, torch.float32: 1e-4, torch.float16: 0.02, torch.bfloat16: 0.05}
"""Largest relative difference that counts as rounding; that of other dtypes is as for bfloat16.

Measured on a trained model of 30 layers: rounding up to 4e-6 in float32, 0.005 in float16 and 0.025 in
bfloat16; at least 0.05 if positions are wrong by one.
"""


def relative_difference(found: torch.Tensor, expected: torch.Tensor) -> float:
    """Return the root mean square over vectors of the difference relative to the vector's norm.

    The last dimension holds the vectors: the states or logits of a token, or the answer of a row. Each vector
    has a scale of its own, because hidden states of some tokens are a thousand times those of others. A
    vector with a small norm, such as two logits near 0, is measured by the median norm.
    """
    if found.shape != expected.shape:
        return float("inf")
    masked = expected <= torch.finfo(expected.dtype).min  # logits of tokens that are ruled out
    difference = torch.where(found == expected, 0.0, found.float() - expected.float()).norm(dim=-1)
    norms = expected.float().masked_fill(masked, 0.0).norm(dim=-1)
    scale = norms.maximum(norms.median())
    ratios = torch.where(difference == 0, 0.0, difference / scale)
    return float(ratios.square().mean().sqrt().nan_to_num(nan=torch.inf, posinf=torch.inf))
