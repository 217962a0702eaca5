"""An input, divided into the features that an explanation scores."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, ClassVar


@dataclass(frozen=True, eq=False)
class Input:
    """One input to explain.

    Attributes
    ----------
    raw
        The input as the user gave it, kept so that it can be shown and prepared again.
    features
        A name for each removable feature, in the order of mask columns.
    granularity
        What one feature is: ``"words"``, ``"patches"``, ``"columns"`` …
    notes
        What the user should know about this input, such as truncation.
    fingerprint
        A digest of the content: random draws depend on it, not on the position in a list.
    """

    raw: Any
    features: tuple[str, ...]
    granularity: str
    notes: tuple[str, ...]
    fingerprint: bytes = field(repr=False)
    kind: ClassVar[str] = ""

    @property
    def n_features(self) -> int:
        """How many features can be removed."""
        return len(self.features)

    @property
    def group(self) -> Hashable:
        """Inputs of different groups, such as images of different sizes, cannot share a batch."""
        return self.kind
