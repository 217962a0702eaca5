"""The cells of an evaluation's table, for every report."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isfinite

from pertinent.evaluation import Evaluation
from pertinent.statistics import Interval


@dataclass(frozen=True)
class Cell:
    """What a metric said of a method over all inputs, and whether no other method did better."""

    interval: Interval
    best: bool = False

    @property
    def has_bounds(self) -> bool:
        """Whether there were inputs enough for an interval."""
        return isfinite(self.interval.low) and isfinite(self.interval.high)

    @property
    def text(self) -> str:
        """The mean."""
        return f"{self.interval.mean:.3f}"

    @property
    def interval_text(self) -> str:
        """The bounds, or nothing where one input gives none."""
        return self.interval.bounds


@dataclass(frozen=True)
class Summary:
    """Cells by method and metric."""

    cells: dict[tuple[str, str], Cell]
    caption: str


def summary(evaluation: Evaluation) -> Summary:
    """Sum an evaluation up; the best mean of a metric is marked where methods compete."""
    cells = {(method, metric): Cell(i) for method, metric, _, i in evaluation.summary()}
    for metric, better in evaluation.better.items():
        own = {key: cell.interval.mean for key, cell in cells.items() if key[1] == metric}
        if len(own) > 1:
            best = min(own.values()) if better == "lower" else max(own.values())
            cells |= {key: replace(cells[key], best=True) for key, mean in own.items() if mean == best}
    counts = sorted({cell.interval.n for cell in cells.values()})
    inputs = "–".join(f"{n:,}" for n in dict.fromkeys((counts[0], counts[-1]))) if counts else "no"
    caption = f"Mean over {inputs} input{'' if counts[-1:] == [1] else 's'}"
    if any(cell.has_bounds for cell in cells.values()):
        caption += ", 95% bootstrap confidence intervals"
    return Summary(cells, caption)
