"""The result of `stability`: how well explanations with different seeds agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pertinent._optional import optional
from pertinent.control_characters import visible
from pertinent.diagnostics.removal_check import label
from pertinent.diagnostics.seed_agreement import Agreement
from pertinent.intervals import Interval, bootstrap
from pertinent.outputs import Scale
from pertinent.results.failures import Failure
from pertinent.settings import checked

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MEASURES = ("spearman", "top_5", "top_10", "mse", "evaluations", "seconds")

_SHORTEST = 10
"""Inputs with fewer features are the first group; each group's inputs are up to twice as long."""

_RESAMPLES = 2_000


@dataclass(frozen=True)
class Length:
    """Inputs with `low` to `high` features, and the mean of each measure over them."""

    low: int
    high: int
    inputs: int
    measures: Mapping[str, Interval]

    def __str__(self) -> str:
        """As ``20–39``."""
        return f"{self.low}–{self.high}"


@dataclass(frozen=True)
class Stability:
    """How well explanations of the same inputs with different seeds agree (Yang et al. 2023, Sec. 4).

    Attributes
    ----------
    rows
        The agreement on each input.
    method, settings
        The method, and its settings that differ from their defaults.
    budget
        The budget that was given, or ``None``.
    removal
        The removal, with its settings.
    features
        The kind of features.
    seeds
        The seeds, from 0.
    scale
        What the scores are of, as in `explain`: ``"natural"`` or ``"logit"``.
    warnings
        Reasons not to trust it, such as a model that is random.
    failures
        Inputs that some seed could not explain, each with the reason.
    """

    rows: tuple[Agreement, ...]
    method: str
    settings: Mapping[str, Any]
    budget: int | None
    removal: str
    features: str
    seeds: tuple[int, ...]
    scale: Scale = "natural"
    warnings: tuple[str, ...] = ()
    failures: tuple[Failure, ...] = field(default=())

    @property
    def inputs(self) -> int:
        """How many inputs every seed explained."""
        return len(self.rows)

    @property
    def name(self) -> str:
        """The method with its settings, as ``lime samples=50 budget=60``, but for those left as they are."""
        settings = dict(self.settings)
        settings |= {} if self.budget is None else {"budget": self.budget}
        settings |= {} if self.scale == "natural" else {"scale": self.scale}
        return label(self.method, settings)

    @cached_property
    def summary(self) -> dict[str, Interval]:
        """The mean of each measure over inputs, with its 95% bootstrap interval.

        The `n` of an interval counts the inputs that have the measure.
        """
        return _summary(self.rows)

    @cached_property
    def by_length(self) -> list[Length]:
        """The same for inputs of 1–9, 10–19, 20–39, 40–79 … features, the shortest first.

        The groups do not depend on the inputs, so that two methods can be compared.
        """
        groups: dict[int, list[Agreement]] = {}
        for row in sorted(self.rows, key=lambda row: row.features):
            groups.setdefault(_lower_bound(row.features), []).append(row)
        return [Length(low, _upper_bound(low), len(own), _summary(own)) for low, own in groups.items()]

    def to_dataframe(self) -> Any:
        """A pandas frame with one row per input."""
        return optional("pandas").DataFrame([asdict(row) for row in self.rows])

    def to_json(self) -> str:
        """A JSON string: every row, and the means."""
        from pertinent.diagnostics.stability_files import to_json

        return to_json(self)

    @checked
    def save(self, path: str | Path) -> None:
        """Write a JSON file that `read` reads back."""
        from pertinent.diagnostics.stability_files import write

        write(self, path)

    @classmethod
    @checked
    def read(cls, path: str | Path) -> Stability:
        """Read a result that was saved."""
        from pertinent.diagnostics.stability_files import read

        return read(path)

    def plot(self, *others: Stability) -> Figure:
        """A matplotlib figure: Spearman's correlation against the number of features (Figure 3).

        `others` are drawn beside it, for example the same method with more samples.
        """
        from pertinent.report.stability_plot import plot_stability

        return plot_stability([self, *others])

    def __repr__(self) -> str:
        found = f"Spearman {self.summary['spearman']}, top 5 in common {self.summary['top_5']}"
        return f"<Stability of {visible(self.name)}, {len(self.seeds)} seeds, {self.inputs} inputs: {found}>"

    def _repr_html_(self) -> str:
        from pertinent.report.stability_table import html

        return html(self)

    def __rich__(self) -> Any:
        from pertinent.report.stability_table import rendered

        return rendered(self)


def _summary(rows: Sequence[Agreement]) -> dict[str, Interval]:
    columns = {name: np.array([getattr(row, name) for row in rows], dtype=np.float64) for name in MEASURES}
    return {name: bootstrap(values, resamples=_RESAMPLES) for name, values in columns.items()}


def _lower_bound(features: int) -> int:
    """The fewest features of an input's group.

    >>> [_lower_bound(n) for n in (1, 9, 10, 19, 20, 39, 40)]
    [1, 1, 10, 10, 20, 20, 40]
    """
    return 1 if features < _SHORTEST else _SHORTEST << ((features // _SHORTEST).bit_length() - 1)


def _upper_bound(low: int) -> int:
    return _SHORTEST - 1 if low < _SHORTEST else 2 * low - 1
