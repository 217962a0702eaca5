"""Explanations in Parquet files, and in the journals of unfinished runs."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from pertinent._optional import optional
from pertinent.config.serialization import PlainData, encode
from pertinent.engine.journal import read_journal
from pertinent.errors import FileError, InputError
from pertinent.files import ParquetRows, atomic_write, file_exists, read_parquet
from pertinent.printable import replace_surrogates, shorten
from pertinent.results.failures import Failure, failures_from_plain

T = TypeVar("T")

logger = logging.getLogger(__name__)

_OBJECTS = ("settings", "removal_settings", "output", "measures", "better", "details", "input")
_PAIRS = ("interactions", "interaction_standard_errors")
_NESTED = (*_OBJECTS, *_PAIRS, "chosen", "class_scores", "class_standard_errors")
"""Fields that are written as JSON."""

_STRINGS = ("method", "removal", "meaning", "id", "scale", *_NESTED)
_STRING_LISTS = ("features", "classes", "warnings")
_NUMBER_LISTS = ("prediction", "scores", "standard_errors", "base_values", "sparsities")
_WHOLE_NUMBERS = ("index", "target", "budget", "evaluations", "seed")
_FORMAT = b"pertinent"
_VERSION = b"4"
_DIGEST = b"digest"
"""The digest of all that a file holds: checksums of Parquet cover only the rows."""

_ROWS_AT_ONCE = 100


def write_rows(
    path: Path,
    rows: Iterable[Mapping[str, Any]],
    failures: Iterable[Failure],
    run: Mapping[str, Any] | None = None,
) -> None:
    """Write explanations given as plain data, in chunks; `run` describes how they were made."""
    with atomic_write(path) as unfinished:
        _write_parquet(unfinished, str(path), rows, failures, run)


def rows_to_bytes(
    rows: Iterable[Mapping[str, Any]], failures: Iterable[Failure], run: Mapping[str, Any]
) -> bytes:
    """Return the content of the file that `write_rows` would write."""
    content = BytesIO()
    _write_parquet(content, "part of a run", rows, failures, run)
    return content.getvalue()


def _write_parquet(
    to: Path | BytesIO,
    name: str,
    rows: Iterable[Mapping[str, Any]],
    failures: Iterable[Failure],
    run: Mapping[str, Any] | None,
) -> None:
    arrow, parquet = optional("pyarrow"), optional("pyarrow.parquet")
    metadata = {_FORMAT: _VERSION, b"failures": json.dumps(encode(list(failures)))}
    if run is not None:
        metadata[b"run"] = json.dumps(run)
    schema = _schema(arrow).with_metadata(metadata)
    pending, content = iter(rows), _Content(metadata)
    with parquet.ParquetWriter(to, schema, compression="zstd", write_page_checksum=True) as writer:
        while part := list(islice(pending, _ROWS_AT_ONCE)):
            try:
                table = arrow.Table.from_pylist([_to_row(row) for row in part], schema=schema)
            except (ValueError, TypeError, LookupError, OverflowError) as error:
                raise FileError(f"{name!r} cannot be written: {error}") from error
            writer.write_table(table)
            content.add(table.to_pylist())
        writer.add_key_value_metadata({_DIGEST: content.digest()})


def read_explanations(
    path: Path, from_dict: Callable[[Mapping[str, Any]], T]
) -> tuple[list[T], list[Failure]]:
    """Read explanations, each made by `from_dict`, from a Parquet file or an unfinished run's journal."""
    if path.name and not file_exists(path) and file_exists(journal_of(path)):
        logger.warning("The run %r is not finished: this is what it has so far.", str(path))
        return _read_journal(journal_of(path), from_dict)
    found = _read_parquet(path)
    with _damaged(path, "failures"):
        failures = failures_from_plain(json.loads(found.metadata[b"failures"]))
    explanations = []
    for number, row in enumerate(found.rows, start=1):
        with _damaged(path, f"row {number}"):
            explanations.append(from_dict(_from_row(row)))
    return explanations, failures


def read_run(path: Path) -> dict[str, Any] | None:
    """How the explanations in a file were made, if a run wrote it."""
    metadata = _read_parquet(path).metadata
    if b"run" not in metadata:
        return None
    with _damaged(path, "run"):
        return PlainData({"run": json.loads(metadata[b"run"])}, "run").mapping("run")


