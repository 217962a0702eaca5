"""Reading inputs from files; a bad line is one failed input and does not stop the rest."""

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
_WITH_LISTS = (".jsonl", ".parquet")
MOST_COLUMNS = 20_000
_LONGEST_HEADER = 2_000_000
_LONGEST_VALUE = 16_000_000
_BY_DEFAULT = TextColumns()


@dataclass(frozen=True)
class InputRecord:
    """One input and its place in the file, or why it could not be read; its label and id, if asked for."""

    where: str
    raw: Any = None
    error: PertinentError | None = None
    label: Any = None
    id: str | None = None


@dataclass(frozen=True)
class FileColumns:
    """What the columns of a file hold, as the options name them; `kind` is what the model reads, if known."""

    kind: str | None
    texts: TextColumns = _BY_DEFAULT
    label: str | None = None
    id: str | None = None

    @property
    def modality(self) -> Modality:
        """The modality of the inputs, once their kind is known."""
        assert self.kind is not None
        return modality_named(self.kind)

    def check(self, names: Sequence[str]) -> None:
        """Raise an error unless the file's columns have different names and those asked for are there."""
        twice = [name for name, times in Counter(names).items() if times > 1]
        if twice:
            raise InputError(f"Column names must differ, but these occur twice: {', '.join(twice)}.")
        rest = dict.fromkeys(names)
        self._take(rest)
        self.modality.text_columns(list(rest), self.texts)

    def input_in(self, where: str, record: Any) -> InputRecord:
        """The input in a record: the texts asked for, or a table row without its label and id."""
        try:
            if not isinstance(record, Mapping):
                if self.label is not None or self.id is not None:
                    raise InputError(f"A record must have named columns, but this is {str(record)[:40]!r}.")
                return InputRecord(where, record)
            rest = dict(record)
            label, own_id = self._take(rest)
            raw = self._input(rest)
        except PertinentError as error:
            return InputRecord(where, error=error)
        return InputRecord(where, raw, label=label, id=None if own_id is None else str(own_id))

    def _take(self, record: dict[str, Any]) -> tuple[Any, Any]:
        """The label and the id, taken out of the record."""
        asked = {"--label-column": self.label, "--id-column": self.id}
        for option, name in asked.items():
            if name is not None and name not in record:
                raise SettingError(f"{unknown('column', name, record)} Say which with {option}.")
        label, own_id = (None if name is None else record[name] for name in asked.values())
        for name in asked.values():
            if name is not None:
                record.pop(name, None)
        return label, own_id

    def _input(self, record: dict[str, Any]) -> dict[str, Any]:
        """Return the texts in a record by key, or the record if it is a row."""
        columns = self.modality.text_columns(list(record), self.texts)
        if columns is None:
            return record
        for name in columns.values():
            if not isinstance(record[name], str):
                raise InputError(f"The column {name!r} must hold text, but holds {record[name]!r}.")
        return {key: record[name] for key, name in columns.items()}


def read_file(file: str, columns: FileColumns, limit: int | None = None) -> list[InputRecord]:
    """The inputs in a file: where the kind is not known, its texts if it has any, else its rows."""
    if columns.kind is None:
        with suppress(SettingError):
            found = read_file(file, replace(columns, kind="text"), limit)
            if any(record.error is None for record in found):
                return found
        return read_file(file, replace(columns, kind="table"), limit)
    found = list(islice(file_records(file, columns), limit))
    if not found:
        raise InputError(f"There is nothing to explain in {file!r}.")
    return found


def known_kind(file: str, columns: FileColumns) -> FileColumns:
    """The columns with the kind of the inputs: text if that can be read of the first record, else table."""
    if columns.kind is not None:
        return columns
    as_text = replace(columns, kind="text")
    with suppress(SettingError):
        if any(record.error is None for record in islice(file_records(file, as_text), 1)):
            return as_text
    return replace(columns, kind="table")


