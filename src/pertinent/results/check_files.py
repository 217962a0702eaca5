"""Reading and writing removal checks as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import astuple
from pathlib import Path
from typing import Any

from pertinent.errors import FileError
from pertinent.files import read_json, write_text
from pertinent.results.ablation import Ablated
from pertinent.results.explanation import Failure
from pertinent.results.removal_check import RemovalCheck

_FORMAT = "pertinent removal check 1"
_PLAIN = ("measure", "default", "classes", "features", "draws", "seed", "skipped")


def to_json(check: RemovalCheck) -> str:
    """Every row, and the results derived from them, for readers other than `read`."""
    plain: dict[str, Any] = {"format": _FORMAT, "recommendation": check.recommendation, "best": check.best}
    plain["verdicts"] = {removal: check.verdict(removal) for removal in check.removals}
    plain |= {name: getattr(check, name) for name in _PLAIN}
    plain["failures"] = [[f.index, f.reason] for f in check.failures]
    plain["rows"] = [astuple(row) for row in check.rows]
    return json.dumps(plain, ensure_ascii=False)


def write(check: RemovalCheck, path: str | Path) -> None:
    """Write a JSON file, atomically."""
    write_text(Path(path), to_json(check) + "\n")


def read(path: str | Path) -> RemovalCheck:
    """Read a check that was saved."""
    plain = read_json(Path(path))
    try:
        return _check(plain)
    except (ValueError, KeyError, TypeError) as error:
        raise FileError(f"{str(path)!r} is damaged or holds no removal check.") from error


def _check(plain: Mapping[str, Any]) -> RemovalCheck:
    if plain["format"] != _FORMAT:
        raise ValueError(plain["format"])
    rest = {name: plain[name] for name in _PLAIN} | {"classes": tuple(plain["classes"])}
    failures = tuple(Failure(index, reason) for index, reason in plain["failures"])
    return RemovalCheck(tuple(Ablated(*row) for row in plain["rows"]), failures=failures, **rest)
