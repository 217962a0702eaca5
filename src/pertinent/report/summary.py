"""The cells of an evaluation's table, for every report."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isfinite

from pertinent.intervals import FEWEST, Interval
from pertinent.results.evaluation import Evaluation

SIGNIFICANT = 0.05


@dataclass(frozen=True)
class Cell:
    """The mean of a metric for a method over all inputs, and whether no other method is better."""

    interval: Interval
    best: bool = False

    @property
    def has_bounds(self) -> bool:
        """Whether there were enough inputs for an interval."""
        return isfinite(self.interval.low) and isfinite(self.interval.high)

    @property
    def text(self) -> str:
        """The mean."""
        return f"{self.interval.mean:.3f}"

    @property
    def interval_text(self) -> str:
        """The bounds; empty if there is only one input."""
        return self.interval.bounds


@dataclass(frozen=True)
class Summary:
    """Cells by method and metric; `notes` say whether the best method differs from the next."""

    cells: dict[tuple[str, str], Cell]
    caption: str
    notes: tuple[str, ...] = ()


def summary(evaluation: Evaluation) -> Summary:
    """Summarise an evaluation; the best mean of each metric is marked if there are several methods."""
    cells = {(method, metric): Cell(i) for method, metric, _, i in evaluation.summary()}
    notes = []
    for metric, better in evaluation.better.items():
        means = {method: cell.interval.mean for (method, own), cell in cells.items() if own == metric}
        ranked = sorted(means, key=lambda method: means[method], reverse=better == "higher")
        if len(ranked) > 1:
            best, following = ranked[:2]
            winners = [key for key in cells if key[1] == metric and means[key[0]] == means[best]]
            cells |= {key: replace(cells[key], best=True) for key in winners}
            notes.append(_told_apart(evaluation, best, following, metric))
    counts = sorted({cell.interval.n for cell in cells.values()})
    inputs = "–".join(f"{n:,}" for n in dict.fromkeys((counts[0], counts[-1]))) if counts else "no"
    caption = f"Mean over {inputs} input{'' if counts[-1:] == [1] else 's'}"
    if any(cell.has_bounds for cell in cells.values()):
        caption += ", 95% bootstrap confidence intervals"
    return Summary(cells, caption, tuple(dict.fromkeys(filter(None, notes))))


def _told_apart(evaluation: Evaluation, best: str, following: str, metric: str) -> str:
    """Whether the best method differs from the next, over the inputs that both explained."""
    found = evaluation.difference(best, following, metric)
    if found.n < FEWEST:
        return f"{FEWEST} inputs are needed to say whether methods differ" if found.n > 1 else ""
    if found.p_value < SIGNIFICANT:
        return f"{metric}: {best} differs from {following}, the next best ({found.p_text})"
    return f"{metric}: {best} may not differ from {following}, the next best ({found.p_text})"
