"""Records of these experiments: rows {experiment, method, settings, metric, input, value} of JSON lines.

An experiment is a data set and a model. `settings` are those of the metric or of the method, where the name
is not enough. A value is a number, or a list of numbers along a curve.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from pertinent.array_types import Floats


@dataclass
class Rows:
    """Rows of one experiment."""

    experiment: str
    rows: list[dict[str, Any]] = field(default_factory=list)

    def add(self, method: str, metric: str, values: Iterable[Any], **settings: Any) -> None:
        """Add a value for each input, in order."""
        head = {"experiment": self.experiment, "method": method, "settings": settings, "metric": metric}
        self.rows += [head | {"input": i, "value": rounded(value)} for i, value in enumerate(values)]


class Records:
    """Values of all rows in the files of a folder."""

    def __init__(self, folder: Path, pattern: str = "**/*.jsonl") -> None:
        self._values: dict[tuple[str, str, str, str], dict[int, Any]] = {}
        for path in sorted(folder.glob(pattern)):
            if "logs" not in path.relative_to(folder).parts:
                for line in path.read_text(encoding="utf-8").splitlines():
                    row = json.loads(line)
                    key = _key(row["experiment"], row["method"], row["metric"], row["settings"])
                    self._values.setdefault(key, {})[row["input"]] = row["value"]

    def raw(self, experiment: str, method: str, metric: str, **settings: Any) -> dict[int, Any]:
        """Return the value of each input that has one."""
        return self._values.get(_key(experiment, method, metric, settings), {})

    def values(self, experiment: str, method: str, metric: str, **settings: Any) -> Floats | None:
        """Return a number or curve for each input, NaN where it is missing; ``None`` without records."""
        by_input = self.raw(experiment, method, metric, **settings)
        if not by_input:
            return None
        values = np.full((max(by_input) + 1, *np.shape(next(iter(by_input.values())))), np.nan)
        for i, value in by_input.items():
            values[i] = np.nan if value is None else value
        return values

    def methods(self, experiment: str) -> list[str]:
        """Return the methods of an experiment, in the order in which they were run."""
        return list(dict.fromkeys(method for name, method, _, _ in self._values if name == experiment))


def _key(experiment: str, method: str, metric: str, settings: Mapping[str, Any]) -> tuple[str, str, str, str]:
    return experiment, method, metric, json.dumps(settings, sort_keys=True)


def rounded(value: Any, digits: int = 6) -> Any:
    """Return six digits, or four along a curve, and ``None`` for values that are not finite."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence | np.ndarray):
        return [rounded(one, 4) for one in value]
    return float(f"{value:.{digits}g}") if np.isfinite(value) else None
