"""What the model has already said about the inputs at hand."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Sequence

from pertinent.types import Array


class Cache:
    """Model outputs by input and mask. It lies below the meter.

    An input's answers are forgotten when the last job on it ends: kept longer, such small objects
    would lie scattered between the batches and make the memory grow. And they are forgotten, for
    the input used longest ago, when all of them take more than `most_bytes`.
    """

    def __init__(self, most_bytes: int = 64 * 2**20) -> None:
        self.most_bytes = most_bytes
        self._bytes = 0
        self._jobs: Counter[bytes] = Counter()
        self._inputs: OrderedDict[bytes, dict[bytes, Array]] = OrderedDict()

    def open(self, name: bytes) -> None:
        """A job on this input begins."""
        self._jobs[name] += 1

    def close(self, name: bytes) -> None:
        """A job on this input has ended."""
        self._jobs[name] -= 1
        if not self._jobs[name]:
            del self._jobs[name]
            self._forget(name)

    def of(self, name: bytes) -> dict[bytes, Array]:
        """The answers known for one input, by mask."""
        known = self._inputs.setdefault(name, {})
        self._inputs.move_to_end(name)
        return known

    def add(self, name: bytes, masks: Sequence[bytes], outputs: Array) -> None:
        """Remember a row of outputs for each mask, if anybody is still at work on the input."""
        if not self._jobs[name]:
            return
        known = self.of(name)
        before = len(known)
        known.update(zip(masks, outputs, strict=True))
        self._bytes += (len(known) - before) * _row_bytes(masks[0], outputs[0])
        while self._bytes > self.most_bytes and len(self._inputs) > 1:
            self._forget(next(iter(self._inputs)))

    def _forget(self, name: bytes) -> None:
        forgotten = self._inputs.pop(name, {})
        for mask, row in forgotten.items():
            self._bytes -= len(forgotten) * _row_bytes(mask, row)
            break


def _row_bytes(mask: bytes, row: Array) -> int:
    python_objects = 250
    return int(row.nbytes) + len(mask) + python_objects
