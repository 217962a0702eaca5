"""Explanations in Parquet files and in journals of unfinished runs."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from pertinent._optional import optional
from pertinent.config.serialization import PlainData, encode
from pertinent.errors import FileError, InputError
from pertinent.files import atomic_write, file_exists, read_parquet
from pertinent.printable import replace_surrogates, shorten
from pertinent.results.failures import Failure, failures_from_plain
from pertinent.results.journal import read_journal

T = TypeVar("T")

logger = logging.getLogger(__name__)

_OBJECTS = ("settings", "removal_settings", "output", "measures", "better", "details", "input")
_PAIRS = ("interactions", "interaction_standard_errors")
_NESTED = (*_OBJECTS, *_PAIRS, "chosen", "class_scores", "class_standard_errors")
"""Fields that are saved as JSON."""

_STRINGS = ("method", "removal", "meaning", "id", "scale", *_NESTED)
_STRING_LISTS = ("features", "classes", "warnings")
_NUMBER_LISTS = ("prediction", "scores", "standard_errors", "base_values", "sparsities")
_INTEGERS = ("index", "target", "budget", "evaluations", "seed", "request_index")
_FORMAT = b"pertinent"
_VERSION = b"5"
_DIGEST = b"digest"
"""Metadata key of the digest of the whole content; Parquet's checksums cover only the rows."""

_CHUNK = 100
"""Number of explanations to write at a time."""


@dataclass(frozen=True)
class StoredExplanations:
    """The content of a Parquet file.

    Attributes
    ----------
    path
        The file.
    rows
        The explanations as plain data; if a run wrote them, with the index of their request.
    failures
        Inputs that failed.
    header
        Header of the run that wrote the file, if any.
    inputs
        Digest of each input of the run, by its index as a string.
    """

    path: Path
    rows: list[dict[str, Any]]
    failures: list[Failure]
    header: dict[str, Any] | None
    inputs: dict[str, str]

    def explanations(self, from_dict: Callable[[Mapping[str, Any]], T]) -> Iterator[T]:
        """Yield the explanations, each created by `from_dict`."""
        for number, row in enumerate(self.rows, start=1):
            with _damaged(self.path, f"row {number}"):
                explanation = from_dict(row)
            yield explanation


def write_rows(
    path: Path,
    rows: Iterable[Mapping[str, Any]],
    failures: Iterable[Failure],
    run: Mapping[str, Any] | None = None,
) -> None:
    """Write explanations as plain data, in chunks; `run` is the header of the run that created them."""
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
        while chunk := list(islice(pending, _CHUNK)):
            try:
                table = arrow.Table.from_pylist([_to_row(row) for row in chunk], schema=schema)
            except (ValueError, TypeError, LookupError, OverflowError) as error:
                raise FileError(f"{name!r} cannot be written: {error}") from error
            writer.write_table(table)
            content.add(table.to_pylist())
        writer.add_key_value_metadata({_DIGEST: content.digest()})


def read_explanations(
    path: Path, from_dict: Callable[[Mapping[str, Any]], T]
) -> tuple[list[T], list[Failure]]:
    """Read explanations, each created by `from_dict`, from a Parquet file or an unfinished run's journal."""
    if path.name and not file_exists(path) and file_exists(journal_of(path)):
        logger.warning("The run %r is not finished; returning its finished explanations.", str(path))
        return _read_journal(journal_of(path), from_dict)
    stored = read_stored(path)
    return list(stored.explanations(from_dict)), stored.failures


def read_stored(path: Path) -> StoredExplanations:
    """Read a Parquet file of explanations; raise an error for another format version or damaged data."""
    parquet = read_parquet(path)
    metadata = parquet.metadata
    if _FORMAT not in metadata:
        raise FileError(f"{str(path)!r} is a Parquet file but contains no explanations.")
    if metadata[_FORMAT] != _VERSION:
        version = shorten(metadata[_FORMAT].decode(errors="replace"), 20)
        raise FileError(
            f"{str(path)!r} has format version {version!r}, but this version of pertinent reads only version "
            f"{_VERSION.decode()!r}: read it with the version that wrote it, or explain again."
        )
    content = _Content(metadata)
    with _damaged(path, "content"):
        content.add(parquet.rows)
    if metadata.get(_DIGEST) != content.digest().encode():
        raise FileError(f"{str(path)!r} is damaged: its content does not match its digest.")
    with _damaged(path, "failures"):
        failures = failures_from_plain(json.loads(metadata[b"failures"]))
    header: dict[str, Any] | None = None
    if b"run" in metadata:
        with _damaged(path, "run"):
            header = PlainData({"run": json.loads(metadata[b"run"])}, "run").mapping("run")
    rows = []
    for number, row in enumerate(parquet.rows, start=1):
        with _damaged(path, f"row {number}"):
            rows.append(_from_row(row))
    return StoredExplanations(path, rows, failures, header, (header or {}).pop("inputs", {}))


def journal_of(path: Path) -> Path:
    """Return the journal of a run that will write to `path`; the journal holds its finished explanations."""
    return path.with_name(f"{path.name}.journal")


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
    """Return the explanation in a journal record, if there is one, and the failures."""
    with _damaged(path, f"record {record['key']}"):
        data = PlainData(record, "record")
        explanation, failures = data.value("explanation"), failures_from_plain(data.value("failures"))
        return None if explanation is None else from_dict(explanation), failures


@contextmanager
def _damaged(path: Path, where: str) -> Iterator[None]:
    """Raise a `FileError` with the location of an error in plain data."""
    try:
        yield
    except (InputError, ValueError, KeyError, TypeError, RecursionError, MemoryError) as error:
        reason = error if isinstance(error, InputError) else f"invalid content ({error!r})."
        raise FileError(f"{str(path)!r} is damaged: {where}: {reason}") from error


class _Content:
    """Digest of a file's content, computed while it is written or read."""

    def __init__(self, metadata: Mapping[bytes, Any]) -> None:
        self._hash = blake2b(digest_size=16)
        for name in (_FORMAT, b"failures", b"run"):
            value = metadata.get(name, b"")
            self._add(value if isinstance(value, bytes) else value.encode())

    def add(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Add rows in the form that Parquet returns."""
        for row in rows:
            self._add(json.dumps(row, sort_keys=True, separators=(",", ":")).encode())

    def _add(self, data: bytes) -> None:
        self._hash.update(len(data).to_bytes(8, "little") + data)

    def digest(self) -> str:
        """Return the digest of everything added so far."""
        return self._hash.hexdigest()


def _schema(arrow: Any) -> Any:
    columns = {
        arrow.string(): _STRINGS,
        arrow.list_(arrow.string()): _STRING_LISTS,
        arrow.list_(arrow.float64()): _NUMBER_LISTS,
        arrow.int64(): _INTEGERS,
        arrow.float64(): ("seconds",),
        arrow.bool_(): ("budget_per_sparsity",),
    }
    return arrow.schema([(name, kind) for kind, names in columns.items() for name in names])


def _to_row(plain: Mapping[str, Any]) -> dict[str, Any]:
    row = {name: replace_surrogates(value) for name, value in plain.items()}
    return row | {name: json.dumps(plain[name]) for name in _NESTED}


def _from_row(row: Mapping[str, Any]) -> dict[str, Any]:
    data = PlainData(row, "row")
    return {**row, **{name: json.loads(data.text(name)) for name in _NESTED}}
