"""Reading and writing removal checks as JSON."""

from __future__ import annotations

import json
from dataclasses import astuple, fields
from pathlib import Path
from typing import Any

from pertinent.decoding import PlainData, expect
from pertinent.diagnostics.ablated_predictions import Ablated
from pertinent.diagnostics.removal_check import RemovalCheck
from pertinent.errors import FileError, InputError
from pertinent.files import read_json, write_text
from pertinent.results.failures import failures_from_plain, failures_to_plain

_FORMAT = "pertinent removal check 1"
_COLUMNS = tuple(f.name for f in fields(Ablated))
_PLAIN = ("measure", "default", "classes", "features", "draws", "seed", "skipped")


def to_json(check: RemovalCheck) -> str:
    """Every row, and the results derived from them, for readers other than `read`."""
    plain: dict[str, Any] = {"format": _FORMAT, "recommendation": check.recommendation, "best": check.best}
    plain["verdicts"] = {removal: check.verdict(removal) for removal in check.removals}
    plain |= {name: getattr(check, name) for name in _PLAIN}
    plain["failures"] = failures_to_plain(check.failures)
    plain["rows"] = [astuple(row) for row in check.rows]
    return json.dumps(plain, ensure_ascii=False)


def write(check: RemovalCheck, path: str | Path) -> None:
    """Write a JSON file, atomically."""
    if Path(path).suffix.lower() != ".json":
        raise FileError(f"The name of {str(path)!r} must end in .json.")
    write_text(Path(path), to_json(check) + "\n")


def read(path: str | Path) -> RemovalCheck:
    """Read a check that was saved."""
    plain = read_json(Path(path))
    try:
        return _check(PlainData(plain, "check"))
    except InputError as error:
        raise FileError(f"{str(path)!r} is damaged or holds no removal check: {error}") from error


def _check(data: PlainData) -> RemovalCheck:
    data.text("format", (_FORMAT,))
    classes, skipped = data.texts("classes"), data.mapping("skipped")
    expect(all(isinstance(reason, str) for reason in skipped.values()), "skipped", "reasons", skipped)
    measure: Any = data.text("measure", ("accuracy", "agreement"))
    return RemovalCheck(
        rows=_rows(data, len(classes)),
        measure=measure,
        default=data.text("default"),
        classes=classes,
        features=data.text("features"),
        draws=data.whole("draws", least=1),
        seed=data.whole("seed"),
        skipped=skipped,
        failures=tuple(failures_from_plain(data.value("failures"))),
    )


def _rows(data: PlainData, n_classes: int) -> tuple[Ablated, ...]:
    """The rows; every removal and share must have the same inputs, and share 0 the whole ones."""
    rows = tuple(_row(row, n_classes) for row in data.items("rows"))
    inputs: dict[tuple[str, float], list[int]] = {}
    for row in rows:
        inputs.setdefault((row.removal, row.share), []).append(row.input)
    removals, shares = ({key[i] for key in inputs} for i in (0, 1))
    complete = len(shares) > 1 and 0.0 in shares and len(inputs) == len(removals) * len(shares)
    same = len({tuple(sorted(own)) for own in inputs.values()}) == 1
    expect(complete and same, "rows", "of the same inputs for each removal and share", f"{len(rows)} rows")
    return rows


def _row(row: Any, n_classes: int) -> Ablated:
    plain = PlainData(dict(zip(_COLUMNS, row, strict=False)) if isinstance(row, list) else row, "rows")
    right, removed = plain.value("right"), plain.number("share")
    expect(isinstance(right, bool), "right", "true or false", right)
    expect(0 <= removed <= 1, "share", "from 0 to 1", removed)
    return Ablated(
        plain.whole("input"),
        plain.text("removal"),
        removed,
        plain.whole("predicted", below=n_classes),
        right,
        *(plain.number(name) for name in ("hits", "confidence", "entropy")),
    )
