"""What the model has already said, up to a number of bytes; the input used longest ago goes first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from pertinent.types import Array


class Cache:
    """Model outputs by input and mask. It lies below the meter."""

    def __init__(self, most_bytes: int = 32 * 2**20) -> None:
        self.most_bytes = most_bytes
        self._bytes = 0
        self._inputs: OrderedDict[bytes, dict[bytes, Array]] = OrderedDict()

    def of(self, fingerprint: bytes) -> dict[bytes, Array]:
        """The answers known for one input, by mask."""
        known = self._inputs.setdefault(fingerprint, {})
        self._inputs.move_to_end(fingerprint)
        return known

    def add(self, fingerprint: bytes, masks: Sequence[bytes], outputs: Array) -> None:
        """Remember a row of outputs for each mask."""
        known = self.of(fingerprint)
        before = len(known)
        known.update(zip(masks, outputs, strict=True))
        self._bytes += (len(known) - before) * self._row_bytes(masks[0], outputs)
        while self._bytes > self.most_bytes and self._inputs:
            _, dropped = self._inputs.popitem(last=False)
            if dropped:
                mask, row = next(iter(dropped.items()))
                self._bytes -= len(dropped) * self._row_bytes(mask, row[None])

    @staticmethod
    def _row_bytes(mask: bytes, outputs: Array) -> int:
        python_objects = 250
        return int(outputs[0].nbytes) + len(mask) + python_objects
