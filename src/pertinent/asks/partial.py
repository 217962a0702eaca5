"""Partial findings: what an algorithm has found so far, for whoever listens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, eq=False)
class Partial:
    """Publish what has been found so far. It costs nothing, and is answered with ``None`` at once.

    `finding` is a finding, or a function without arguments that makes one: the engine calls it at once if
    somebody listens, and never otherwise. `evaluations` is the number of evaluations so far, which the
    meter fills in.
    """

    finding: Any
    evaluations: int = 0

    def make(self) -> Any:
        """The finding itself."""
        return self.finding() if callable(self.finding) else self.finding
