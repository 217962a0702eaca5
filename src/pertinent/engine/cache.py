"""The cache of the model's answers about the inputs that are being worked on."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Hashable, Sequence
from typing import Any

_PYTHON_OBJECTS = 250
"""Bytes of a dictionary entry, its key and an array besides their content."""


class Cache:
    """Answers by input, kind of question and row. It lies below the meter.

    An input's answers are dropped when the last job on it ends: kept longer, such small objects would
    lie scattered between the batches and make the memory grow. If all answers take more than
    `most_bytes`, those of the least recently used input are dropped.
    """

    def __init__(self, most_bytes: int = 64 * 2**20) -> None:
        self.most_bytes = most_bytes
        self._bytes = 0
        self._jobs: Counter[bytes] = Counter()
        self._inputs: OrderedDict[bytes, dict[type, dict[Hashable, Any]]] = OrderedDict()
        self._held: Counter[bytes] = Counter()

    def open(self, name: bytes) -> None:
        """Note that a job on this input begins."""
        self._jobs[name] += 1

    def close(self, name: bytes) -> None:
        """Note that a job on this input has ended."""
        self._jobs[name] -= 1
        if not self._jobs[name]:
            del self._jobs[name]
            self._forget(name)

    def answers_for(self, name: bytes, kind: type) -> dict[Hashable, Any]:
        """The answers known for one input and kind of question, by row."""
        known = self._inputs.setdefault(name, {}).setdefault(kind, {})
        self._inputs.move_to_end(name)
        return known

    def add(self, name: bytes, kind: type, keys: Sequence[Hashable], answers: Sequence[Any]) -> None:
        """Keep the answer to each row, if a job on the input is still open."""
        if not self._jobs[name]:
            return
        known = self.answers_for(name, kind)
        before = len(known)
        known.update(zip(keys, answers, strict=True))
        size = getattr(answers[0], "nbytes", 0) + _PYTHON_OBJECTS
        added = (len(known) - before) * size
        self._held[name] += added
        self._bytes += added
        while self._bytes > self.most_bytes and len(self._inputs) > 1:
            self._forget(next(iter(self._inputs)))

    def _forget(self, name: bytes) -> None:
        self._inputs.pop(name, None)
        self._bytes -= self._held.pop(name, 0)
