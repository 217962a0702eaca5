"""The methods that are compared, all with the same number of passes for each explanation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

BUDGET = 1000
REDUCED = 250
SPARSITIES = (0.05, 0.10, 0.20, 0.50)
OBJECTIVES = ("sufficiency", "comprehensiveness")

SALIENCE = ("gradient", "integrated-gradients", "lime")


def salience(budget: int) -> dict[str, dict[str, Any]]:
    """The salience methods' settings: a point of a path takes two passes, and some are spent beside it."""
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
"""Methods whose course depends on the budget, so that a quarter of it takes a run of its own."""

LAYERS = 3
"""Of the second encoder: the first ones of the first."""
SECOND: Sequence[str] = ("lime", "random-search", "parallel-local-search", "thompson-search")
"""Methods that explain the second encoder: the paper's three, and ours."""

COUNTED = "counted"
"""The folder of results that only Table 5 counts: an earlier run has larger tables of their sets."""

FILLER = "filler"
"""The encoder that was taught to fill in masked tokens."""

GRID = (10, 25, 50, 75, 100, 150, 200, 250, 300, 400, 500, 600, 700, 800, 900, 1000)
"""Evaluations after which the best objective is noted."""
