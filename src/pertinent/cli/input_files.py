"""Inputs in files, one per record; an unreadable record is a failed input and does not affect the rest."""

from __future__ import annotations

import csv
import json
import logging
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from glob import glob, has_magic
from itertools import chain, islice
from pathlib import Path
from typing import Any, TextIO

from pertinent.errors import FileError, InputError, PertinentError, SettingError, unknown
from pertinent.files import (
    check_is_file,
    file_exists,
    folder_exists,
    n_parquet_rows,
    parquet_columns,
    parquet_rows,
    read_json,
)
from pertinent.inputs.modality import Modality, TextColumns, modality_named

logger = logging.getLogger(__name__)

TABLES = (".csv", ".tsv", ".jsonl", ".parquet")
SUFFIXES = (".txt", *TABLES)
_WITH_LISTS = (".jsonl", ".parquet")
MOST_COLUMNS = 20_000
_LONGEST_HEADER = 2_000_000
_LONGEST_VALUE = 16_000_000
_TRIED_AS_TEXT = 100
"""Number of records that are tried as texts before a file is treated as a table."""
_DEFAULT_TEXTS = TextColumns()


@dataclass(frozen=True)
class InputRecord:
    """One input and its position in the file, or the error that made it unreadable; its label and id."""

    where: str
    raw: Any = None
    error: PertinentError | None = None
    label: Any = None
    id: str | None = None


@dataclass(frozen=True)
class FileColumns:
    """Columns of a file by role; `kind` is the kind of input, if known."""

    kind: str | None
    texts: TextColumns = _DEFAULT_TEXTS
    label: str | None = None
    id: str | None = None

    @property
    def modality(self) -> Modality:
        """Return the modality of the inputs; their kind must be known."""
        assert self.kind is not None
        return modality_named(self.kind)

    def check(self, names: Sequence[str]) -> None:
        """Raise an error unless the columns of the file have distinct names and all roles have a column."""
        twice = [name for name, times in Counter(names).items() if times > 1]
        if twice:
            raise InputError(f"Column names must differ, but these occur twice: {', '.join(twice)}.")
        rest = dict.fromkeys(names)
        self._pop(rest, "--label-column", self.label)
        self._pop(rest, "--id-column", self.id)
        self.modality.text_columns(list(rest), self.texts)

    def read_record(self, where: str, record: Any) -> InputRecord:
        """Return the input in a record: its texts, or a table row without its label and id."""
        try:
            if not isinstance(record, Mapping):
                if self.label is not None or self.id is not None:
                    raise InputError(f"A record must have named columns, but got {str(record)[:40]!r}.")
                return InputRecord(where, record)
            rest = dict(record)
            label = self._pop(rest, "--label-column", self.label)
            id = self._pop(rest, "--id-column", self.id)
            raw = self._texts(rest)
        except PertinentError as error:
            return InputRecord(where, error=error)
        return InputRecord(where, raw, label=label, id=None if id is None else str(id))

    @staticmethod
    def _pop(record: dict[str, Any], flag: str, name: str | None) -> Any:
        """Remove a column from a record and return its value."""
        if name is None:
            return None
        if name not in record:
            raise SettingError(f"{unknown('column', name, record)} Set it with {flag}.")
        return record.pop(name)

    def _texts(self, record: dict[str, Any]) -> Any:
        """Return the input in the columns of a record, or the record if it is a row."""
        columns = self.modality.text_columns(list(record), self.texts)
        if columns is None:
            return record
        return self.modality.from_columns(record, columns)


def read_file(file: str, columns: FileColumns, limit: int | None = None) -> list[InputRecord]:
    """Read the inputs in a file, a folder of files, or the files that match a pattern."""
    records = list(islice(file_records(file, columns), limit))
    if not records:
        raise InputError(f"There is nothing to explain in {file!r}.")
    return records


def file_records(file: str, columns: FileColumns) -> Iterator[InputRecord]:
    """Yield the inputs in a file, a folder of files, or the files that match a pattern."""
    if columns.kind is None:
        columns = replace(columns, kind=_find_kind(file, columns))
    for path in _expand(file):
        yield from _records_in(path, columns)


def _find_kind(file: str, columns: FileColumns) -> str:
    """Return ``"text"`` if any of the first records can be read as text, else ``"table"``."""
    if file == "-":
        return "text"
    with suppress(SettingError):
        records = islice(file_records(file, replace(columns, kind="text")), _TRIED_AS_TEXT)
        if any(record.error is None for record in records):
            return "text"
    return "table"


