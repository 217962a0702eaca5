"""Removals: what an input looks like without some of its features."""

from pertinent.removal.alternatives import Alternatives
from pertinent.removal.array_removals import (
    Blur,
    Constant,
    FromBackground,
    Mean,
    MedianMode,
    NeedsBackground,
    UniformNoise,
)
from pertinent.removal.base import Removal, removals
from pertinent.removal.token_removals import (
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
