"""The table that `evaluate` and `compare` return."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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

_Cell = tuple[int, tuple[Any, int]]
"""The seed and the input that a value belongs to."""


@dataclass(frozen=True)
class EvaluationRow:
    """One number: the value of a metric for one explanation at one sparsity."""

    explanation: Index
    method: str
    metric: str
    sparsity: float | None
    value: Annotated[float, NOT_FINITE]


class Measures(Result):
    """Values of metrics by method, metric and input, and what follows from them."""

    rows: Sequence[Any]
    better: Mapping[str, str]
    within: Mapping[str, tuple[float, float]]

    @abstractmethod
    def _values(self, method: str, metric: str, by_sparsity: bool) -> dict[float | None, dict[_Cell, float]]:
        """One value per explanation, for each sparsity or averaged over them, by seed and input."""

    @property
    def methods(self) -> list[str]:
        """The methods measured, in the order given."""
        return list(dict.fromkeys(row.method for row in self.rows))

    def summary(self, *, by_sparsity: bool = False) -> Iterator[tuple[str, str, float | None, Interval]]:
        """Method, metric, sparsity (``None``: the mean over all) and the interval over inputs.

        If the explanations have several seeds, these are resampled, too.
        """
        for method in self.methods:
            for metric in self.better:
                within = self.within.get(metric)
                for sparsity, values in self._values(method, metric, by_sparsity).items():
                    interval = bootstrap(_arrays(values)[0], within=within, resamples=_RESAMPLES)
                    yield method, metric, sparsity, interval

    def differences(
        self,
        baseline_method: str | None = None,
        *,
        test: str = "bootstrap",
        correction: Literal["holm"] | None = "holm",
    ) -> Iterator[tuple[str, str, str, Difference]]:
        """Method, the method it is compared with, metric, and the difference of their values.

        For each pair of methods; with a `baseline_method`, for each other method and that one. Values
        are means over sparsities, paired by input and seed. An input that either lacks is left out. The
        interval and p-value are those of a paired ``"bootstrap"``, or of Student's paired ``"t"`` test.
        P-values are corrected for the number of differences by Holm's method, or with ``None`` not at all.
        """
        require(correction in ("holm", None), "correction", "'holm' or None", correction)
        pairs = [(b, a) for a, b in combinations(self.methods, 2)]
        if baseline_method is not None:
            if baseline_method not in self.methods:
                raise unknown("method", baseline_method, self.methods)
            pairs = [(method, baseline_method) for method in self.methods if method != baseline_method]
        names = [(*pair, metric) for pair in pairs for metric in self.better]
        found = [self._difference(*each, test) for each in names]
        corrected = found if correction is None else holm(found)
        yield from ((*each, own) for each, own in zip(names, corrected, strict=True))

    def difference(self, method: str, other: str, metric: str, *, test: str = "bootstrap") -> Difference:
        """By how much the values of one method exceed those of another over the same inputs.

        `test` is as in `differences`.
        """
        for each in (method, other):
            self._measured(each, metric)
        return self._difference(method, other, metric, test)

    def _difference(self, method: str, other: str, metric: str, test: str) -> Difference:
        """The difference, NaN where a metric measured nothing of one of the two."""
        if test not in _TESTS:
            raise unknown("test", test, _TESTS)
        a, b = _arrays(*(self._values(m, metric, by_sparsity=False).get(None, {}) for m in (method, other)))
        return paired_t(a, b) if test == "t" else paired_difference(a, b, resamples=_RESAMPLES)

    def mean(self, method: str, metric: str) -> float:
        """The mean over inputs and sparsities."""
        return nan_mean(_arrays(self._measured(method, metric))[0])

    def _measured(self, method: str, metric: str) -> dict[_Cell, float]:
        """One value per explanation, by seed and input; an error if there are none."""
        values = self._values(method, metric, by_sparsity=False)
        if not values:
            raise SettingError(f"Nothing was measured of {method!r} by {metric!r}.")
        return values[None]

    def to_dataframe(self) -> Any:
        """A pandas frame with one row per method, metric and sparsity."""
        rows = [
            {
                "method": method,
                "metric": metric,
                "better": self.better[metric],
                "sparsity": sparsity,
                "mean": interval.mean,
                "low": interval.low,
                "high": interval.high,
                "inputs": interval.n,
            }
            for method, metric, sparsity, interval in self.summary(by_sparsity=True)
        ]
        return optional("pandas").DataFrame(rows)

    def __repr__(self) -> str:
        lines = [f"{method:24} {metric:18} {i}" for method, metric, _, i in self.summary()]
        return visible("\n".join(lines))


@dataclass(repr=False)
class Evaluation(Measures):
    """Measures of many explanations, summarised by method and metric.

    `better` says for each metric whether lower or higher is better, `within` gives the smallest and the
    largest possible value of metrics that are shares of decisions. Each of `explanations` carries its own
    measures.
    """

    kind = "evaluation"
    suffixes = (".json", ".csv", ".md", ".tex")

    rows: list[EvaluationRow]
    explanations: Explanations = field(compare=False)
    better: Mapping[str, Literal["lower", "higher"]]
    failures: list[Failure] = field(default_factory=list)
    within: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    @classmethod
    def from_explanations(
        cls,
        explanations: Sequence[Explanation],
        better: Mapping[str, Literal["lower", "higher"]],
        failures: Iterable[Failure] = (),
        within: Mapping[str, tuple[float, float]] | None = None,
    ) -> Evaluation:
        """The table of those measures of explanations that are in `better`.

        A method that was used with several settings has a line for each.
        """
        names = labels([(e.method, e.settings) for e in explanations])
        rows = [
            EvaluationRow(index, names[index], metric, sparsity, value)
            for index, e in enumerate(explanations)
            for metric in better
            for sparsity, value in e.measures.get(metric, {}).items()
        ]
        return cls(rows, Explanations(explanations), better, list(failures), within or {})

    def _values(self, method: str, metric: str, by_sparsity: bool) -> dict[float | None, dict[_Cell, float]]:
        per: dict[float | None, dict[int, list[float]]] = {}
        for row in self.rows:
            if row.method == method and row.metric == metric:
                key = row.sparsity if by_sparsity else None
                per.setdefault(key, {}).setdefault(row.explanation, []).append(row.value)
        return {key: self._placed(values) for key, values in per.items()}

    def _placed(self, values: Mapping[int, list[float]]) -> dict[_Cell, float]:
        """The mean of each explanation's values, by seed and input; an input given twice counts as two."""
        placed: dict[_Cell, float] = {}
        seen: Counter[tuple[int, bytes]] = Counter()
        for number, of_one in values.items():
            e = self.explanations[number]
            name = e.seed, e.input.fingerprint
            placed[e.seed, (e.input.fingerprint, seen[name])] = float(np.mean(of_one))
            seen[name] += 1
        return placed

    def plot_curves(self) -> Figure:
        """A matplotlib figure: what was measured against the share of features, a line for each method.

        For metrics that are measured at several sparsities. With ``"comprehensiveness"`` it shows what is
        lost as the most important features are removed (a deletion curve), with ``"sufficiency"`` as only
        they are kept (an insertion curve).
        """
        figure: Figure = display(self, "curves")
        return figure

    @checked
    def plot_pareto(
        self, metric: str | None = None, cost: Literal["evaluations", "seconds"] = "evaluations"
    ) -> Figure:
        """A matplotlib figure of a metric against what an explanation costs, a point for each method.

        `metric` is by default the first that was measured. Methods that no other beats in both are joined.
        """
        figure: Figure = display(self, "pareto", metric, cost)
        return figure

    def to_markdown(self) -> str:
        """The table in Markdown, the best mean of each metric in bold, and what it says below."""
        return str(display(self, "markdown"))

    def to_latex(self) -> str:
        """The table as a LaTeX ``tabular`` with the rules of ``booktabs``; what it says is in comments."""
        return str(display(self, "latex"))

    @checked
    def save(self, path: str | Path) -> None:
        """Write a ``.json`` file that `read` reads back, or a ``.csv``, ``.md`` or ``.tex`` file."""
        write = {".md": self.to_markdown, ".tex": self.to_latex}.get(Path(path).suffix.lower())
        if write is None:
            super().save(path)
        else:
            write_text(Path(path), write() + "\n")

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings, lists and dicts: the explanations, and their measures."""
        return {**encode(self), "explanations": self.explanations.to_dict()}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Evaluation:
        """The inverse of `to_dict`; an `InputError` says what an evaluation cannot be made of."""
        explanations = Explanations.from_dict(PlainData(plain, "evaluation").mapping("explanations"))
        found = cls(explanations=explanations, **decode_fields(cls, plain))
        for row in found.rows:
            expect(row.explanation < len(explanations), "rows", "of the explanations", row.explanation)
            expect(row.metric in found.better, "rows", f"of {', '.join(found.better)}", row.metric)
        return found


def _arrays(*several: Mapping[_Cell, float]) -> list[Floats]:
    """Values as aligned arrays (seeds, inputs), NaN where a value is missing."""
    seeds = sorted({seed for values in several for seed, _ in values})
    inputs = sorted({name for values in several for _, name in values})
    return [
        np.array([[v.get((s, i), np.nan) for i in inputs] for s in seeds]).reshape(len(seeds), len(inputs))
        for v in several
    ]