def _expand(file: str) -> list[str]:
    """Return the file itself, the readable files of a folder, or the files that match a pattern."""
    path = Path(file)
    if folder_exists(path):
        paths = sorted(each for each in path.iterdir() if each.suffix.lower() in SUFFIXES)
    elif has_magic(file) and not file_exists(path):
        paths = sorted(map(Path, glob(file, recursive=True)))  # noqa: PTH207  the pattern may be absolute
    else:
        return [file]
    if not paths:
        raise FileError(f"There are no files {', '.join(SUFFIXES)} at {file!r}.")
    return [str(each) for each in paths]


def n_records(file: str) -> int | None:
    """Count the lines of files, except for lines of column names, without reading the records.

    The number is too large if there are blank lines or multi-line values, and ``None`` for stdin.
    """
    if file == "-":
        return None
    total = 0
    for path in map(Path, _expand(file)):
        check_is_file(path)
        if path.suffix.lower() == ".parquet":
            total += n_parquet_rows(path)
        else:
            total += _n_lines(path) - (path.suffix.lower() in (".csv", ".tsv"))
    return total


def _n_lines(path: Path) -> int:
    with path.open("rb") as stream:
        n, last = 0, b"\n"
        while chunk := stream.read(2**20):
            n, last = n + chunk.count(b"\n"), chunk[-1:]
        return n + (last != b"\n")


def _records_in(file: str, columns: FileColumns) -> Iterator[InputRecord]:
    path = Path(file)
    suffix = ".txt" if file == "-" else path.suffix.lower()
    if suffix not in SUFFIXES:
        raise FileError(f"The name of {file!r} must end in .txt, .csv, .tsv, .jsonl or .parquet.")
    if suffix == ".parquet":
        yield from _parquet_records(path, columns)
        return
    if suffix == ".txt":
        _check_lines(file, columns)
    with _open(path) as stream:
        if suffix in (".csv", ".tsv"):
            yield from _csv_records(path, stream, columns)
            return
        for line in _lines("stdin" if file == "-" else path.name, stream):
            if suffix == ".txt" or line.error is not None:
                yield line
                continue
            record = parse_record(line.where, _json if columns.modality.in_lines else json_row, line.raw)
            yield columns.read_record(line.where, record.raw) if record.error is None else record


def _check_lines(file: str, columns: FileColumns) -> None:
    """Raise a `FileError` if the lines of a ``.txt`` file cannot provide all that is requested."""
    requested = {"Table rows": not columns.modality.in_lines, "Labels": columns.label, "Ids": columns.id}
    for noun, is_requested in requested.items():
        if is_requested:
            raise FileError(
                f"{noun} can only be read from .csv, .tsv, .jsonl or .parquet, not from {file!r}."
            )


@contextmanager
def _open(path: Path) -> Iterator[TextIO]:
    """Open a text file or stdin; errors in the file become a `FileError`."""
    try:
        is_stdin = str(path) == "-"
        with nullcontext(sys.stdin) if is_stdin else path.open(encoding="utf-8-sig", newline="") as stream:
            yield stream
    except PertinentError:
        raise
    except FileNotFoundError:
        raise FileError(f"There is no file {str(path)!r}.") from None
    except UnicodeDecodeError as error:
        raise FileError(f"{str(path)!r} is not UTF-8 text: {error}") from error
    except csv.Error as error:
        raise FileError(f"{str(path)!r} is damaged or not a table: {error}") from error
    except OSError as error:
        raise FileError(f"{str(path)!r} cannot be read: {error.strerror}") from error


def _lines(name: str, stream: Iterable[str]) -> Iterator[InputRecord]:
    """Yield the non-blank lines of a file; blank lines are counted in a warning."""
    blank = 0
    try:
        for number, line in enumerate(stream, start=1):
            where = f"{name} line {number}"
            if "\0" in line:
                yield InputRecord(where, error=InputError("the line contains a null character"))
            elif line.strip():
                yield InputRecord(where, line.strip())
            else:
                blank += 1
    finally:
        if blank:
            logger.warning("%s: %d blank line%s skipped.", name, blank, "s were" if blank > 1 else " was")


def parse_record(where: str, parse: Callable[[Any], Any], value: Any) -> InputRecord:
    """Return `parse(value)` as an input, or its error."""
    try:
        return InputRecord(where, parse(value))
    except PertinentError as error:
        return InputRecord(where, error=error)


def json_row(text: str) -> Any:
    """Parse a table row: a JSON object, or an array of values."""
    row = _json(text)
    if not isinstance(row, dict | list):
        raise InputError(f"A row must be a JSON object or array, but got {text[:40]!r}.")
    return row


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"This is not JSON ({error}): {text[:40]!r}") from error


