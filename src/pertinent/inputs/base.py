"""An input, cut into the features that an explanation speaks about."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, ClassVar

import numpy as np

from pertinent.types import Array, Masks


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


def digest(*parts: object) -> bytes:
    """A digest of texts, numbers and arrays that is the same on every machine."""
    h = blake2b(digest_size=16)
    for part in parts:
        if isinstance(part, np.ndarray):
            h.update(f"{part.dtype.str}{part.shape}".encode())
            data = repr(part.tolist()).encode() if part.dtype == object else part.tobytes()
        else:
            data = part if isinstance(part, bytes) else repr(part).encode()
        h.update(len(data).to_bytes(8, "little"))
        h.update(data)
    return h.digest()


def generator(seed: int, *parts: object) -> np.random.Generator:
    """The random generator that belongs to `seed` and the things named."""
    words = np.frombuffer(digest(*parts), dtype=np.uint32)
    return np.random.default_rng([seed, *words.tolist()])


def whole(n_features: int) -> Masks:
    """The mask that keeps everything."""
    return np.ones((1, n_features), dtype=np.bool_)


def nothing(n_features: int) -> Masks:
    """The mask that keeps nothing."""
    return np.zeros((1, n_features), dtype=np.bool_)


def mask_bytes(masks: Array) -> list[bytes]:
    """A hashable key for each row of an array of masks."""
    packed = np.ascontiguousarray(np.packbits(masks, axis=1))
    if packed.shape[1] == 0:
        return [b""] * len(masks)
    keys: list[bytes] = packed.view(f"V{packed.shape[1]}").ravel().tolist()
    return keys
