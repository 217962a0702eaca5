"""Base classes of diagnostics: fields, file format, and the content of the table and the chart."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from pertinent._optional import optional
from pertinent.array_types import Floats
from pertinent.config.registry import Registry
from pertinent.config.serialization import PlainData, decode_fields, encode, expect
from pertinent.config.settings import Count
from pertinent.inputs.base import Input
from pertinent.number_format import count
from pertinent.outputs import Scale
from pertinent.results.base import Result
from pertinent.results.explanation import Explanation
from pertinent.results.failures import Failure
from pertinent.stats import FEWEST, Interval, bootstrap

if TYPE_CHECKING:
    from typing import Self

    from matplotlib.figure import Figure

_RESAMPLES = 2_000


@dataclass(frozen=True)
class TableRow:
    """A row of a table: its name, text and interval bounds for each column, and an optional verdict."""

    name: str
    cells: tuple[tuple[str, str], ...]
    verdict: str = ""
    tone: Literal["", "quiet", "caution", "alarm"] = ""
    is_best: bool = False


@dataclass(frozen=True)
class DiagnosticTable:
    """Content of the terminal and HTML views of a diagnostic.

    Attributes
    ----------
    question, answer
        Title, and an optional conclusion in words.
    columns
        Headings: one for the row names, and one for each cell of a row.
    rows
        The rows.
    notes
        Notes on how to read the numbers, and on missing values.
    """

    question: str
    columns: tuple[str, ...]
    rows: tuple[TableRow, ...]
    notes: tuple[str, ...]
    answer: str = ""


@dataclass(frozen=True)
class Line:
    """A line of a chart: means with intervals by x-coordinate."""

    name: str
    intervals: Mapping[float, Interval]
    is_best: bool = False


@dataclass(frozen=True)
class Chart:
    """Content of a plot: the lines of each panel; all panels share their axes.

    Attributes
    ----------
    panels
        Lines of each panel, by title.
    x_label, y_label
        Axis labels.
    ticks
        Labels of x-coordinates.
    percent
        Whether to show numbers in percent.
    limits
        Range of the y-axis.
    fails_from
        Value from which on a line fails.
    """

    panels: Mapping[str, tuple[Line, ...]]
    x_label: str
    y_label: str
    ticks: Mapping[float, str]
    percent: bool = False
    limits: tuple[float, float] | None = None
    fails_from: float | None = None

    @classmethod
    def merge(cls, charts: Sequence[Chart]) -> Chart:
        """Merge charts into one with all lines; a tick with conflicting labels shows its x-coordinate."""
        titles = ["; ".join(dict.fromkeys(panel)) for panel in zip(*(c.panels for c in charts), strict=True)]
        lines = (tuple(chain(*panel)) for panel in zip(*(c.panels.values() for c in charts), strict=True))
        ticks: dict[float, str] = {}
        for x, label in chain(*(c.ticks.items() for c in charts)):
            ticks[x] = label if ticks.get(x, label) == label else f"{x:g}"
        panels = dict(zip(titles, lines, strict=True))
        return replace(charts[0], panels=panels, ticks=dict(sorted(ticks.items())))


@dataclass(frozen=True, kw_only=True)
class Diagnostic(Result):
    """Base class of measurements of a model or method over many inputs.

    A subclass defines a dataclass for `rows`. `diagnostics.register` sets its `kind`, which identifies it in
    files.

    Attributes
    ----------
    rows
        Measurements of each input.
    features
        Kind of features.
    run_warnings
        Warnings of the run, for example that the model is random.
    failures
        Inputs that failed, with reasons.
    """

    rows: tuple[Any, ...]
    features: str
    run_warnings: tuple[str, ...] = ()
    failures: tuple[Failure, ...] = ()

    @property
    def inputs(self) -> int:
        """Return the number of measured inputs."""
        return len({row.input for row in self.rows})

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return reasons to distrust the result or the method."""
        return self.run_warnings

    @abstractmethod
    def table(self) -> DiagnosticTable:
        """Return the content of the terminal and HTML views."""

    @abstractmethod
    def chart(self) -> Chart:
        """Return the content of the plot."""

    def check_fields(self) -> None:
        """Raise an `InputError` if valid fields are inconsistent with each other."""
        expect(len(self.rows) > 0, "rows", "at least one", self.rows)

    def conclusions(self) -> dict[str, Any]:
        """Return the conclusions from the rows, for other readers of the file."""
        return {}

    def to_dataframe(self) -> Any:
        """Return a pandas frame with one row per element of `rows`."""
        return optional("pandas").DataFrame([asdict(row) for row in self.rows])

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, the rows and the conclusions as plain numbers, strings, lists and dicts."""
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
        """Create the result from the output of `to_dict`; an `InputError` names an invalid field."""
        data = PlainData(plain, "diagnostic")
        kind, columns = data.value("kind"), data.texts("columns")
        expect(kind == cls.kind, "kind", repr(cls.kind), kind)
        rows = [dict(zip(columns, row, strict=False)) for row in data.value("rows", tuple[list[Any], ...])]
        diagnostic = cls(**decode_fields(cls, {**plain, "rows": rows}))
        diagnostic.check_fields()
        return diagnostic

    @classmethod
    def file_format(cls) -> str:
        """Return the file format shared by all diagnostics."""
        return "pertinent diagnostic 3"

    def plot(self, *others: Self) -> Figure:
        """Return a matplotlib figure of this result and `others`."""
        return super().plot(*others)


diagnostics: Registry[Diagnostic] = Registry(
    "diagnostic", "pertinent.diagnostics", attribute="kind", needs=()
)


@dataclass(frozen=True, kw_only=True)
class MethodDiagnostic(Diagnostic):
    """Diagnostic of one method.

    Attributes
    ----------
    method, settings
        Method, and its settings that differ from the defaults.
    budget
        Requested budget, or ``None``.
    removal
        Removal with its settings.
    scale
        Scale of the scores, as in `explain`: ``"natural"`` or ``"logit"``.
    """

    method: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    budget: Count | None = None
    removal: str
    scale: Scale = "natural"

    @property
    def name(self) -> str:
        """Return the method with its non-default settings, as in ``lime samples=50 budget=60``."""
        settings = dict(self.settings)
        settings |= {} if self.budget is None else {"budget": self.budget}
        settings |= {} if self.scale == "natural" else {"scale": self.scale}
        return label(self.method, settings)


def method_fields(explanation: Explanation, budget: int | None) -> dict[str, Any]:
    """Return the fields of a `MethodDiagnostic` that are determined by one of its explanations."""
    return {
        "method": explanation.method,
        "settings": explanation.settings,
        "budget": budget,
        "removal": label(explanation.removal, explanation.request.removal_settings),
        "scale": explanation.request.scale,
        "features": feature_kind(explanation.input),
    }


def feature_kind(input: Input) -> str:
    """Return the kind of features without their size: ``patches`` for ``patches:8``."""
    return input.granularity.partition(":")[0]


def label(name: str, settings: Mapping[str, Any]) -> str:
    """Return the name of a method or removal, followed by its settings.

    >>> label("constant", {"value": 0.5})
    'constant value=0.5'
    """
    return " ".join([name, *(f"{k}={v}" for k, v in settings.items())])


def interval(values: Sequence[float] | Floats, within: tuple[float, float] | None = None) -> Interval:
    """Compute the mean over inputs with its 95% bootstrap interval."""
    return bootstrap(np.asarray(values, dtype=np.float64), within=within, resamples=_RESAMPLES)


def cell(interval: Interval, form: str = ".2f", scale: float = 1.0) -> tuple[str, str]:
    """Format a mean and its bounds, multiplied by `scale`, as ``("0.50", " [0.40–0.60]")``."""
    mean, low, high = (f"{scale * value:{form}}" for value in (interval.mean, interval.low, interval.high))
    return (mean if np.isfinite(interval.mean) else "–"), f" [{low}–{high}]" if interval.bounds else ""


def few_inputs(n: int) -> Iterator[str]:
    """Yield a note if there are too few inputs for reliable intervals."""
    if n < FEWEST:
        yield f"Only {count(n, 'input')}: with fewer than {FEWEST}, intervals are too narrow."