def _parquet_records(path: Path, columns: FileColumns) -> Iterator[InputRecord]:
    _check_columns(path, parquet_columns(path), columns)
    for number, record in enumerate(parquet_rows(path), start=1):
        yield columns.read_record(f"{path.name} row {number}", record)


def _csv_records(path: Path, stream: TextIO, columns: FileColumns) -> Iterator[InputRecord]:
    """Yield an input for each record of a file whose first line names the columns."""
    csv.field_size_limit(max(csv.field_size_limit(), _LONGEST_VALUE))
    header = stream.readline(_LONGEST_HEADER)
    if len(header) == _LONGEST_HEADER:
        raise FileError(f"The first line of {str(path)!r} is too long to name columns.")
    marks = [mark for mark in ",;\t" if mark in header] or [","]
    separator = "\t" if path.suffix.lower() == ".tsv" else marks[0]
    rows = csv.reader(chain([header], stream), delimiter=separator, strict=True)
    names = next(rows, [])
    if not any(name.strip() for name in names):
        raise FileError(f"{str(path)!r} is empty: its first line must name the columns.")
    named = [index for index, name in enumerate(names) if name.strip()]
    if len(named) < len(names):
        logger.warning("%s: %d columns without a name are ignored.", path.name, len(names) - len(named))
    _check_columns(path, [names[index] for index in named], columns)
    try:
        for row in rows:
            where = f"{path.name} line {rows.line_num}"
            if row and len(row) != len(names):
                yield InputRecord(where, error=_wrong_length(row, names, separator))
            elif row:
                values = {names[index]: row[index] for index in named}
                yield _csv_record(where, values, columns, decimal_comma=separator == ";")
    except csv.Error as error:
        where = f"{path.name} line {rows.line_num}"
        yield InputRecord(where, error=InputError(f"the rest is unreadable: {error}"))


def _check_columns(path: Path, names: list[str], columns: FileColumns) -> None:
    if len(names) > MOST_COLUMNS:
        raise FileError(f"{str(path)!r} has {len(names):,} columns, but at most {MOST_COLUMNS:,} are read.")
    if any("\0" in name for name in names):
        raise FileError(f"{str(path)!r} is not UTF-8 text: its column names contain null characters.")
    try:
        columns.check(names)
    except PertinentError as error:
        raise type(error)(f"{str(path)!r}: {error}") from error


def _csv_record(
    where: str, values: dict[str, str], columns: FileColumns, *, decimal_comma: bool
) -> InputRecord:
    if any("\0" in value for value in values.values()):
        return InputRecord(where, error=InputError("the record contains a null character"))
    record = columns.read_record(where, values)
    if not columns.modality.in_lines and record.error is None:
        raw = {name: _number(value, decimal_comma=decimal_comma) for name, value in record.raw.items()}
        return replace(record, raw=raw)
    return record


def _wrong_length(row: list[str], names: list[str], separator: str) -> InputError:
    mark = {",": "commas", ";": "semicolons", "\t": "tabs"}[separator]
    return InputError(f"the record has {len(row)} values for {len(names)} columns; quote values with {mark}")


def _number(text: str, *, decimal_comma: bool) -> float | str | None:
    """Convert a text to a number if possible; return ``None`` if it is empty."""
    try:
        return float(text.replace(",", ".", 1) if decimal_comma else text)
    except ValueError:
        return text or None


def read_annotations(location: str) -> Any:
    """Read human annotations: a JSON list by input, a JSON object by id, or a column of lists.

    A column is specified as ``posts.parquet:marks``; the file has one row for each input.
    """
    if location.endswith(_WITH_LISTS):
        raise SettingError(
            f"--annotations must name the column of a table, such as {location}:marks, but got {location!r}."
        )
    file, _, column = location.rpartition(":")
    return _read_column(file, column) if file.endswith(_WITH_LISTS) else read_json(Path(location))


def read_answers(location: str) -> list[Any]:
    """Read the correct answer of each input from a column of a file, named as ``rows.csv:column``."""
    file, _, column = location.rpartition(":")
    if not file or not column:
        raise SettingError(f"--answers must be FILE:COLUMN, such as rows.csv:label, but got {location!r}.")
    return _read_column(file, column)


def _read_column(file: str, name: str) -> list[Any]:
    """Return the values in a column of a file; raise an `InputError` for the first unreadable row."""
    records = read_file(file, FileColumns("table", label=name))
    for record in records:
        if record.error is not None:
            raise InputError(f"{record.where}: {record.error}")
    return [record.label for record in records]
