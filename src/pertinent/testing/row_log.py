"""A log of the rows that a model was evaluated on."""

from __future__ import annotations

from dataclasses import dataclass, field

from pertinent.array_types import Array


@dataclass
class RowLog:
    """The table rows that a model was evaluated on, with and without a gradient, in order."""

    values: list[bytes] = field(default_factory=list)
    gradients: list[bytes] = field(default_factory=list)

    def add(self, rows: Array, *, gradient: bool = False) -> None:
        """Add rows (n, columns)."""
        (self.gradients if gradient else self.values).extend(row.tobytes() for row in rows)