def journal_of(path: Path) -> Path:
    """The journal in which a run that will write to `path` keeps its finished explanations."""
    return path.with_name(f"{path.name}.journal")


def failures_in(record: Mapping[str, Any]) -> list[Failure]:
    """Return the failures of one input, from a record of a journal."""
    return failures_from_plain(PlainData(record, "record").value("failures"))


def _read_journal(path: Path, from_dict: Callable[[Mapping[str, Any]], T]) -> tuple[list[T], list[Failure]]:
    explanations: list[T] = []
    failures: list[Failure] = []
    for record in sorted(list(read_journal(path))[1:], key=lambda record: record["key"]):
        explanation, failed = read_record(path, record, from_dict)
        explanations += [] if explanation is None else [explanation]
        failures += failed
    return explanations, failures


def read_record(
    path: Path, record: Mapping[str, Any], from_dict: Callable[[Mapping[str, Any]], T]
) -> tuple[T | None, list[Failure]]:
    """The explanation in a record of a journal, if there is one, and the failures."""
    with _damaged(path, f"record {record['key']}"):
        explanation = PlainData(record, "record").value("explanation")
        return None if explanation is None else from_dict(explanation), failures_in(record)


@contextmanager
def _damaged(path: Path, where: str) -> Iterator[None]:
    """Whatever is wrong with plain data is a `FileError` that says where."""
    try:
        yield
    except (InputError, ValueError, KeyError, TypeError, RecursionError, MemoryError) as error:
        reason = error if isinstance(error, InputError) else f"it is not what was written ({error!r})."
        raise FileError(f"{str(path)!r} is damaged: {where}: {reason}") from error


class _Content:
    """The content of a file, of which a digest is made while it is written or read."""

    def __init__(self, metadata: Mapping[bytes, Any]) -> None:
        self._hash = blake2b(digest_size=16)
        for name in (_FORMAT, b"failures", b"run"):
            value = metadata.get(name, b"")
            self._add(value if isinstance(value, bytes) else value.encode())

    def add(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Add rows as Parquet gives them back."""
        for row in rows:
            self._add(json.dumps(row, sort_keys=True, separators=(",", ":")).encode())

    def _add(self, part: bytes) -> None:
        self._hash.update(len(part).to_bytes(8, "little") + part)

    def digest(self) -> str:
        """The digest of what was added."""
        return self._hash.hexdigest()


def _read_parquet(path: Path) -> ParquetRows:
    """Read a Parquet file of explanations that has this format version and is undamaged."""
    found = read_parquet(path)
    metadata = found.metadata
    if _FORMAT not in metadata:
        raise FileError(f"{str(path)!r} is a Parquet file, but holds no explanations.")
    if metadata[_FORMAT] != _VERSION:
        version = shorten(metadata[_FORMAT].decode(errors="replace"), 20)
        raise FileError(
            f"{str(path)!r} has format version {version!r}, but this version of pertinent reads only version "
            f"{_VERSION.decode()!r}: read it with the version that wrote it, or explain again."
        )
    content = _Content(metadata)
    with _damaged(path, "content"):
        content.add(found.rows)
    if metadata.get(_DIGEST) != content.digest().encode():
        raise FileError(f"{str(path)!r} is damaged: it does not hold what was written.")
    return found


def _schema(arrow: Any) -> Any:
    columns = {
        arrow.string(): _STRINGS,
        arrow.list_(arrow.string()): _STRING_LISTS,
        arrow.list_(arrow.float64()): _NUMBER_LISTS,
        arrow.int64(): _WHOLE_NUMBERS,
        arrow.float64(): ("seconds",),
        arrow.bool_(): ("budget_per_sparsity",),
    }
    return arrow.schema([(name, kind) for kind, names in columns.items() for name in names])


def _to_row(plain: Mapping[str, Any]) -> dict[str, Any]:
    row = {name: replace_surrogates(value) for name, value in plain.items()}
    return row | {name: json.dumps(plain[name]) for name in _NESTED}


def _from_row(row: Mapping[str, Any]) -> dict[str, Any]:
    data = PlainData(row, "row")
    nested = {name: json.loads(data.text(name)) for name in _NESTED}
    return {**row, **nested}
