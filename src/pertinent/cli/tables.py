"""Inputs from tables: .csv, .tsv and .parquet files."""

from __future__ import annotations

import csv
import logging
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TextIO

from pertinent.cli.items import Columns, Item
from pertinent.errors import FileError, InputError, PertinentError
from pertinent.files import read_parquet

logger = logging.getLogger(__name__)

MOST_COLUMNS = 20_000
_LONGEST_HEADER = 2_000_000
_LONGEST_VALUE = 16_000_000


def parquet_items(path: Path, columns: Columns) -> Iterator[Item]:
    """An input from each row of a Parquet file."""
    table = read_parquet(path)
    _check(path, table.columns, columns)
    for number, record in enumerate(table.rows, start=1):
        yield columns.item(f"{path.name} row {number}", record)


def csv_items(path: Path, stream: TextIO, columns: Columns) -> Iterator[Item]:
    """An input from each record of a file whose first line names the columns."""
    csv.field_size_limit(max(csv.field_size_limit(), _LONGEST_VALUE))
    header = stream.readline(_LONGEST_HEADER)
    if len(header) == _LONGEST_HEADER:
        raise FileError(f"The first line of {str(path)!r} is too long to name columns.")
    separator = _separator(path, header)
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
            if row:
                where = f"{path.name} line {rows.line_num}"
                yield (
                    _item(where, names, named, row, columns, decimal_comma=separator == ";")
                    if len(row) == len(names)
                    else Item(where, error=_of_other_length(row, names, separator))
                )
    except csv.Error as error:
        yield Item(f"{path.name} line {rows.line_num}", error=InputError(f"the rest is unreadable: {error}"))


def _check(path: Path, names: list[str], columns: Columns) -> None:
    if len(names) > MOST_COLUMNS:
        raise FileError(f"{str(path)!r} has {len(names):,} columns, but at most {MOST_COLUMNS:,} are read.")
    if any("\0" in name for name in names):
        raise FileError(f"{str(path)!r} is not UTF-8 text: the names of its columns hold null characters.")
    try:
        columns.check(names)
    except PertinentError as error:
        raise type(error)(f"{str(path)!r}: {error}") from error


def _separator(path: Path, header: str) -> str:
    """The separator that the header shows."""
    if path.suffix.lower() == ".tsv":
        return "\t"
    return next((mark for mark in ",;\t" if mark in header), ",")


def _item(
    where: str, names: list[str], named: list[int], row: list[str], columns: Columns, *, decimal_comma: bool
) -> Item:
    if any("\0" in value for value in row):
        return Item(where, error=InputError("the record holds a null character"))
    item = columns.item(where, {names[place]: row[place] for place in named})
    if columns.kind == "table" and item.error is None:
        raw = {name: _number(value, decimal_comma=decimal_comma) for name, value in item.raw.items()}
        return replace(item, raw=raw)
    return item


def _of_other_length(row: list[str], names: list[str], separator: str) -> InputError:
    mark = {",": "commas", ";": "semicolons", "\t": "tabs"}[separator]
    return InputError(f"the record has {len(row)} values for {len(names)} columns; quote values with {mark}")


def _number(text: str, *, decimal_comma: bool) -> float | str | None:
    """The text as a number if possible; ``None`` if it is empty."""
    try:
        return float(text.replace(",", ".", 1) if decimal_comma else text)
    except ValueError:
        return text or None
