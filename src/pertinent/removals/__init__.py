"""Removals: what an input looks like without some of its features."""

from pertinent.removals.alternatives import Alternatives
from pertinent.removals.array_removals import (
    Blur,
    Constant,
    FromBackground,
    Mean,
    MedianMode,
    NeedsBackground,
    UniformNoise,
)
from pertinent.removals.base import Removal, removals
from pertinent.removals.token_removals import (
    AttentionMask,
    Marginalize,
    MaskToken,
    PadToken,
    RandomToken,
    SliceOut,
    ZeroVector,
)

__all__ = [
    "Alternatives",
    "AttentionMask",
    "Blur",
    "Constant",
    "FromBackground",
    "Marginalize",
    "MaskToken",
    "Mean",
    "MedianMode",
    "NeedsBackground",
    "PadToken",
    "RandomToken",
    "Removal",
    "SliceOut",
    "UniformNoise",
    "ZeroVector",
    "removals",
]
