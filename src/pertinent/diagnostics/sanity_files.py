"""Reading and writing the result of `sanity` as JSON."""

from __future__ import annotations

import json
from dataclasses import astuple, fields
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np

from pertinent.decoding import PlainData, expect
from pertinent.diagnostics.sanity_result import Correlation, Sanity
from pertinent.errors import FileError, InputError
from pertinent.files import read_json, write_text
from pertinent.results.failures import failures_from_plain, failures_to_plain

_FORMAT = "pertinent sanity 1"
_COLUMNS = tuple(f.name for f in fields(Correlation))
_PLAIN = ("method", "budget", "removal", "features", "layers", "n_layers", "seed", "noticed", "passed")


def to_json(sanity: Sanity) -> str:
    """Every row, and the means and the verdict derived from them, for readers other than `read`."""
    stages = [(stage.layer, stage.spearman.mean, stage.absolute.mean) for stage in sanity.stages]
    plain: dict[str, Any] = {"format": _FORMAT, "means": [_without_nan(stage) for stage in stages]}
    plain |= {name: getattr(sanity, name) for name in _PLAIN}
    plain["settings"] = dict(sanity.settings)
    plain["failures"] = failures_to_plain(sanity.failures)
    plain["columns"] = _COLUMNS
    plain["rows"] = [_without_nan(astuple(row)) for row in sanity.rows]
    return json.dumps(plain, ensure_ascii=False, default=str)


def write(sanity: Sanity, path: str | Path) -> None:
    """Write a JSON file, atomically."""
    if Path(path).suffix.lower() != ".json":
        raise FileError(f"The name of {str(path)!r} must end in .json.")
    write_text(Path(path), to_json(sanity) + "\n")


def read(path: str | Path) -> Sanity:
    """Read a result that was saved."""
    plain = read_json(Path(path))
    try:
        return _sanity(PlainData(plain, "sanity"))
    except InputError as error:
        raise FileError(f"{str(path)!r} is damaged or holds no sanity check: {error}") from error


def _sanity(data: PlainData) -> Sanity:
    data.text("format", (_FORMAT,))
    layers = data.texts("layers")
    expect(len(layers) > 0, "layers", "at least one", layers)
    rows = tuple(_row(row, len(layers)) for row in data.items("rows"))
    distinct = len({(row.input, row.stage) for row in rows}) == len(rows) > 0
    expect(distinct, "rows", "at least one, each of another input and stage", f"{len(rows)} rows")
    return Sanity(
        rows=rows,
        **{name: data.text(name) for name in ("method", "removal", "features")},
        settings=data.mapping("settings"),
        budget=data.whole("budget", least=1) if "budget" in data else None,
        layers=layers,
        n_layers=data.whole("n_layers", least=1),
        seed=data.whole("seed"),
        noticed=data.texts("noticed"),
        failures=tuple(failures_from_plain(data.value("failures"))),
    )


def _row(row: Any, n_stages: int) -> Correlation:
    data = PlainData(dict(zip(_COLUMNS, row, strict=False)) if isinstance(row, list) else row, "rows")
    measures = {name: data.number(name) if name in data else np.nan for name in ("spearman", "absolute")}
    for name, value in measures.items():
        expect(not abs(value) > 1, name, "from -1 to 1", value)
    return Correlation(
        input=data.whole("input"),
        stage=data.whole("stage", least=1, below=n_stages + 1),
        **measures,
        id=data.text("id") if "id" in data else None,
    )


def _without_nan(values: tuple[Any, ...]) -> list[Any]:
    """The values, with ``None`` for NaN, which JSON does not have."""
    return [None if isinstance(value, float) and isnan(value) else value for value in values]
