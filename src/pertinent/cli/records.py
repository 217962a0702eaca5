"""Reading inputs from files; a bad line is one failed input and does not stop the rest."""

from __future__ import annotations

import csv
import json
import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

from pertinent.errors import FileError, InputError, PertinentError, SettingError, unknown
from pertinent.files import read_parquet

logger = logging.getLogger(__name__)

_FORMS = (("query", "document"), ("premise", "hypothesis"), ("text", "text_pair"), ("text",))
"""The default columns: the first of these groups that the file has completely."""


@dataclass(frozen=True)
class Item:
    """One input and its place in the file, or why it could not be read; and its label, if asked for."""

    where: str
    raw: Any = None
    error: PertinentError | None = None
    label: Any = None


def file_items(
    file: str,
    kind: str,
    *,
    column: str | None = None,
    pair: str | None = None,
    label: str | None = None,
    limit: int | None = None,
) -> list[Item]:
    """The inputs in a file, each with the value of its `label` column."""
    found = list(islice(records(file, kind, column, pair, label), limit))
    if not found:
        raise InputError(f"There is nothing in {file!r}.")
    return found


def records(
    file: str, kind: str, column: str | None, pair: str | None, label: str | None = None
) -> Iterator[Item]:
    """The inputs in a file, one by one."""
    path = Path(file)
    suffix = ".txt" if file == "-" else path.suffix.lower()
    if suffix not in (".txt", ".csv", ".tsv", ".jsonl", ".parquet"):
        raise FileError(f"The name of {file!r} must end in .txt, .csv, .tsv, .jsonl or .parquet.")
    if suffix == ".txt" and kind == "table":
        raise FileError(f"Table rows are read from .csv, .tsv, .jsonl or .parquet, but not from {file!r}.")
    if suffix == ".txt" and label is not None:
        raise FileError(f"Labels are read from .csv, .tsv, .jsonl or .parquet, but not from {file!r}.")
    if suffix == ".parquet":
        yield from _parquet_records(path, kind, column, pair, label)
        return
    with _opened(path) as stream:
        if suffix in (".csv", ".tsv"):
            yield from _records(path, stream, kind, column=column, pair=pair, label=label)
            return
        for line in _lines("stdin" if file == "-" else path.name, stream):
            if suffix == ".txt":
                yield line
            elif label is not None:
                yield _labelled_line(line, kind, column, pair, label)
            elif kind == "table":
                yield item_of(line.where, json_row, line.raw)
            else:
                yield item_of(line.where, lambda text: _json_text(text, column, pair), line.raw)


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


def _lines(name: str, stream: Iterable[str]) -> Iterator[Item]:
    blank = 0
    try:
        for number, line in enumerate(stream, start=1):
            if line.strip():
                yield Item(f"{name} line {number}", line.strip())
            else:
                blank += 1
    finally:
        if blank:
            logger.warning("%s: %d blank line%s skipped.", name, blank, "s were" if blank > 1 else " was")


def _labelled_line(line: Item, kind: str, column: str | None, pair: str | None, label: str) -> Item:
    """A JSON object, split into the input and its label."""
    try:
        found = json_row(line.raw)
        if not isinstance(found, dict) or label not in found:
            raise InputError(f"There is no {label!r} in {line.raw[:40]!r}.")
        truth = found.pop(label)
        raw = found if kind == "table" else picked(found, wanted_columns(list(found), column, pair))
    except PertinentError as error:
        return Item(line.where, error=error)
    return Item(line.where, raw, label=truth)


def _records(
    path: Path, stream: TextIO, kind: str, *, column: str | None, pair: str | None, label: str | None
) -> Iterator[Item]:
    rows = csv.reader(stream, delimiter="\t" if path.suffix.lower() == ".tsv" else ",", strict=True)
    names = next(rows, None)
    if not names:
        raise FileError(f"{str(path)!r} is empty: its first line must name the columns.")
    read = _reader(names, kind, column, pair, label)
    place = names.index(label) if label is not None else -1

    def read_row(row: list[str]) -> Any:
        if len(row) != len(names):
            raise InputError(
                f"the record has {len(row)} values for {len(names)} columns; quote values with commas"
            )
        values = map(_number, row) if kind == "table" else row
        return read(dict(zip(names, values, strict=True)))

    try:
        for row in rows:
            if row:
                item = item_of(f"{path.name} line {rows.line_num}", read_row, row)
                yield item if label is None or item.error is not None else replace(item, label=row[place])
    except csv.Error as error:
        yield Item(f"{path.name} line {rows.line_num}", error=InputError(f"the rest is unreadable: {error}"))


def _parquet_records(
    path: Path, kind: str, column: str | None, pair: str | None, label: str | None
) -> Iterator[Item]:
    table = read_parquet(path)
    read = _reader(table.column_names, kind, column, pair, label)
    for number, record in enumerate(table.to_pylist(), start=1):
        item = item_of(f"{path.name} row {number}", read, record)
        yield item if label is None else replace(item, label=record[label])


def _reader(
    names: list[str], kind: str, column: str | None, pair: str | None, label: str | None
) -> Callable[[Mapping[str, Any]], Any]:
    """A function that makes an input from a record: all columns but the label of a table, or the texts."""
    if label is not None and label not in names:
        raise SettingError(f"{unknown('column', label, names)} Say which with --label-column.")
    inputs = [name for name in names if name != label]
    if kind == "table":
        return lambda record: {name: record[name] for name in inputs}
    wanted = wanted_columns(inputs, column, pair)
    return lambda record: picked(record, wanted)


def item_of(where: str, read: Callable[[Any], Any], value: Any) -> Item:
    """`read(value)` as an item, or the error if it fails."""
    try:
        return Item(where, read(value))
    except PertinentError as error:
        return Item(where, error=error)


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise InputError(f"This is not JSON ({error}): {text[:40]!r}") from error


def _json_text(line: str, column: str | None, pair: str | None) -> Any:
    found = _json(line)
    return picked(found, wanted_columns(list(found), column, pair)) if isinstance(found, dict) else found


def wanted_columns(names: list[str], column: str | None, pair: str | None) -> dict[str, str]:
    """The names of the texts for the model, and the column that each comes from."""
    if column is None and pair is None:
        for form in _FORMS:
            if set(form) <= set(names):
                return {name: name for name in form}
        column = names[0] if len(names) == 1 else "text"
    wanted = {"text": column or "text"} | ({"text_pair": pair} if pair else {})
    for name in wanted.values():
        if name not in names:
            raise SettingError(f"{unknown('column', name, names)} Say which with --column.")
    return wanted


def picked(record: Mapping[str, Any], wanted: Mapping[str, str]) -> dict[str, Any]:
    """The texts of a record."""
    for name in wanted.values():
        if not isinstance(record[name], str):
            raise InputError(f"The column {name!r} must hold text, but holds {record[name]!r}.")
    return {key: record[name] for key, name in wanted.items()}


def _number(text: str) -> float | str | None:
    """The text as a number if possible; ``None`` if it is empty."""
    try:
        return float(text)
    except ValueError:
        return text or None


def json_row(text: str) -> Any:
    """A table row: a JSON object, or an array of values."""
    row = _json(text)
    if not isinstance(row, dict | list):
        raise InputError(f"A row must be a JSON object or array, but got {text[:40]!r}.")
    return row
