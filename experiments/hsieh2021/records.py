"""Records of experiments: JSON lines {experiment, method, settings, metric, input, value}.

An experiment is a data set and a model. `settings` are those of the metric or of the method, where one name
is not enough. A value is a number, or a list of them along a curve.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pertinent.array_types import Floats
from pertinent.stats import Difference, Interval, bootstrap, paired_difference

sys.path.append(str(Path(__file__).parents[1]))

from shared.legacy import fill_in, table

__all__ = ["Records", "Writer", "difference", "fill_in", "interval", "shown", "table"]

RESAMPLES = 10_000


@dataclass(frozen=True)
class Writer:
    """Appends records of one experiment to a file, so that a run that is stopped keeps what it found."""

    path: Path
    experiment: str

    def write(self, method: str, metric: str, values: Iterable[Any], **settings: Any) -> None:
        """One value for each input, in their order."""
        with self.path.open("a", encoding="utf-8") as file:
            for number, value in enumerate(values):
                record: dict[str, Any] = {
                    "experiment": self.experiment,
                    "method": method,
                    "settings": settings,
                }
                record |= {"metric": metric, "input": number, "value": _rounded(value)}
                file.write(json.dumps(record) + "\n")


class Records:
    """What the files of a folder hold."""

    def __init__(self, folder: Path, pattern: str = "*.jsonl") -> None:
        self._values: dict[tuple[str, str, str, str], dict[int, Any]] = {}
        for path in sorted(folder.glob(pattern)):
            for line in path.read_text(encoding="utf-8").splitlines():
                one = json.loads(line)
                key = _key(one["experiment"], one["method"], one["metric"], one["settings"])
                self._values.setdefault(key, {})[one["input"]] = one["value"]

    def values(self, experiment: str, method: str, metric: str, **settings: Any) -> Floats | None:
        """One value (or curve) for each input, NaN where it is missing; ``None`` if nothing was measured."""
        found = self._values.get(_key(experiment, method, metric, settings))
        if found is None:
            return None
        shape = (max(found) + 1, *np.shape(next(iter(found.values()))))
        values = np.full(shape, np.nan)
        for number, value in found.items():
            values[number] = np.nan if value is None else value
        return values

    def methods(self, experiment: str) -> list[str]:
        """The methods of an experiment, in the order in which they were run."""
        return list(dict.fromkeys(method for own, method, _, _ in self._values if own == experiment))


def _key(experiment: str, method: str, metric: str, settings: Mapping[str, Any]) -> tuple[str, str, str, str]:
    return experiment, method, metric, json.dumps(settings, sort_keys=True)


def _rounded(value: Any, digits: int = 6) -> Any:
    """Six digits, or four along a curve, which are enough for tables; what is not finite is null."""
    if isinstance(value, Sequence | np.ndarray):
        return [_rounded(one, 4) for one in value]
    return float(f"{value:.{digits}g}") if np.isfinite(value) else None


def interval(values: Floats) -> Interval:
    """The mean over inputs with its 95% bootstrap interval."""
    return bootstrap(values, resamples=RESAMPLES)


def difference(more: Floats | None, less: Floats | None) -> Difference | None:
    """By how much the first is larger, over the inputs that both have; ``None`` if one is missing."""
    if more is None or less is None:
        return None
    n = min(len(more), len(less))
    return paired_difference(more[:n], less[:n], resamples=RESAMPLES)


def shown(values: Floats | None, digits: int = 2) -> str:
    """As ``0.81 [0.79, 0.83]``."""
    if values is None or not np.isfinite(values).any():
        return "–"
    found = interval(values)
    bounds = f" [{found.low:.{digits}f}, {found.high:.{digits}f}]" if np.isfinite(found.low) else ""
    return f"{found.mean:.{digits}f}{bounds}"
