"""Tables of the page, from the records of the stages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from experiments.language_models.measuring import PLAN
from experiments.shared.intervals import difference, interval, show, verdict
from experiments.shared.pages import MISSING, table
from pertinent.array_types import Floats
from pertinent.stats import Interval

OURS = "bayesian-regression"


class Results:
    """Measures of all methods on the examples of a model."""

    def __init__(self, record: dict[str, Any]) -> None:
        self.examples: list[dict[str, Any]] = record["examples"]
        rows = (row for example in self.examples for row in example["found"])
        self.methods = list(dict.fromkeys(row["method"] for row in rows))

    def of_task(self, task: str, *, expected: bool = False) -> list[dict[str, Any]]:
        """Return the examples of a task; with `expected` only those with the expected answer."""
        return [e for e in self.examples if e["task"] == task and (e["expected"] or not expected)]

    def overview(self) -> str:
        """Return the number of examples by task, and the share that the model answered as expected."""
        rows = []
        for task in dict.fromkeys(example["task"] for example in self.examples):
            n, right = len(self.of_task(task)), len(self.of_task(task, expected=True))
            sentences = np.mean([example["sentences"] for example in self.of_task(task)])
            rows.append([task, str(n), f"{sentences:.1f}", f"{right / n:.0%}"])
        return table(["task", "prompts", "sentences", "answered as expected"], rows)

    def table(self, measure: str, form: str, examples: Sequence[dict[str, Any]], *, bold: bool = True) -> str:
        """Return a measure by method and budget, with 95% intervals; the largest of each budget in bold."""
        columns = [self.column(measure, budget, form, examples, bold=bold) for budget in PLAN.budgets]
        rows = [[code(name), *cells] for name, *cells in zip(self.methods, *columns, strict=True)]
        return table(["method", *map(str, PLAN.budgets)], rows)

    def column(
        self, measure: str, budget: int, form: str, examples: Sequence[dict[str, Any]], *, bold: bool
    ) -> list[str]:
        """Return the cells of a budget; a method that could explain less than 90% of examples has none."""
        means = [self.mean(examples, name, budget, measure) for name in self.methods]
        best = max((one.mean for one in means if one is not None), default=np.nan) if bold else np.inf
        cells = []
        for one in means:
            text = show(one, form)
            if one is not None and one.mean >= best - 1e-9:
                text = "**{}** {}".format(*text.split(" ", 1))
            cells.append(text)
        return cells

    def mean(
        self, examples: Sequence[dict[str, Any]], name: str, budget: int, measure: str
    ) -> Interval | None:
        """Return the mean of a measure; ``None`` if less than 90% of the examples have it."""
        values = values_of(examples, name, budget, measure)
        return interval(values) if len(values) and np.isnan(values).mean() <= 0.1 else None

    def picture(self) -> Figure:
        """Return the datamodeling score by number of evaluations."""
        figure, axes = plt.subplots(figsize=(8.0, 4.0), layout="constrained")
        for i, name in enumerate(self.methods):
            means = [self.mean(self.examples, name, budget, "lds") for budget in PLAN.budgets]
            drawn = [(b, one.mean) for b, one in zip(PLAN.budgets, means, strict=True) if one is not None]
            if len(drawn) < 2 or drawn[0][1] < 0:
                continue
            width = 2.5 if name == OURS else 1.0
            style = {"marker": "o", "markersize": 3, "linewidth": width, "color": f"C{i % 10}"}
            line = "-" if i < 10 else "--"
            axes.plot(*zip(*drawn, strict=True), label=name, linestyle=line, **style)
        axes.set_xscale("log", base=2, subs=())
        axes.set_xticks(PLAN.budgets, [str(budget) for budget in PLAN.budgets])
        axes.set_xlabel("evaluations")
        axes.set_ylabel("linear datamodeling score")
        figure.legend(fontsize=8, loc="outside right upper")
        return figure

    def differences(self) -> str:
        """Return the paired differences in LDS of the default method to each other method."""
        rows = []
        for name in self.methods:
            gaps = [self.gap(name, budget) for budget in PLAN.budgets]
            rows.append(
                [code(name), *(f"{show(gap, '+.3f')} {verdict(gap)}" if gap else MISSING for gap in gaps)]
            )
        return table(
            [f"`{OURS}` minus", *map(str, PLAN.budgets)], [row for row in rows if row[0] != code(OURS)]
        )

    def gap(self, name: str, budget: int) -> Any:
        """Return the paired difference in LDS; ``None`` if the budget is too small for the method."""
        theirs = values_of(self.examples, name, budget, "lds")
        if np.isnan(theirs).mean() > 0.1:
            return None
        both = ~np.isnan(theirs)
        return difference(values_of(self.examples, OURS, budget, "lds")[both], theirs[both])

    def half_the_passes(self) -> str:
        """Return the differences in LDS to ContextCite with twice as many evaluations."""
        cells = []
        for few, many in zip(PLAN.budgets[:-1], PLAN.budgets[1:], strict=True):
            ours = values_of(self.examples, OURS, few, "lds")
            cells.append(show(difference(ours, values_of(self.examples, "ContextCite", many, "lds")), "+.3f"))
        head = [f"{a} and {b}" for a, b in zip(PLAN.budgets[:-1], PLAN.budgets[1:], strict=True)]
        return table(["evaluations", *head], [["difference in LDS", *cells]])


def values_of(examples: Sequence[dict[str, Any]], name: str, budget: int, measure: str) -> Floats:
    """Return a measure of each example, NaN where the budget was too small."""
    values = []
    for example in examples:
        rows = [row for row in example["found"] if (row["method"], row["budget"]) == (name, budget)]
        values.append(rows[0].get(measure, np.nan) if rows else np.nan)
    return np.array(values, dtype=float)


def code(name: str) -> str:
    """Return a method's name, as code if it is one of the library."""
    return name if name.startswith(("ContextCite", "captum", "inseq")) else f"`{name}`"
