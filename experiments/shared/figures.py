"""Parts of figures: curves with intervals, legends and axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pertinent.stats import Interval


def draw_interval_curve(
    axes: Any, x: Sequence[float], points: Sequence[Interval], *, factor: float = 1.0, **style: Any
) -> None:
    """Draw means with their intervals."""
    mean, low, high = (
        factor * np.array([getattr(point, name) for point in points]) for name in ("mean", "low", "high")
    )
    whiskers = np.nan_to_num(np.stack([mean - low, high - mean])).clip(0.0)
    axes.errorbar(x, mean, yerr=whiskers, **style)


def outside_legend(figure: Any) -> None:
    """Draw one legend for all panels, on the right."""
    lines: dict[str, Any] = {}
    for axes in figure.axes:
        lines |= {label: line for line, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(lines.values(), lines.keys(), fontsize=8, frameon=False, loc="outside right center")


def tidy(axes: Any) -> None:
    """Hide the upper and right spines, and make tick labels small."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8)
