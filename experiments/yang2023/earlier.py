"""Findings of an earlier run, as it printed them, where the later ones have no results.

Each is a mean with the bounds of its 95% interval, by finding and set.
"""

from __future__ import annotations

Printed = tuple[float, float, float]

EARLIER: dict[str, dict[str, Printed]] = {
    "amortized is better than FastSHAP": {"sst2": (0.03, 0.02, 0.05), "imdb": (0.11, 0.08, 0.14)},
    "(ours) `shapley` with 500 evaluations is nearer to the reference than SVS-25": {
        "sst2": (0.03, 0.02, 0.03),
        "mnli": (0.01, 0.01, 0.02),
        "imdb": (-0.13, -0.15, -0.12),
    },
}