def files_named(file: str) -> list[str]:
    """The file itself; all files of a folder that can be read, by name; or all that a pattern matches."""
    path = Path(file)
    if file == "-" or file_exists(path):
        return [file]
    if folder_exists(path):
        found = sorted(own for own in path.iterdir() if own.suffix.lower() in (".txt", *TABLES))
    elif has_magic(file):
        found = sorted(map(Path, glob(file, recursive=True)))  # noqa: PTH207  the pattern may be absolute
    else:
        return [file]
    if not found:
        raise FileError(f"There are no files {', '.join(('.txt', *TABLES))} at {file!r}.")
    return [str(own) for own in found]


def file_records(file: str, columns: FileColumns) -> Iterator[InputRecord]:
    """The inputs in a file, a folder of files or the files that a pattern matches, one by one."""
    for own in files_named(file):
        yield from _records_in(own, columns)


def n_records(file: str) -> int | None:
    """The number of inputs in files, found without reading them: of lines, less those that name columns.

    It is too large if there are blank lines or values of several lines. Of stdin it is not known.
    """
    if file == "-":
        return None
    total = 0
    for own in map(Path, files_named(file)):
        check_is_file(own)
        if own.suffix.lower() == ".parquet":
            total += n_parquet_rows(own)
        else:
            total += _n_lines(own) - (own.suffix.lower() in (".csv", ".tsv"))
    return total


def _n_lines(path: Path) -> int:
    with path.open("rb") as stream:
        n, last = 0, b"\n"
        while piece := stream.read(2**20):
            n, last = n + piece.count(b"\n"), piece[-1:]
        return n + (last != b"\n")


def _records_in(file: str, columns: FileColumns) -> Iterator[InputRecord]:
    """The inputs in one file."""
    path = Path(file)
    suffix = ".txt" if file == "-" else path.suffix.lower()
    if suffix not in (".txt", *TABLES):
        raise FileError(f"The name of {file!r} must end in .txt, .csv, .tsv, .jsonl or .parquet.")
    if suffix == ".txt":
        _check_lines_are_enough(file, columns)
    if suffix == ".parquet":
        yield from _parquet_records(path, columns)
        return
    with _opened(path) as stream:
        if suffix in (".csv", ".tsv"):
            yield from _csv_records(path, stream, columns)
            return
        for line in _lines("stdin" if file == "-" else path.name, stream):
            if suffix == ".txt" or line.error is not None:
                yield line
                continue
            read = record_of(line.where, _json if columns.modality.in_lines else json_row, line.raw)
            yield columns.input_in(line.where, read.raw) if read.error is None else read


def _check_lines_are_enough(file: str, columns: FileColumns) -> None:
    """A .txt file holds texts, and nothing beside them."""
    wanted = {"Table rows": not columns.modality.in_lines, "Labels": columns.label, "Ids": columns.id}
    for what, asked in wanted.items():
        if asked:
            raise FileError(f"{what} are read from .csv, .tsv, .jsonl or .parquet, but not from {file!r}.")


@contextmanager
def _opened(path: Path) -> Iterator[TextIO]:
    try:
        standard = str(path) == "-"
        with nullcontext(sys.stdin) if standard else path.open(encoding="utf-8-sig", newline="") as stream:
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
    blank = 0
    try:
        for number, line in enumerate(stream, start=1):
            where = f"{name} line {number}"
            if "\0" in line:
                yield InputRecord(where, error=InputError("the line holds a null character"))
            elif line.strip():
                yield InputRecord(where, line.strip())
            else:
                blank += 1
    finally:
        if blank:
            logger.warning("%s: %d blank line%s skipped.", name, blank, "s were" if blank > 1 else " was")


def record_of(where: str, read: Callable[[Any], Any], value: Any) -> InputRecord:
    """`read(value)` as the input, or the error if it fails."""
    try:
        return InputRecord(where, read(value))
    except PertinentError as error:
        return InputRecord(where, error=error)


