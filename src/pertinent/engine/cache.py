"""Cache of the model's answers for the inputs of running jobs."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Hashable, Sequence
from typing import Any

_PYTHON_OBJECTS = 250
"""Bytes of a dictionary entry, its key and an array, without their content."""


class Cache:
    """Answers by input, question type and row. The meter does not see whether an answer is cached.

    The answers for an input are dropped when its last job ends; otherwise small objects scattered between
    batches fragment the memory. If all answers take more than `most_bytes`, the least recently used input is
    dropped.
    """

    def __init__(self, most_bytes: int = 64 * 2**20) -> None:
        self.most_bytes = most_bytes
        self._bytes = 0
        self._jobs: Counter[bytes] = Counter()
        self._inputs: OrderedDict[bytes, dict[type, dict[Hashable, Any]]] = OrderedDict()
        self._held: Counter[bytes] = Counter()

    def open(self, name: bytes) -> None:
        """Count a new job on this input."""
        self._jobs[name] += 1

    def close(self, name: bytes) -> None:
        """Uncount a finished job on this input."""
        self._jobs[name] -= 1
        if not self._jobs[name]:
            del self._jobs[name]
            self._forget(name)

    def answers_for(self, name: bytes, kind: type) -> dict[Hashable, Any]:
        """Return the cached answers for an input and question type, by row."""
        answers = self._inputs.setdefault(name, {}).setdefault(kind, {})
        self._inputs.move_to_end(name)
        return answers

    def add(self, name: bytes, kind: type, keys: Sequence[Hashable], answers: Sequence[Any]) -> None:
        """Cache the answers to these rows if a job on the input is still running."""
        if not self._jobs[name]:
            return
        cached = self.answers_for(name, kind)
        before = len(cached)
        cached.update(zip(keys, answers, strict=True))
        size = getattr(answers[0], "nbytes", 0) + _PYTHON_OBJECTS
        added = (len(cached) - before) * size
        self._held[name] += added
        self._bytes += added
        while self._bytes > self.most_bytes and len(self._inputs) > 1:
            self._forget(next(iter(self._inputs)))

    def _forget(self, name: bytes) -> None:
        self._inputs.pop(name, None)
        self._bytes -= self._held.pop(name, 0)
