"""Reading inputs from files; a bad line is one failed input and does not stop the rest."""

from __future__ import annotations

import csv
import json
import logging
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

from pertinent.cli.items import Columns, Item
from pertinent.cli.tables import csv_items, parquet_items
from pertinent.errors import FileError, InputError, PertinentError, SettingError

logger = logging.getLogger(__name__)

TABLES = (".csv", ".tsv", ".jsonl", ".parquet")


def file_items(file: str, columns: Columns, limit: int | None = None) -> list[Item]:
    """The inputs in a file: where the kind is not known, its texts if it has any, else its rows."""
    if columns.kind is None:
        with suppress(SettingError):
            found = file_items(file, replace(columns, kind="text"), limit)
            if any(item.error is None for item in found):
                return found
        return file_items(file, replace(columns, kind="table"), limit)
    found = list(islice(records(file, columns), limit))
    if not found:
        raise InputError(f"There is nothing to explain in {file!r}.")
    return found


def records(file: str, columns: Columns) -> Iterator[Item]:
    """The inputs in a file, one by one."""
    path = Path(file)
    suffix = ".txt" if file == "-" else path.suffix.lower()
    if suffix not in (".txt", *TABLES):
        raise FileError(f"The name of {file!r} must end in .txt, .csv, .tsv, .jsonl or .parquet.")
    if suffix == ".txt":
        _check_lines_are_enough(file, columns)
    if suffix == ".parquet":
        yield from parquet_items(path, columns)
        return
    with _opened(path) as stream:
        if suffix in (".csv", ".tsv"):
            yield from csv_items(path, stream, columns)
            return
        for line in _lines("stdin" if file == "-" else path.name, stream):
            if suffix == ".txt" or line.error is not None:
                yield line
                continue
            read = item_of(line.where, json_row if columns.kind == "table" else _json, line.raw)
            yield columns.item(line.where, read.raw) if read.error is None else read


def _check_lines_are_enough(file: str, columns: Columns) -> None:
    """A .txt file holds texts, and nothing beside them."""
    wanted = {"Table rows": columns.kind == "table", "Labels": columns.label, "Ids": columns.id}
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


def _lines(name: str, stream: Iterable[str]) -> Iterator[Item]:
    blank = 0
    try:
        for number, line in enumerate(stream, start=1):
            if "\0" in line:
                yield Item(f"{name} line {number}", error=InputError("the line holds a null character"))
            elif line.strip():
                yield Item(f"{name} line {number}", line.strip())
            else:
                blank += 1
    finally:
        if blank:
            logger.warning("%s: %d blank line%s skipped.", name, blank, "s were" if blank > 1 else " was")


def item_of(where: str, read: Callable[[Any], Any], value: Any) -> Item:
    """`read(value)` as an item, or the error if it fails."""
    try:
        return Item(where, read(value))
    except PertinentError as error:
        return Item(where, error=error)


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
