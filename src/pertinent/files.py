"""Reading and writing explanations as Parquet."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pertinent._optional import optional
from pertinent.errors import FileError
from pertinent.explanation import Explanation, Explanations, Failure
from pertinent.writing import appearing_whole

_NESTED = ("settings", "removal_settings", "measures", "chosen", "class_scores", "details", "input")
_FORMAT = b"pertinent"


def write(explanations: Explanations, path: str | Path) -> None:
    """Write a Parquet file, one row per explanation; it appears whole or not at all."""
    arrow, parquet = optional("pyarrow"), optional("pyarrow.parquet")
    path = Path(path)
    rows = [_to_row(e) for e in explanations]
    table = arrow.Table.from_pylist(rows)
    failures = json.dumps([[f.index, f.reason] for f in explanations.failures])
    table = table.replace_schema_metadata({_FORMAT: b"1", b"failures": failures.encode()})
    with appearing_whole(path) as unfinished:
        parquet.write_table(table, unfinished, compression="zstd")


def read(path: str | Path) -> Explanations:
    """Read explanations that were saved."""
    table = read_table(Path(path))
    metadata = table.schema.metadata or {}
    if _FORMAT not in metadata:
        raise FileError(f"{str(path)!r} is a Parquet file, but holds no explanations.")
    failures = [Failure(i, reason) for i, reason in json.loads(metadata[b"failures"])]
    return Explanations([_from_row(row) for row in table.to_pylist()], failures)


def read_table(path: Path) -> Any:
    """Any Parquet file, as a pyarrow table."""
    parquet = optional("pyarrow.parquet")
    if not path.is_file():
        raise FileError(f"There is no file {str(path)!r}.")
    try:
        return parquet.read_table(path)
    except (OSError, ValueError) as error:
        raise FileError(f"{str(path)!r} is damaged or not a Parquet file: {error}") from error


def _to_row(explanation: Explanation) -> dict[str, Any]:
    plain = explanation.to_dict()
    return plain | {name: json.dumps(plain[name]) for name in _NESTED}


def _from_row(row: dict[str, Any]) -> Explanation:
    return Explanation.from_dict(row | {name: json.loads(row[name]) for name in _NESTED})
