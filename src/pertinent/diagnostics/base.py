"""What every diagnostic shares: its fields, its file format, and descriptions of its table and its chart."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from pertinent._optional import optional
from pertinent.array_types import Floats
from pertinent.config.registry import Registry
from pertinent.config.serialization import Index, PlainData, decode_fields, encode, expect
from pertinent.config.settings import Count, Share
from pertinent.outputs import Scale
from pertinent.results.base import Result
from pertinent.results.evaluation import Measures
from pertinent.results.explanation import Explanation, Explanations
from pertinent.results.failures import Failure
from pertinent.stats import FEWEST, Interval, bootstrap

if TYPE_CHECKING:
    from typing import Self

    from matplotlib.figure import Figure

_RESAMPLES = 2_000


@dataclass(frozen=True)
class TableRow:
    """A row of a table: its name, a text and bounds for each column, and perhaps a verdict."""

    name: str
    cells: tuple[tuple[str, str], ...]
    verdict: str = ""
    tone: Literal["", "quiet", "caution", "alarm"] = ""
    is_best: bool = False


@dataclass(frozen=True)
class DiagnosticTable:
    """What the terminal and HTML show of a diagnostic.

    `columns` are the headings of the rows' names and cells, `notes` say how to read the numbers and what is
    missing, and `answer` is a conclusion in words.
    """

    question: str
    columns: tuple[str, ...]
    rows: tuple[TableRow, ...]
    notes: tuple[str, ...]
    answer: str = ""


@dataclass(frozen=True)
class Line:
    """A line of a chart: means with intervals at places on the x-axis."""

    name: str
    places: tuple[float, ...]
    intervals: tuple[Interval, ...]
    is_best: bool = False


@dataclass(frozen=True)
class Chart:
    """What a plot shows of one or several diagnostics: panels by title, which share their axes.

    `ticks` are the labels of places on the x-axis, `percent` whether numbers are shown in percent, `limits`
    the ends of the y-axis, and `fails_from` the value from which a line fails.
    """

    panels: Mapping[str, tuple[Line, ...]]
    x_label: str
    y_label: str
    ticks: Mapping[float, str]
    percent: bool = False
    limits: tuple[float, float] | None = None
    fails_from: float | None = None


@dataclass(frozen=True, kw_only=True)
class Diagnostic(Result):
    """What was found out about a model or a method over many inputs.

    A subclass has its own dataclass for `rows`. `diagnostics.register` sets its `kind`, which names it in
    files.

    Attributes
    ----------
    rows
        What was measured, for each input.
    features
        The kind of features.
    noticed
        What was noticed in the run, such as a model that is random.
    failures
        Inputs that were left out, each with the reason.
    """

    rows: tuple[Any, ...]
    features: str
    noticed: tuple[str, ...] = ()
    failures: tuple[Failure, ...] = ()

    @property
    def inputs(self) -> int:
        """The number of inputs that were measured."""
        return len({row.input for row in self.rows})

    @property
    def warnings(self) -> tuple[str, ...]:
        """Reasons not to trust the result, or the method."""
        return self.noticed

    @abstractmethod
    def table(self) -> DiagnosticTable:
        """What the terminal and HTML show."""

    @classmethod
    @abstractmethod
    def chart(cls, several: Sequence[Self]) -> Chart:
        """What a plot of several results of this kind shows."""

    def check_fields(self) -> None:
        """Raise an `InputError` if the fields, each of which is valid, do not fit each other."""
        expect(len(self.rows) > 0, "rows", "at least one", self.rows)

    def conclusions(self) -> dict[str, Any]:
        """What follows from the rows, for other readers of the file."""
        return {}

    def to_dataframe(self) -> Any:
        """A pandas frame with a row for each of `rows`."""
        return optional("pandas").DataFrame([asdict(row) for row in self.rows])

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings, lists and dicts: every row, and the conclusions."""
        plain = encode(self)
        rows = plain.pop("rows")
        return {
            "kind": self.kind,
            **encode(self.conclusions()),
            **plain,
            "columns": list(rows[0]) if rows else [],
            "rows": [list(row.values()) for row in rows],
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """The inverse of `to_dict`; an `InputError` says what the result cannot be made of."""
        data = PlainData(plain, "diagnostic")
        kind, columns = data.value("kind"), data.texts("columns")
        expect(kind == cls.kind, "kind", repr(cls.kind), kind)
        rows = [dict(zip(columns, row, strict=False)) for row in data.value("rows", tuple[list[Any], ...])]
        found = cls(**decode_fields(cls, {**plain, "rows": rows}))
        found.check_fields()
        return found

    @classmethod
    def file_format(cls) -> str:
        """Return the format of all kinds of diagnostics."""
        return "pertinent diagnostic 2"

    def plot(self, *others: Self) -> Figure:
        """A matplotlib figure; `others` are drawn beside it."""
        return super().plot(*others)


diagnostics: Registry[Diagnostic] = Registry(
    "diagnostic", "pertinent.diagnostics", attribute="kind", needs=()
)


@dataclass(frozen=True, kw_only=True)
class MethodDiagnostic(Diagnostic):
    """A diagnostic of one method.

    Attributes
    ----------
    method, settings
        The method, and its settings that differ from their defaults.
    budget
        The budget that was given, or ``None``.
    removal
        The removal, with its settings.
    scale
        What the scores are of, as in `explain`: ``"natural"`` or ``"logit"``.
    """

    method: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    budget: Count | None = None
    removal: str
    scale: Scale = "natural"

    @property
    def name(self) -> str:
        """The method with its settings, as ``lime samples=50 budget=60``, but for those left as they are."""
        settings = dict(self.settings)
        settings |= {} if self.budget is None else {"budget": self.budget}
        settings |= {} if self.scale == "natural" else {"scale": self.scale}
        return label(self.method, settings)


def method_fields(explanation: Explanation, budget: int | None) -> dict[str, Any]:
    """The fields of a `MethodDiagnostic`, from one of the explanations that were compared."""
    return {
        "method": explanation.method,
        "settings": explanation.settings,
        "budget": budget,
        "removal": label(explanation.removal, explanation.request.removal_settings),
        "scale": explanation.request.scale,
        "features": explanation.input.granularity.partition(":")[0],
    }


def label(name: str, settings: Mapping[str, Any]) -> str:
    """The name of a method or removal, with the settings that differ from their defaults.

    >>> label("constant", {"value": 0.5})
    'constant value=0.5'
    """
    return " ".join([name, *(f"{k}={v}" for k, v in settings.items())])


def interval(values: Sequence[float] | Floats, within: tuple[float, float] | None = None) -> Interval:
    """The mean over inputs with its 95% bootstrap interval."""
    return bootstrap(np.asarray(values, dtype=np.float64), within=within, resamples=_RESAMPLES)


def cell(found: Interval, form: str = ".2f") -> tuple[str, str]:
    """The mean of an interval and its bounds, as ``("0.50", " [0.40–0.60]")``."""
    bounds = f" [{found.low:{form}}–{found.high:{form}}]" if found.bounds else ""
    return (f"{found.mean:{form}}" if np.isfinite(found.mean) else "–"), bounds


def percent_cell(found: Interval) -> tuple[str, str]:
    """The mean of an interval and its bounds in percent, as ``("50", " [40–60]")``."""
    return cell(Interval(100 * found.mean, 100 * found.low, 100 * found.high, found.n), ".0f")


def few_inputs(n: int) -> Iterator[str]:
    """A note that there are too few inputs for intervals."""
    if n < FEWEST:
        yield f"Only {n} input{'' if n == 1 else 's'}: with fewer than {FEWEST}, intervals are too narrow."


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
