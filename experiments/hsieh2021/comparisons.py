"""Comparisons of rows of one experiment by differences over the same images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from experiments.hsieh2021 import paper
from experiments.hsieh2021.criteria import CLASS_LOGIT, MAXIMUM_LOGIT, area
from experiments.hsieh2021.records import Records
from experiments.hsieh2021.rows import MAGNITUDE, ROWS, authors_lines, lines
from experiments.shared.intervals import difference, verdict
from experiments.shared.pages import MISSING
from pertinent.array_types import Floats
from pertinent.stats import Difference

IRRELEVANT, RELEVANT = "robustness of irrelevant", "robustness of relevant"
OPTIMIZED = {"greedy-as": IRRELEVANT, "greedy-as, relevant": RELEVANT}
"""Criterion that each kind of Greedy-AS makes large or small."""

OTHERS = [name for name, row in ROWS.items() if row.paper in paper.NAMES and row.method != "greedy-as"]
"""The paper's other methods."""


@dataclass(frozen=True)
class Experiment:
    """Measures of one experiment in the records."""

    records: Records
    name: str

    def values(self, method: str, metric: str, **settings: object) -> Floats | None:
        """Return a number or a curve for each input."""
        return self.records.values(self.name, method, metric, **settings)

    def areas(self, method: str, metric: str, **settings: object) -> Floats | None:
        """Return a number for each input: the area where a curve was measured."""
        values = self.values(method, metric, **settings)
        return area(values) if values is not None and values.ndim == 2 else values

    def goodness(self, method: str, metric: str, **settings: object) -> Floats | None:
        """Return the areas with a sign by which larger is better."""
        areas = self.areas(method, metric, **settings)
        is_lower_better = metric == RELEVANT or metric.startswith("deletion")
        return -areas if areas is not None and is_lower_better else areas

    def ahead(self, one: str, other: str, metric: str, **settings: object) -> Difference | None:
        """Return by how much a method is better than another."""
        return difference(*(self.goodness(method, metric, **settings) for method in (one, other)))

    def best(self, methods: Sequence[str], metric: str, **settings: object) -> str | None:
        """Return the method with the best mean."""
        means = {}
        for method in methods:
            values = self.goodness(method, metric, **settings)
            if values is not None and np.isfinite(values).any():
                means[method] = float(np.nanmean(values))
        return max(means, key=lambda method: means[method]) if means else None

    def against(self, one: str, metric: str, **settings: object) -> dict[str, str]:
        """Return the verdicts of a row against the paper's other methods, signed scores in both orders."""
        verdicts = {line: verdict(self.ahead(one, line, metric, **settings)) for line in lines(OTHERS)}
        return {line: word for line, word in verdicts.items() if word != MISSING}

    def place(self, one: str, metric: str, *, as_authors: bool = False, **settings: object) -> str:
        """Return the place of a row's mean among the paper's other methods, such as "2 of 9".

        Each method counts in the better of its orders, or in the order of the authors.
        """
        own = self.goodness(one, metric, **settings)
        if own is None:
            return MISSING
        others = []
        for name in OTHERS:
            orders = authors_lines(name) if as_authors else lines([name])
            areas = [self.goodness(line, metric, **settings) for line in orders]
            means = [float(np.nanmean(values[: len(own)])) for values in areas if values is not None]
            if means and name != one.removesuffix(MAGNITUDE):
                others.append(means[0] if as_authors else max(means))
        return f"{1 + sum(mean > float(np.nanmean(own)) for mean in others)} of {len(others) + 1}"

    @property
    def main_logit(self) -> str:
        """Return the maximum logit where it was recorded, else the logit of the predicted class."""
        recorded = self.values("random", "insertion" + MAXIMUM_LOGIT, reference="uniform")
        return CLASS_LOGIT if recorded is None else MAXIMUM_LOGIT


def paper_place(areas: dict[str, float], kind: str) -> int:
    """Return the place of Greedy-AS among the paper's nine methods."""
    own = areas["Greedy-AS"]
    return 1 + sum(value > own if kind == "insertion" else value < own for value in areas.values())


def reference_name(reference: float | str) -> str:
    """Return the name of a reference value in the tables."""
    return "uniform noise" if reference == "uniform" else f"{reference:g}"
