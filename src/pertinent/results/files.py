"""Explanations in Parquet files, and in the journals of unfinished runs."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from pertinent._optional import optional
from pertinent.errors import FileError
from pertinent.files import atomic_write, check_is_file, read_parquet, write_text
from pertinent.results.explanation import Explanation, Explanations, Failure

logger = logging.getLogger(__name__)

_NESTED = (
    "settings",
    "removal_settings",
    "output",
    "measures",
    "chosen",
    "class_scores",
    "class_standard_errors",
    "details",
    "input",
)
_TEXTS = ("method", "removal", *_NESTED)
_LISTS = {
    "features": "string",
    "classes": "string",
    "warnings": "string",
    "prediction": "float64",
    "scores": "float64",
    "standard_errors": "float64",
    "base_values": "float64",
    "sparsities": "float64",
}
_NUMBERS = {"index": "int64", "target": "int64", "budget": "int64", "evaluations": "int64", "seed": "int64"}
_FORMAT = b"pertinent"
_VERSIONS = (b"1", b"2")
_ROWS_AT_ONCE = 100


def save(explanations: Explanations, path: Path) -> None:
    """Write the kind of file that the suffix names."""
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        write(explanations, path)
    elif suffix == ".json":
        write_text(path, explanations.to_json() + "\n")
    elif suffix == ".csv":
        write_text(path, explanations.to_dataframe().to_csv(index=False))
    else:
        raise FileError(f"The name of {str(path)!r} must end in .parquet, .csv or .json.")


def write(explanations: Explanations, path: str | Path) -> None:
    """Write a Parquet file, atomically, with one row per explanation."""
    write_rows(Path(path), (e.to_dict() for e in explanations), explanations.failures)


def write_rows(
    path: Path,
    rows: Iterable[Mapping[str, Any]],
    failures: Iterable[Failure],
    run: Mapping[str, Any] | None = None,
) -> None:
    """Write explanations given as plain data, in chunks; `run` describes how they were made."""
    arrow, parquet = optional("pyarrow"), optional("pyarrow.parquet")
    metadata = {_FORMAT: _VERSIONS[-1], b"failures": json.dumps([[f.index, f.reason] for f in failures])}
    if run is not None:
        metadata[b"run"] = json.dumps(run)
    schema = _schema(arrow).with_metadata(metadata)
    pending = iter(rows)
    with (
        atomic_write(path) as unfinished,
        parquet.ParquetWriter(unfinished, schema, compression="zstd") as writer,
    ):
        while part := list(islice(pending, _ROWS_AT_ONCE)):
            writer.write_table(arrow.Table.from_pylist([_to_row(row) for row in part], schema=schema))


def read(path: str | Path) -> Explanations:
    """Read saved explanations, or those that an unfinished run has completed so far.

    If a run with ``out="run.parquet"`` is still running or was killed, its journal beside that file
    is read.
    """
    path = Path(path)
    if not path.is_file() and journal_of(path).is_file():
        logger.warning("The run %r is not finished: this is what it has so far.", str(path))
        return _read_journal(journal_of(path))
    table = read_parquet(path)
    metadata = _metadata(path, table.schema)
    failures = [Failure(i, reason) for i, reason in json.loads(metadata[b"failures"])]
    return Explanations([_from_row(row) for row in table.to_pylist()], failures)


def read_run(path: Path) -> dict[str, Any] | None:
    """How the explanations in a file were made, if a run wrote it."""
    check_is_file(path)
    try:
        schema = optional("pyarrow.parquet").read_schema(path)
    except (OSError, ValueError) as error:
        raise FileError(f"{str(path)!r} is damaged or not a Parquet file: {error}") from error
    found = _metadata(path, schema).get(b"run")
    return None if found is None else dict(json.loads(found))


def journal_of(path: Path) -> Path:
    """The journal in which a run that will write to `path` keeps its finished explanations."""
    return path.with_name(f"{path.name}.journal")


def failures_in(record: Mapping[str, Any]) -> Iterator[Failure]:
    """The failures of one input, from a record of a journal."""
    for reason in record["failures"]:
        yield Failure(record["key"][0], reason)


def _read_journal(path: Path) -> Explanations:
    from pertinent.engine.journal import read_journal

    records = sorted(list(read_journal(path))[1:], key=lambda record: record["key"])
    found = [Explanation.from_dict(r["explanation"]) for r in records if r["explanation"] is not None]
    return Explanations(found, [failure for record in records for failure in failures_in(record)])


def _metadata(path: Path, schema: Any) -> dict[bytes, bytes]:
    metadata: dict[bytes, bytes] = schema.metadata or {}
    if _FORMAT not in metadata:
        raise FileError(f"{str(path)!r} is a Parquet file, but holds no explanations.")
    if metadata[_FORMAT] not in _VERSIONS:
        raise FileError(f"{str(path)!r} was written by a newer version of pertinent: update to read it.")
    return metadata


def _schema(arrow: Any) -> Any:
    columns = {name: arrow.string() for name in _TEXTS}
    columns |= {name: arrow.list_(getattr(arrow, kind)()) for name, kind in _LISTS.items()}
    columns |= {name: getattr(arrow, kind)() for name, kind in _NUMBERS.items()}
    return arrow.schema([*columns.items(), ("seconds", arrow.float64())])


def _to_row(plain: Mapping[str, Any]) -> dict[str, Any]:
    return {**plain, **{name: json.dumps(plain[name]) for name in _NESTED}}


def _from_row(row: dict[str, Any]) -> Explanation:
    nested = {name: json.loads(row[name]) for name in _NESTED if name in row}
    return Explanation.from_dict({**row, **nested})
