"""Reading and writing the result of `stability` as JSON."""

from __future__ import annotations

import json
from dataclasses import astuple, fields
from math import inf, isfinite
from pathlib import Path
from typing import Any

import numpy as np

from pertinent.decoding import PlainData, expect
from pertinent.diagnostics.seed_agreement import Agreement
from pertinent.diagnostics.stability_result import Stability
from pertinent.errors import FileError, InputError
from pertinent.files import read_json, write_text
from pertinent.outputs import SCALES
from pertinent.results.failures import failures_from_plain, failures_to_plain

_FORMAT = "pertinent stability 1"
_COLUMNS = tuple(f.name for f in fields(Agreement))
_PLAIN = ("method", "budget", "removal", "features", "seeds", "scale", "warnings")
_RANGES = {"spearman": (-1.0, 1.0), "top_5": (0.0, 1.0), "top_10": (0.0, 1.0), "mse": (0.0, inf)}


def to_json(stability: Stability) -> str:
    """Every row, and the means derived from them, for readers other than `read`."""
    means = {name: _or_none(interval.mean) for name, interval in stability.summary.items()}
    plain: dict[str, Any] = {"format": _FORMAT, "means": means}
    plain |= {name: getattr(stability, name) for name in _PLAIN}
    plain["settings"] = {name: _plain(value) for name, value in stability.settings.items()}
    plain["failures"] = failures_to_plain(stability.failures)
    plain["columns"] = _COLUMNS
    plain["rows"] = [[_or_none(value) for value in astuple(row)] for row in stability.rows]
    return json.dumps(plain, ensure_ascii=False)


def write(stability: Stability, path: str | Path) -> None:
    """Write a JSON file, atomically."""
    if Path(path).suffix.lower() != ".json":
        raise FileError(f"The name of {str(path)!r} must end in .json.")
    write_text(Path(path), to_json(stability) + "\n")


def read(path: str | Path) -> Stability:
    """Read a result that was saved."""
    plain = read_json(Path(path))
    try:
        return _stability(PlainData(plain, "stability"))
    except InputError as error:
        raise FileError(f"{str(path)!r} is damaged or holds no stability: {error}") from error


def _stability(data: PlainData) -> Stability:
    data.text("format", (_FORMAT,))
    seeds = tuple(data.wholes("seeds", None).tolist())
    expect(len(set(seeds)) == len(seeds) > 1, "seeds", "at least 2, all different", seeds)
    rows = tuple(map(_row, data.items("rows")))
    distinct = len({row.input for row in rows}) == len(rows) > 0
    expect(distinct, "rows", "at least one, each of another input", f"{len(rows)} rows")
    scale: Any = data.text("scale", SCALES)
    return Stability(
        rows=rows,
        **{name: data.text(name) for name in ("method", "removal", "features")},
        settings=data.mapping("settings"),
        budget=data.whole("budget", least=1) if "budget" in data else None,
        seeds=seeds,
        scale=scale,
        warnings=data.texts("warnings"),
        failures=tuple(failures_from_plain(data.value("failures"))),
    )


def _row(row: Any) -> Agreement:
    data = PlainData(dict(zip(_COLUMNS, row, strict=False)) if isinstance(row, list) else row, "rows")
    measures = {}
    for name, (low, high) in _RANGES.items():
        measures[name] = data.number(name) if name in data else np.nan
        expect(not measures[name] < low and not measures[name] > high, name, f"from {low:g} to {high:g}", row)
    costs = {name: data.number(name) for name in ("evaluations", "seconds")}
    expect(min(costs.values()) >= 0, "evaluations and seconds", "at least 0", costs)
    return Agreement(
        input=data.whole("input"),
        features=data.whole("features", least=1),
        **measures,
        **costs,
        id=data.text("id") if "id" in data else None,
    )


def _or_none(value: Any) -> Any:
    """``None`` for NaN, which JSON does not have."""
    return None if isinstance(value, float) and not isfinite(value) else value


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