def json_row(text: str) -> Any:
    """A table row: a JSON object, or an array of values."""
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
    """An input from each row of a Parquet file."""
    _check(path, parquet_columns(path), columns)
    for number, record in enumerate(parquet_rows(path), start=1):
        yield columns.input_in(f"{path.name} row {number}", record)


def _csv_records(path: Path, stream: TextIO, columns: FileColumns) -> Iterator[InputRecord]:
    """An input from each record of a file whose first line names the columns."""
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
    named = [place for place, name in enumerate(names) if name.strip()]
    if len(named) < len(names):
        logger.warning("%s: %d columns without a name are left out.", path.name, len(names) - len(named))
    _check(path, [names[place] for place in named], columns)
    try:
        for row in rows:
            where = f"{path.name} line {rows.line_num}"
            if row and len(row) != len(names):
                yield InputRecord(where, error=_of_other_length(row, names, separator))
            elif row:
                values = {names[place]: row[place] for place in named}
                yield _csv_record(where, values, columns, decimal_comma=separator == ";")
    except csv.Error as error:
        where = f"{path.name} line {rows.line_num}"
        yield InputRecord(where, error=InputError(f"the rest is unreadable: {error}"))


def _check(path: Path, names: list[str], columns: FileColumns) -> None:
    if len(names) > MOST_COLUMNS:
        raise FileError(f"{str(path)!r} has {len(names):,} columns, but at most {MOST_COLUMNS:,} are read.")
    if any("\0" in name for name in names):
        raise FileError(f"{str(path)!r} is not UTF-8 text: the names of its columns hold null characters.")
    try:
        columns.check(names)
    except PertinentError as error:
        raise type(error)(f"{str(path)!r}: {error}") from error


def _csv_record(
    where: str, values: dict[str, str], columns: FileColumns, *, decimal_comma: bool
) -> InputRecord:
    if any("\0" in value for value in values.values()):
        return InputRecord(where, error=InputError("the record holds a null character"))
    record = columns.input_in(where, values)
    if not columns.modality.in_lines and record.error is None:
        raw = {name: _number(value, decimal_comma=decimal_comma) for name, value in record.raw.items()}
        return replace(record, raw=raw)
    return record


def _of_other_length(row: list[str], names: list[str], separator: str) -> InputError:
    mark = {",": "commas", ";": "semicolons", "\t": "tabs"}[separator]
    return InputError(f"the record has {len(row)} values for {len(names)} columns; quote values with {mark}")


def _number(text: str, *, decimal_comma: bool) -> float | str | None:
    """The text as a number if possible; ``None`` if it is empty."""
    try:
        return float(text.replace(",", ".", 1) if decimal_comma else text)
    except ValueError:
        return text or None


def read_annotations(given: str) -> Any:
    """What people marked: a JSON list with an entry for each input, or an object from id to entry.

    Or a column of lists in a file of one row for each input, given as ``posts.parquet:marks``.
    """
    if given.endswith(_WITH_LISTS):
        raise SettingError(
            f"--annotations must name the column of a table, such as {given}:marks, but got {given!r}."
        )
    file, _, column = given.rpartition(":")
    return _column(file, column) if file.endswith(_WITH_LISTS) else read_json(Path(given))


def read_answers(given: str) -> list[Any]:
    """The right answer of each input: a column of a file, given as ``rows.csv:column``."""
    file, _, column = given.rpartition(":")
    if not file or not column:
        raise SettingError(f"--answers must be FILE:COLUMN, such as rows.csv:label, but got {given!r}.")
    return _column(file, column)


def _column(file: str, name: str) -> list[Any]:
    """The values in a column of a file; a row that cannot be read would leave its input without one."""
    found = read_file(file, FileColumns("table", label=name), None)
    for record in found:
        if record.error is not None:
            raise InputError(f"{record.where}: {record.error}")
    return [record.label for record in found]
