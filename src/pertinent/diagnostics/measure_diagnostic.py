"""Diagnostics that measure the explanations of each input, by one method or several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from pertinent.decoding import Index, expect
from pertinent.diagnostics.base import Chart, Diagnostic, DiagnosticTable, Line, TableRow, cell, few_inputs
from pertinent.intervals import Interval
from pertinent.results.evaluation import Measures
from pertinent.results.explanation import Explanations
from pertinent.settings import Share

if TYPE_CHECKING:
    from typing_extensions import Self


@dataclass(frozen=True)
class InputMeasure:
    """The value of a measure for the explanation of one input by one method.

    `input` is the position of the input among those given, and `id` the user's own name for it. Where
    `sparsity` is ``None``, the value is that of the whole explanation.
    """

    input: Index
    method: str
    sparsity: Share | None
    value: float
    id: str | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class MeasureDiagnostic(Measures, Diagnostic):
    """A diagnostic that measures explanations, so that methods can be compared.

    Attributes
    ----------
    rows
        The measure of each explanation.
    better
        The name of the measure, and whether ``"lower"`` or ``"higher"`` is better.
    explanations
        The explanations, which carry their measures; they are not saved.
    """

    question: ClassVar[str]

    rows: tuple[InputMeasure, ...]
    better: Mapping[str, Literal["lower", "higher"]]
    within: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    explanations: Explanations = field(default_factory=lambda: Explanations([]), compare=False)

    def _values(self, method: str, metric: str, by_sparsity: bool) -> dict[float | None, dict[Any, float]]:
        found: dict[float | None, dict[int, list[float]]] = {}
        for row in self.rows:
            if row.method == method and metric in self.better:
                key = row.sparsity if by_sparsity else None
                found.setdefault(key, {}).setdefault(row.input, []).append(row.value)
        return {
            key: {(0, (index, 0)): float(np.mean(values)) for index, values in own.items()}
            for key, own in found.items()
        }

    def check_fields(self) -> None:
        """There must be one measure."""
        super().check_fields()
        expect(len(self.better) == 1, "better", "of one measure", dict(self.better))

    def conclusions(self) -> dict[str, Any]:
        """The mean of every method."""
        return {"means": {method: found.mean for method, _, _, found in self.summary()}}

    def table(self) -> DiagnosticTable:
        """A row for each method, with a column for each sparsity."""
        sparsities = sorted({row.sparsity for row in self.rows}, key=lambda sparsity: sparsity or 0.0)
        nothing = Interval(np.nan, np.nan, np.nan, 0)
        rows = []
        for method, found in _by_method(self).items():
            cells = [cell(found.get(sparsity, nothing)) for sparsity in sparsities]
            rows.append(TableRow(method, ((f"{max(own.n for own in found.values()):,}", ""), *cells)))
        (measure, better), *_ = self.better.items()
        headings = ["mean" if sparsity is None else f"{100 * sparsity:g}%" for sparsity in sparsities]
        compared = [f"{method} − {other}: {found}." for method, other, _, found in self.differences()]
        note = f"{measure}, {better} is better; {self.features}. 95% bootstrap intervals over inputs."
        return DiagnosticTable(
            question=self.question,
            columns=("method", "inputs", *headings),
            rows=tuple(rows),
            notes=(note, *few_inputs(self.inputs), *compared),
        )

    @classmethod
    def chart(cls, several: Sequence[Self]) -> Chart:
        """The measure against the sparsity, a line for each method of each result."""
        first = several[0]
        lines = [
            Line(method, tuple(sparsity or 0.0 for sparsity in found), tuple(found.values()))
            for one in several
            for method, found in _by_method(one).items()
        ]
        places = sorted({place for line in lines for place in line.places})
        (measure, better), *_ = first.better.items()
        return Chart(
            panels={f"{first.inputs:,} inputs, 95% intervals": tuple(lines)},
            x_label=f"{first.features} chosen, %",
            y_label=f"{measure}, {better} is better",
            ticks={place: f"{100 * place:g}" if place else "all" for place in places},
        )


def _by_method(diagnostic: MeasureDiagnostic) -> dict[str, dict[float | None, Interval]]:
    """The mean over inputs for each method and sparsity."""
    found: dict[str, dict[float | None, Interval]] = {}
    for method, _, sparsity, mean in diagnostic.summary(by_sparsity=True):
        found.setdefault(method, {})[sparsity] = mean
    return found
