"""Evaluations: measures of many explanations, summarised by method and metric."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np

from pertinent._optional import optional
from pertinent.array_types import Floats
from pertinent.config.serialization import NOT_FINITE, Index, PlainData, decode_fields, encode, expect
from pertinent.config.settings import checked, labels
from pertinent.errors import SettingError, require, unknown
from pertinent.files import write_text
from pertinent.printable import visible
from pertinent.results.base import Result, display
from pertinent.results.explanation import Explanation, Explanations
from pertinent.results.failures import Failure
from pertinent.stats import Difference, Interval, bootstrap, holm, nan_mean, paired_difference, paired_t

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_RESAMPLES = 10_000
_TESTS = ("bootstrap", "t")

_Unit = tuple[int, tuple[Any, int]]
"""Seed and input of a value. The last number distinguishes inputs with equal content."""


@dataclass(frozen=True)
class EvaluationRow:
    """Value of a metric for one explanation at one sparsity."""

    explanation: Index
    method: str
    metric: str
    sparsity: float | None
    value: Annotated[float, NOT_FINITE]


@dataclass(repr=False)
class Evaluation(Result):
    """Measures of many explanations, summarised by method and metric.

    Attributes
    ----------
    rows
        Value of each metric for each explanation and sparsity.
    explanations
        The explanations, each with its own measures.
    better
        Whether ``"lower"`` or ``"higher"`` values are better, by metric.
    failures
        Inputs that could not be explained or measured, with reasons.
    within
        Smallest and largest possible value of metrics that are shares of decisions.
    settings
        Settings of the measurement, if it was not made by metrics of `evaluate`.
    """

    kind = "evaluation"
    suffixes = (".json", ".csv", ".md", ".tex")

    rows: list[EvaluationRow]
    explanations: Explanations = field(compare=False)
    better: Mapping[str, Literal["lower", "higher"]]
    failures: list[Failure] = field(default_factory=list)
    within: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_explanations(
        cls,
        explanations: Sequence[Explanation],
        better: Mapping[str, Literal["lower", "higher"]],
        failures: Iterable[Failure] = (),
        within: Mapping[str, tuple[float, float]] | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> Evaluation:
        """Collect the measures of explanations whose metrics are in `better`.

        A method with different settings counts as several methods.
        """
        names = labels([(e.method, e.settings) for e in explanations])
        rows = [
            EvaluationRow(index, names[index], metric, sparsity, value)
            for index, e in enumerate(explanations)
            for metric in better
            for sparsity, value in e.measures.get(metric, {}).items()
        ]
        return cls(rows, Explanations(explanations), better, list(failures), within or {}, settings or {})

    @property
    def methods(self) -> list[str]:
        """Return the measured methods, in order."""
        return list(dict.fromkeys(row.method for row in self.rows))

    def summary(self, *, by_sparsity: bool = False) -> Iterator[tuple[str, str, float | None, Interval]]:
        """Yield the method, metric, sparsity (``None``: mean over all) and interval over inputs.

        If the explanations have several seeds, the bootstrap also resamples seeds.
        """
        for method in self.methods:
            for metric in self.better:
                within = self.within.get(metric)
                for sparsity, values in self._values(method, metric, by_sparsity).items():
                    interval = bootstrap(_align(values)[0], within=within, resamples=_RESAMPLES)
                    yield method, metric, sparsity, interval

    def differences(
        self,
        baseline_method: str | None = None,
        *,
        test: str = "bootstrap",
        correction: Literal["holm"] | None = "holm",
    ) -> Iterator[tuple[str, str, str, Difference]]:
        """Yield a method, the method it is compared with, the metric, and the difference of their means.

        The pairs are all pairs of methods, or each method with the `baseline_method`. Values are means over
        sparsities, paired by input and seed; inputs without both values are ignored. The interval and p-value
        come from a paired ``"bootstrap"`` or Student's paired ``"t"`` test. P-values are corrected for the
        number of differences by Holm's method; ``None`` omits the correction.
        """
        require(correction in ("holm", None), "correction", "'holm' or None", correction)
        pairs = [(b, a) for a, b in combinations(self.methods, 2)]
        if baseline_method is not None:
            if baseline_method not in self.methods:
                raise unknown("method", baseline_method, self.methods)
            pairs = [(method, baseline_method) for method in self.methods if method != baseline_method]
        names = [(*pair, metric) for pair in pairs for metric in self.better]
        differences = [self._difference(*name, test) for name in names]
        if correction is not None:
            differences = holm(differences)
        yield from ((*name, difference) for name, difference in zip(names, differences, strict=True))

    def difference(self, method: str, other: str, metric: str, *, test: str = "bootstrap") -> Difference:
        """Compute by how much the values of one method exceed those of another on the same inputs.

        `test` is as in `differences`.
        """
        for name in (method, other):
            self._measured(name, metric)
        return self._difference(method, other, metric, test)

    def _difference(self, method: str, other: str, metric: str, test: str) -> Difference:
        """Compute the difference; NaN if a metric has no values for one of the two methods."""
        if test not in _TESTS:
            raise unknown("test", test, _TESTS)
        a, b = _align(*(self._values(m, metric, by_sparsity=False).get(None, {}) for m in (method, other)))
        return paired_t(a, b) if test == "t" else paired_difference(a, b, resamples=_RESAMPLES)

    def mean(self, method: str, metric: str) -> float:
        """Compute the mean over inputs and sparsities."""
        return nan_mean(_align(self._measured(method, metric))[0])

    def _measured(self, method: str, metric: str) -> dict[_Unit, float]:
        """Return the value of each explanation by seed and input; raise an error if there are none."""
        values = self._values(method, metric, by_sparsity=False)
        if not values:
            raise SettingError(f"There are no values of the metric {metric!r} for the method {method!r}.")
        return values[None]

    def _values(self, method: str, metric: str, by_sparsity: bool) -> dict[float | None, dict[_Unit, float]]:
        """Return the mean value of each explanation, for each sparsity or over all of them."""
        values: dict[float | None, dict[_Unit, list[float]]] = {}
        for row in self.rows:
            if row.method == method and row.metric == metric:
                by_unit = values.setdefault(row.sparsity if by_sparsity else None, {})
                by_unit.setdefault(self._units[method, row.explanation], []).append(row.value)
        return {
            sparsity: {unit: float(np.mean(several)) for unit, several in by_unit.items()}
            for sparsity, by_unit in values.items()
        }

    @cached_property
    def _units(self) -> dict[tuple[str, int], _Unit]:
        """Return the seed and input of each method and explanation; repeated inputs count separately."""
        units: dict[tuple[str, int], _Unit] = {}
        repeats: Counter[tuple[str, int, bytes]] = Counter()
        for method, index in sorted({(row.method, row.explanation) for row in self.rows}):
            e = self.explanations[index]
            unit = method, e.seed, e.input.fingerprint
            units[method, index] = e.seed, (e.input.fingerprint, repeats[unit])
            repeats[unit] += 1
        return units

    def to_dataframe(self) -> Any:
        """Return a pandas frame with one row per method, metric and sparsity."""
        rows = [
            (method, metric, self.better[metric], sparsity, i.mean, i.low, i.high, i.n)
            for method, metric, sparsity, i in self.summary(by_sparsity=True)
        ]
        columns = ["method", "metric", "better", "sparsity", "mean", "low", "high", "inputs"]
        return optional("pandas").DataFrame(rows, columns=columns)

    def plot_curves(self) -> Figure:
        """Return a matplotlib figure of the measures by share of features, with a line per method.

        It shows metrics measured at several sparsities: for ``"comprehensiveness"`` the loss when the most
        important features are removed (a deletion curve), for ``"sufficiency"`` the loss when only they are
        kept (an insertion curve).
        """
        figure: Figure = display(self, "curves")
        return figure

    @checked
    def plot_pareto(
        self, metric: str | None = None, cost: Literal["evaluations", "seconds"] = "evaluations"
    ) -> Figure:
        """Return a matplotlib figure of a metric by the cost of an explanation, with a point per method.

        `metric` is by default the first measured metric. A line joins the methods on the Pareto front.
        """
        figure: Figure = display(self, "pareto", metric, cost)
        return figure

    def to_markdown(self) -> str:
        """Return the table and its notes in Markdown, with the best mean of each metric in bold."""
        return str(display(self, "markdown"))

    def to_latex(self) -> str:
        """Return the table as a LaTeX ``tabular`` with ``booktabs`` rules; the notes are comments."""
        return str(display(self, "latex"))

    @checked
    def save(self, path: str | Path) -> None:
        """Write a ``.json`` file, which `read` reads, or a ``.csv``, ``.md`` or ``.tex`` file."""
        write = {".md": self.to_markdown, ".tex": self.to_latex}.get(Path(path).suffix.lower())
        if write is None:
            super().save(path)
        else:
            write_text(Path(path), write() + "\n")

    def to_dict(self) -> dict[str, Any]:
        """Return the explanations and their measures as plain numbers, strings, lists and dicts."""
        return {**encode(self), "explanations": self.explanations.to_dict()}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Evaluation:
        """Create an evaluation from the output of `to_dict`; an `InputError` names an invalid field."""
        explanations = Explanations.from_dict(PlainData(plain, "evaluation").mapping("explanations"))
        evaluation = cls(explanations=explanations, **decode_fields(cls, plain))
        for row in evaluation.rows:
            expect(
                row.explanation < len(explanations), "rows", "about existing explanations", row.explanation
            )
            expect(row.metric in evaluation.better, "rows", f"of {', '.join(evaluation.better)}", row.metric)
        return evaluation

    def __repr__(self) -> str:
        lines = [f"{method:24} {metric:18} {i}" for method, metric, _, i in self.summary()]
        return visible("\n".join(lines))


def _align(*several: Mapping[_Unit, float]) -> list[Floats]:
    """Return values as aligned arrays (seeds, inputs), with NaN for missing values."""
    seeds = sorted({seed for values in several for seed, _ in values})
    inputs = sorted({name for values in several for _, name in values})
    return [
        np.array([[v.get((s, i), np.nan) for i in inputs] for s in seeds]).reshape(len(seeds), len(inputs))
        for v in several
    ]
