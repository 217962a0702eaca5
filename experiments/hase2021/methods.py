"""Methods that are compared, all with the same number of passes for each explanation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

BUDGET = 1000
REDUCED = 250
SPARSITIES = (0.05, 0.10, 0.20, 0.50)
OBJECTIVES = ("sufficiency", "comprehensiveness")

SALIENCE = ("gradient", "integrated-gradients", "lime")


def salience(budget: int) -> dict[str, dict[str, Any]]:
    """Return the settings of salience methods; a point of a path takes two passes, and four are overhead."""
    return dict(zip(SALIENCE, ({}, {"points": budget // 2 - 2}, {"samples": budget - 4}), strict=True))


SEARCHES: dict[str, dict[str, Any]] = {
    "parallel-local-search": {},
    "random-search": {},
    "thompson-search": {},
    "taylor-search": {},
    "ordered-search": {},
    "anchors": {},
    "gradient-search": {},
}
AT_A_QUARTER: Sequence[str] = ("ordered-search", "thompson-search")
"""Methods whose course depends on the budget, so that a quarter of the budget takes a separate run."""

LAYERS = 3
"""First layers of the encoder that the second encoder consists of."""
SECOND: Sequence[str] = ("lime", "random-search", "parallel-local-search", "thompson-search")
"""Methods that explain the second encoder: the paper's three, and thompson-search."""

COUNTED = "counted"
"""Folder of results that only Table 5 counts, because an earlier run has larger tables of their data sets."""

FILLER = "filler"
"""Encoder that was trained to fill in masked tokens."""

REMOVALS = ("attention-mask", "mask-token", "slice-out", "zero-vector")
"""Removals that a model can be trained with."""

GRID = (10, 25, 50, 75, 100, 150, 200, 250, 300, 400, 500, 600, 700, 800, 900, 1000)
"""Numbers of evaluations after which the best objective is recorded."""

AT_250 = f"thompson-search at {REDUCED}"
"""Row of a table: thompson-search with the reduced budget."""


def run_of(row: str) -> tuple[str, int | None]:
    """Return the method and the budget of a table's row."""
    if row == AT_250:
        return "thompson-search", REDUCED
    return row, None if row in SALIENCE or row == "exhaustive-search" else BUDGET
