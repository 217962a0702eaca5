"""From arguments and files to inputs; a bad line is one failed input, not the end."""

from __future__ import annotations

import csv
import json
import logging
import sys
from argparse import Namespace
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

from pertinent.errors import FileError, InputError, PertinentError, SettingError, unknown

logger = logging.getLogger(__name__)

_FORMS = (("query", "document"), ("premise", "hypothesis"), ("text", "text_pair"), ("text",))
"""The columns that are taken when none is named, the first that are all there."""

_GIVE = {"text": "texts, or --file", "image": "--image FILE", "table": "--row JSON, or --file"}


@dataclass(frozen=True)
class Item:
    """One input and where it stands, or why it could not be read; its label, where one was asked for."""

    where: str
    raw: Any = None
    error: PertinentError | None = None
    label: Any = None


def kind_given(args: Namespace) -> str | None:
    """What kind of input the arguments hold; ``None`` where a file may be texts or rows."""
    given = {"text": args.inputs, "image": args.image, "table": args.row}
    kinds = [kind for kind, values in given.items() if values]
    if len(kinds) > 1:
        raise SettingError(f"One kind of input at a time, but got {' and '.join(kinds)}.")
    if not kinds and args.file is None:
        raise SettingError(
            "Nothing to explain: give a text, --file, --image or --row. See: pertinent explain --help"
        )
    return kinds[0] if kinds else None


def items(args: Namespace, kind: str) -> list[Item]:
    """The inputs given, in order, for a model that reads this kind."""
    given = kind_given(args)
    if given not in (None, kind) or (args.file is not None and kind == "image"):
        raise SettingError(f"The model {args.model!r} reads {kind}s: give {_GIVE[kind]}.")
    found: list[Item] = []
    for number, text in enumerate(args.inputs, start=1):
        if len(text) < 256 and Path(text).is_file():
            logger.warning("%r is explained as a text; to explain what is in the file, use --file.", text)
        found.append(Item(f"text {number}", text))
    found += [Item(path, Path(path)) for path in args.image or ()]
    found += [item_of(f"row {n}", json_row, text) for n, text in enumerate(args.row or (), start=1)]
    if args.file is not None:
        found += islice(_file_items(args.file, kind, args.column, args.pair_column), args.limit)
    if not found:
        raise InputError(f"There is nothing to explain in {args.file!r}.")
    return found[: args.limit]


def file_items(
    file: str,
    kind: str,
    *,
    column: str | None = None,
    pair: str | None = None,
    label: str | None = None,
    limit: int | None = None,
) -> list[Item]:
    """The inputs in a file, each with what stands in its `label` column."""
    found = list(islice(_file_items(file, kind, column, pair, label), limit))
    if not found:
        raise InputError(f"There is nothing in {file!r}.")
    return found


def known_columns(found: Iterable[Item], names: Collection[str]) -> list[Item]:
    """The items without columns that the model does not know (a label, an id), which are said."""
    extra: dict[str, None] = {}
    kept = []
    for item in found:
        if isinstance(item.raw, dict):
            extra |= dict.fromkeys(str(name) for name in item.raw if name not in names)
            item = replace(item, raw={k: v for k, v in item.raw.items() if k in names})
        kept.append(item)
    if extra:
        logger.warning("The model does not know these columns, they are left out: %s.", ", ".join(extra))
    return kept


def json_row(text: str) -> Any:
    """A table row: a JSON object, or an array of values."""
    row = _json(text)
    if not isinstance(row, dict | list):
        raise InputError(f"A row must be a JSON object or array, but got {text[:40]!r}.")
    return row


def _file_items(
    file: str, kind: str, column: str | None, pair: str | None, label: str | None = None
) -> Iterator[Item]:
    path = Path(file)
    suffix = ".txt" if file == "-" else path.suffix.lower()
    if suffix not in (".txt", ".csv", ".tsv", ".jsonl"):
        raise FileError(f"The name of {file!r} must end in .txt, .csv, .tsv or .jsonl.")
    if suffix == ".txt" and kind == "table":
        raise FileError(f"Table rows are read from .csv, .tsv or .jsonl, but not from {file!r}.")
    if suffix == ".txt" and label is not None:
        raise FileError(f"Labels are read from .csv, .tsv or .jsonl, but not from {file!r}.")
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
    if label is not None and label not in names:
        raise SettingError(f"{unknown('column', label, names)} Say which with --label-column.")
    place = names.index(label) if label is not None else -1
    inputs = [name for name in names if name != label]
    wanted = None if kind == "table" else wanted_columns(inputs, column, pair)

    def read(row: list[str]) -> Any:
        if len(row) != len(names):
            raise InputError(
                f"the record has {len(row)} values for {len(names)} columns; quote values with commas"
            )
        record = dict(zip(names, row, strict=True))
        return {k: _number(record[k]) for k in inputs} if wanted is None else picked(record, wanted)

    try:
        for row in rows:
            if row:
                item = item_of(f"{path.name} line {rows.line_num}", read, row)
                yield item if label is None or item.error is not None else replace(item, label=row[place])
    except csv.Error as error:
        yield Item(f"{path.name} line {rows.line_num}", error=InputError(f"the rest is unreadable: {error}"))


def item_of(where: str, read: Callable[[Any], Any], value: Any) -> Item:
    """What `read` makes of a value, or why it cannot."""
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
    """What the model is given, and the column it comes from."""
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
    """A number where it is one; nothing where nothing stands."""
    try:
        return float(text)
    except ValueError:
        return text or None
