"""An input, cut into the features that an explanation speaks about."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, ClassVar


@dataclass(frozen=True, eq=False)
class Input:
    """One thing to explain.

    Attributes
    ----------
    raw
        What the user gave, kept so that it can be shown and prepared again.
    features
        A name for each removable feature, in the order of mask columns.
    granularity
        What one feature is: ``"words"``, ``"patches"``, ``"columns"`` …
    notes
        What the user should know about this input, such as truncation.
    fingerprint
        A digest of the content: seeds of random draws depend on it, never on the place in a list.
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
        """Inputs of different groups cannot share a batch: images of several sizes, say."""
        return self.kind
