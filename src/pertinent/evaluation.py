"""The table that `evaluate` and `compare` return."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pertinent._optional import optional
from pertinent.errors import SettingError
from pertinent.explanation import Explanations, Failure
from pertinent.statistics import Interval, bootstrap


@dataclass(frozen=True)
class Measured:
    """One number: what a metric said of one explanation at one sparsity."""

    explanation: int
    method: str
    metric: str
    sparsity: float | None
    value: float


@dataclass
class Evaluation:
    """Measures of many explanations, summed up by method and metric.

    `better` says for each metric whether lower or higher is better. Each of `explanations`
    carries its own measures.
    """

    rows: list[Measured]
    explanations: Explanations
    better: Mapping[str, str]
    failures: list[Failure] = field(default_factory=list)

    @property
    def methods(self) -> list[str]:
        """The methods measured, in the order given."""
        return list(dict.fromkeys(row.method for row in self.rows))

    def summary(self, *, by_sparsity: bool = False) -> Iterator[tuple[str, str, float | None, Interval]]:
        """Method, metric, sparsity (``None``: the mean over all) and the interval over inputs."""
        for method in self.methods:
            for metric in self.better:
                for sparsity, values in self._values(method, metric, by_sparsity).items():
                    yield method, metric, sparsity, bootstrap(values)

    def mean(self, method: str, metric: str) -> float:
        """The mean over inputs and sparsities."""
        values = self._values(method, metric, by_sparsity=False)
        if not values:
            raise SettingError(f"Nothing was measured of {method!r} by {metric!r}.")
        return float(values[None].mean())

    def _values(self, method: str, metric: str, by_sparsity: bool) -> dict[float | None, Any]:
        """One value per explanation, for each sparsity or averaged over them."""
        per: dict[float | None, dict[int, list[float]]] = {}
        for row in self.rows:
            if row.method == method and row.metric == metric:
                key = row.sparsity if by_sparsity else None
                per.setdefault(key, {}).setdefault(row.explanation, []).append(row.value)
        return {key: np.array([np.mean(v) for v in values.values()]) for key, values in per.items()}

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
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from pertinent.report.html import evaluation_table

        return evaluation_table(self)

    def __rich__(self) -> Any:
        from pertinent.report.terminal import evaluation_table

        return evaluation_table(self)
